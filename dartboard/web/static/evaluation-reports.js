/**
 * Reports of `dartboard eval`: headline tables, files to keep, and the page itself in a frame.
 *
 * The frame is sandboxed and its page has a policy that allows it no script; since a frame cannot send a key,
 * it is opened at an address that the service gives out for a few minutes.
 */

import { call, download } from "./api.js";
import { announce } from "./chrome.js";
import { button, byId, h, quoted, set, shown } from "./dom.js";
import { command, keep, problem } from "./jobs.js";
import { count } from "./numbers.js";
import { scrolling } from "./table.js";

const SHOWN_FILES = ["results.json", "report.md", "timings.json", "report.html"];

/** Systems that are bounds, not rivals. */
export const BOUNDS = ["oracle", "random"];
const WORDS = { ahead: "better", behind: "worse", "no difference": "same", reference: "reference" };

/** Asks for the list and draws it. */
export async function loadReports() {
  const root = byId("reports");
  try {
    const { reports, more } = await call("reports");
    const howTo = [
      h("p", { class: "hint" }, "To make one, on the machine of the service (HOME is what it was started with as --home):"),
      command("dartboard eval --dataset synthetic_clustered --systems quick --out HOME/reports/first"),
    ];
    if (reports.length) set(root, ...reports.map(entry), more > 0 && h("p", { class: "hint" }, `and ${count(more, "older report")}`), h("details", { class: "entry" }, h("summary", {}, "How to make another"), ...howTo));
    else set(root, h("p", { class: "empty" }, "There is none yet."), ...howTo);
  } catch (error) {
    set(root, problem(error.message));
  }
  root.setAttribute("aria-busy", "false");
}

function entry(report) {
  const when = new Date(report.created * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const open = button({ class: "primary small", "aria-label": `Open the report ${shown(report.name, 80)}`, onclick: () => show(report.name, open) }, "Open");
  return h(
    "article",
    { class: "entry" },
    h("div", { class: "row" }, h("h3", {}, quoted(report.name, 130)), h("span", { class: "hint" }, when), report.page && open),
    report.problem && h("p", { class: "hint" }, quoted(`This report ${report.problem.startsWith("results") ? "has no figures: " : ""}${report.problem}.`, 300)),
    ...report.headlines.map(headline),
    files(report),
  );
}

function headline(found) {
  const head = ["System", found.measure, "95 % interval", `Against ${found.reference}`, "Win / tie / loss"];
  return h(
    "div",
    {},
    h("ul", { class: "said" }, ...found.sentences.slice(0, 1).map((said) => h("li", {}, quoted(said, 300)))),
    scrolling(
      `Figures on ${shown(found.dataset, 80)}`,
      [quoted(found.dataset, 80), `: ${count(found.chunks, "passage")}, ${count(found.judged, "judged question")}`],
      head.map((name, at) => h("th", { scope: "col", class: at ? "figure" : null }, shown(name, 60))),
      found.rows.map(line),
      { class: "figures" },
    ),
    found.sentences.length > 1 && h("details", {}, h("summary", {}, "In words"), h("ul", { class: "said" }, ...found.sentences.map((said) => h("li", {}, quoted(said, 600))))),
  );
}

function line(row) {
  const ours = row.verdict === "reference";
  const sign = row.difference >= 0 ? "+" : "−";
  return h(
    "tr",
    { class: ours ? "ours" : BOUNDS.includes(row.system) ? "bound" : null },
    h("th", { scope: "row" }, quoted(row.system, 60)),
    h("td", { class: "figure" }, row.mean.toFixed(3)),
    h("td", { class: "figure" }, `${row.low.toFixed(3)} to ${row.high.toFixed(3)}`),
    h("td", { class: "figure" }, ours ? "–" : h("span", { class: row.verdict.split(" ")[0] }, `${sign}${Math.abs(row.difference).toFixed(3)} ${WORDS[row.verdict]}`)),
    h("td", { class: "figure" }, ours ? "–" : `${row.wins} / ${row.ties} / ${row.losses}`),
  );
}

function files(report) {
  const first = report.files.filter((file) => SHOWN_FILES.includes(file));
  const rest = report.files.filter((file) => !SHOWN_FILES.includes(file));
  const said = h("p", { class: "hint", role: "status" });
  const link = (file) => button({ class: "link", onclick: () => fetchFile(report.name, file, said) }, shown(file, 120));
  if (!report.files.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, `Files (${report.files.length})`),
    h("div", { class: "files" }, ...[...first, ...rest].map(link)),
    said,
  );
}

async function fetchFile(name, file, said) {
  said.textContent = "";
  try {
    const path = [name, ...file.split("/")].map(encodeURIComponent).join("/");
    keep(`${name}-${file.split("/").pop()}`, await download(`reports/${path}`));
  } catch (error) {
    said.textContent = error.message;
  }
}

/* The page in a frame */

async function show(name, opener) {
  const viewer = byId("viewer");
  set(byId("viewer-title"), "Report ", quoted(name, 130));
  set(byId("viewer-tools"), button({ class: "small", id: "viewer-close", onclick: () => close(opener) }, "Close"));
  viewer.hidden = false;
  try {
    const { url } = await call(`reports/${encodeURIComponent(name)}/ticket`, { method: "POST" });
    const address = new URL(url.replace(/^\//, ""), document.baseURI);
    if (address.origin !== location.origin) throw new Error("The service gave an address of another site.");
    set(byId("viewer-frame"), h("iframe", { src: address.href, sandbox: "", title: `Report ${shown(name, 130)}`, referrerpolicy: "no-referrer", tabindex: "0" }));
    byId("viewer-tools").prepend(h("a", { href: address.href, target: "_blank", rel: "noopener noreferrer" }, "Open in a tab"));
    announce(`Report ${name} is open`);
  } catch (error) {
    set(byId("viewer-frame"), problem(error.message));
  }
  viewer.scrollIntoView({ block: "start" });
  byId("viewer-title").focus({ preventScroll: true });
}

function close(opener) {
  byId("viewer").hidden = true;
  set(byId("viewer-frame"));
  (opener.isConnected ? opener : byId("reports-title")).focus();
}
