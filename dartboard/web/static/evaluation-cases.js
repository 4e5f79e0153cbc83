/**
 * Sets of cases saved in the playground: what is in them, how to measure with them, and taking a case out.
 */

import { call, download } from "./api.js";
import { announce } from "./chrome.js";
import { button, byId, h, quoted, set, shown } from "./dom.js";
import { command, keep, problem } from "./jobs.js";
import { count } from "./numbers.js";

/** Asks for the sets and draws them. @param {string[]} [open] sets whose questions stay unfolded */
export async function loadCases(open = []) {
  const root = byId("cases");
  try {
    const { sets } = await call("cases");
    const none = h("p", { class: "empty" }, "There is none yet: ask something in the ", h("a", { href: "./" }, "playground"), ", mark the passages that answer it, and save it as a case.");
    set(root, ...(sets.length ? sets.map((one) => entry(one, open.includes(one.name))) : [none]));
  } catch (error) {
    set(root, problem(error.message));
  }
  root.setAttribute("aria-busy", "false");
}

function entry(found, unfolded) {
  const said = h("div", { role: "alert" });
  const facts = `${count(found.cases.length, "question")}, ${count(found.passages, "passage")} from `;
  return h(
    "article",
    { class: "entry" },
    h("div", { class: "row" }, h("h3", {}, quoted(found.name, 80)), !found.problem && button({ class: "primary small", "aria-label": `Measure on ${shown(found.name, 80)}`, onclick: () => choose(found.name) }, "Measure"), button({ class: "small", "aria-label": `Download ${shown(found.name, 80)} as a ZIP file`, onclick: () => fetchSet(found.name, said) }, "Download")),
    found.problem ? h("p", { class: "hint" }, quoted(`This set cannot be read: ${found.problem}`, 300)) : h("p", { class: "hint" }, facts, quoted(found.collection, 80)),
    said,
    !found.problem && questions(found, said, unfolded),
    !found.problem && howTo(found.name),
  );
}

function questions(found, said, unfolded) {
  return h(
    "details",
    { open: unfolded },
    h("summary", {}, "Questions"),
    h(
      "ul",
      { class: "cases" },
      ...found.cases.map((one) =>
        h(
          "li",
          {},
          h("span", {}, quoted(one.query, 300), h("span", { class: "hint" }, ` ${one.relevant.length} marked of ${one.candidates}`)),
          button({ class: "link", "aria-label": `Remove the case ${shown(one.query, 80)}`, onclick: () => remove(found.name, one.query_id, said) }, "Remove"),
        ),
      ),
    ),
  );
}

function howTo(name) {
  return h(
    "details",
    {},
    h("summary", {}, "Measure with it in a terminal"),
    h("p", { class: "hint" }, "From the downloaded file, anywhere:"),
    command(`unzip ${name}.zip -d data`),
    command(`dartboard eval --dataset ${name} --systems quick --out report-${name}`),
    h("p", { class: "hint" }, "Or on the machine of the service, so that the report shows on this page (HOME is what it was started with as --home):"),
    command(`dartboard eval --dataset ${name} --data HOME/cases --systems quick --out HOME/reports/${name}`),
  );
}

/** Has the form above take this set. */
function choose(name) {
  document.dispatchEvent(new CustomEvent("measure-on", { detail: name }));
}

async function fetchSet(name, said) {
  set(said);
  try {
    keep(`${name}.zip`, await download(`cases/${encodeURIComponent(name)}.zip`));
  } catch (error) {
    set(said, problem(error.message));
  }
}

async function remove(name, id, said) {
  set(said);
  try {
    await call(`cases/${encodeURIComponent(name)}/${encodeURIComponent(id)}`, { method: "DELETE" });
    announce("The case is removed");
    await loadCases([name]);
    document.dispatchEvent(new CustomEvent("cases-changed"));
    byId("cases-title").focus();
  } catch (error) {
    set(said, problem(error.message));
  }
}
