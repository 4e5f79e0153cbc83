/**
 * The duplicates of a collection: a background task finds them; the page shows counts, causes and word diffs.
 */

import { call } from "./api.js";
import { announce, mountChrome } from "./chrome.js";
import { byId, h, quoted, set, shown } from "./dom.js";
import { command, follow, problem } from "./jobs.js";
import { count, fixed } from "./numbers.js";
import { table } from "./table.js";

const KINDS = { exact: "exact copies", text: "nearly the same words", vectors: "nearly the same by their vectors" };
const TAGS = { same: "span", removed: "del", added: "ins" };
const LONGEST = 2000;

mountChrome("duplicates");

async function loadCollections() {
  const picker = byId("collection");
  const before = picker.value;
  const { collections } = await call("collections");
  set(picker, ...collections.map((one) => h("option", { value: one.name, selected: one.default }, `${shown(one.name, 60)} (${count(one.passages, "passage")})`)));
  if (collections.some((one) => one.name === before)) picker.value = before;
}

byId("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  set(byId("said"));
  byId("start").disabled = true;
  const name = byId("collection").value;
  const similarity = byId("similarity").valueAsNumber;
  const json = { vectors: byId("vectors").checked, background: true };
  if (Number.isFinite(similarity)) json.similarity = similarity;
  try {
    const started = await call(`collections/${encodeURIComponent(name)}/duplicates`, { json });
    const job = await follow(byId("job"), started.job_id, `Comparing ${shown(name, 60)}`);
    if (job.result) draw(job.result);
  } catch (error) {
    set(byId("said"), problem(error.message));
  } finally {
    byId("start").disabled = false;
  }
});

function draw(found) {
  const more = found.similar === null ? null : `${count(found.similar, "more says", "more say")} nearly the same by their vectors (cosine ${fixed(found.similarity)} or more); they may differ in a number or a name.`;
  const causes = Object.entries(found.causes)
    .filter(([, pairs]) => pairs.length)
    .map(([name, pairs]) => table(`${shown(name, 60)}: which values share most groups`, [shown(name, 60), "and", "groups"], pairs.map(causeRow)));
  set(
    byId("found"),
    h("p", { class: "answer" }, shown(found.answer)),
    h("p", {}, `${count(found.chunks, "passage")}: ${count(found.exact, "exact copy", "exact copies")}, and ${count(found.near, "more has", "more have")} nearly the same words.`),
    more && h("p", {}, more),
    ...causes,
    ...found.groups.map(drawGroup),
    found.groups_in_all > found.groups.length && h("p", { class: "hint" }, `These are the largest of ${count(found.groups_in_all, "group")}.`),
    found.exact + found.near > 0 && h("p", {}, "To delete copies, after a look at what would go:"),
    found.exact + found.near > 0 && command(`dartboard duplicates --collection '${shown(found.collection, 200)}' --delete --keep longest`),
  );
  announce(found.answer);
}

function causeRow({ values: [one, other], groups }) {
  return [quoted(one, 120), one === other ? "itself" : quoted(other, 120), groups.toLocaleString("en")];
}

function drawGroup(group) {
  const examples = group.examples.flatMap((one) => [h("p", { class: "hint" }, quoted(one.place, 200)), h("p", {}, ...words(one))]);
  const left = group.size - group.examples.length;
  return h("article", { class: "group" }, h("h3", {}, `${count(group.size, "passage")}, ${KINDS[group.kind]}`), ...examples, left > 0 && h("p", { class: "hint" }, `and ${left.toLocaleString("en")} more`));
}

function words(example) {
  if (!example.diff) return [quoted(example.text, LONGEST)];
  if (example.diff.every(([kind]) => kind === "same")) return [h("span", { class: "hint" }, "the same words")];
  return example.diff.flatMap(([kind, part]) => [h(TAGS[kind], {}, quoted(part, LONGEST)), " "]);
}

async function begin() {
  set(byId("said"));
  try {
    await loadCollections();
  } catch (error) {
    set(byId("said"), problem(error.message));
  }
}
document.addEventListener("key-given", begin);
begin();
