/**
 * Files into collections: choose or drop, send, follow the indexing, see what became of every file.
 */

import { call } from "./api.js";
import { announce, mountChrome } from "./chrome.js";
import { button, byId, h, quoted, set, shown } from "./dom.js";
import { follow, problem } from "./jobs.js";
import { count, seconds, size } from "./numbers.js";
import { table } from "./table.js";
import { dropped, picked, send, withoutHidden } from "./upload.js";

const NEW = "";
const LISTED = 200;
const MOST_LISTED = 1000; // of the service
const UNBROKEN = 28;
const STATES = {
  indexed: ["good", "Indexed"],
  unchanged: ["dull", "Already there"],
  left_out: ["bad", "Left out"],
};

/** @type {import("./upload.js").Chosen[]} */
let chosen = [];
let hiddenFiles = 0;
let collections = [];
let busy = false;

mountChrome("documents");
const picker = byId("collection");
const sender = byId("send");

/* Choosing files */

function add(files) {
  const { kept, hidden } = withoutHidden(files);
  const names = new Set(chosen.map((one) => one.name));
  chosen.push(...kept.filter((one) => !names.has(one.name)));
  hiddenFiles += hidden;
  set(byId("said"));
  drawChosen();
}

function drawChosen() {
  const root = byId("chosen");
  const total = chosen.reduce((sum, one) => sum + one.file.size, 0);
  root.hidden = !chosen.length && !hiddenFiles;
  const rows = chosen.slice(0, LISTED).map((one, at) =>
    h(
      "li",
      {},
      h("span", {}, quoted(one.name, 200)),
      h("span", { class: "num" }, size(one.file.size)),
      button({ class: "link", "aria-label": `Leave out ${shown(one.name, 80)}`, onclick: () => remove(at) }, "Leave out"),
    ),
  );
  const left = hiddenFiles ? `; ${count(hiddenFiles, "hidden file")} of the folder left out` : "";
  set(
    root,
    h("p", {}, h("strong", {}, count(chosen.length, "file")), `, ${size(total)}${left}`),
    h("ul", { "aria-label": "Files to send", tabindex: "0" }, ...rows),
    chosen.length > LISTED && h("p", { class: "hint" }, `and ${count(chosen.length - LISTED, "more", "more")}`),
  );
  announce(`${count(chosen.length, "file")} chosen`);
  ready();
}

function remove(at) {
  chosen.splice(at, 1);
  drawChosen();
  const buttons = byId("chosen").querySelectorAll("button");
  (buttons[Math.min(at, buttons.length - 1)] ?? byId("choose-files")).focus();
}

function clear() {
  chosen = [];
  hiddenFiles = 0;
  drawChosen();
}

function ready() {
  const named = picker.value || byId("new-name").value.trim();
  sender.disabled = busy || !chosen.length || !named;
  byId("clear").hidden = busy || !chosen.length;
}

for (const [opener, input] of [["choose-files", "files"], ["choose-folder", "folder"]]) {
  byId(opener).addEventListener("click", () => byId(input).click());
  byId(input).addEventListener("change", (event) => {
    add(picked(event.target.files));
    event.target.value = "";
  });
}
byId("clear").addEventListener("click", () => {
  clear();
  byId("choose-files").focus();
});

const zone = byId("drop");
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
}
for (const kind of ["dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    if (kind === "drop" || !event.relatedTarget) zone.classList.remove("over");
  });
}
document.addEventListener("drop", async (event) => add(await dropped(event.dataTransfer)));

/* Sending */

byId("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (busy) return;
  setBusy(true);
  set(byId("said"));
  set(byId("outcome"));
  try {
    const name = await target();
    const accepted = await deliver(name);
    clear();
    await finish(accepted.job_id, name);
  } catch (error) {
    if (error.name === "AbortError") set(byId("said"), h("p", { class: "hint" }, "Stopped. Nothing was sent to be indexed."));
    else set(byId("said"), problem(error.message));
  } finally {
    setBusy(false);
  }
});

function setBusy(value) {
  busy = value;
  for (const id of ["collection", "new-name", "choose-files", "choose-folder"]) byId(id).disabled = value;
  ready();
}

/** The collection to add to; a new one is made first. */
async function target() {
  if (picker.value !== NEW) return picker.value;
  const name = byId("new-name").value.trim();
  if (/[/\\]/.test(name)) throw new Error("A collection’s name has no slash: choose another one.");
  if (collections.some((one) => one.name === name && !one.writable)) throw new Error("That name is taken by the demo: choose another one.");
  await call(`collections/${encodeURIComponent(name)}`, { method: "PUT" });
  await load(name);
  return name;
}

async function deliver(name) {
  const root = byId("job");
  const stop = new AbortController();
  const bar = h("progress", { "aria-label": "Sending", max: 1, value: 0 });
  const said = h("p", { class: "job-said", role: "status" }, "Sending …");
  set(
    root,
    h("div", { class: "row" }, h("h3", {}, `Sending ${count(chosen.length, "file")}`), button({ class: "small", onclick: () => stop.abort() }, "Cancel")),
    bar,
    said,
  );
  root.hidden = false;
  try {
    return await send(`collections/${encodeURIComponent(name)}/files`, chosen, (sent, total) => {
      bar.max = total;
      bar.value = sent;
      said.textContent = sent < total ? `${size(sent)} of ${size(total)}` : "Sent; the service is writing it down …";
    }, stop.signal);
  } catch (error) {
    root.hidden = true;
    throw error;
  }
}

async function finish(id, name) {
  const job = await follow(byId("job"), id, `Indexing into ${shown(name, 60)}`);
  if (job.result) drawOutcome(job.result);
  await load(name);
}

function drawOutcome(result) {
  const counts = [
    [result.indexed, "indexed"],
    [result.unchanged, "already there"],
    [result.left_out, "left out"],
  ].filter(([count]) => count);
  const rows = result.files.map((one) => {
    const [kind, label] = STATES[one.state] ?? ["dull", one.state];
    return [nameCell(one.name), h("span", { class: `state ${kind}` }, label), one.chunks || "", h("span", {}, quoted(one.message, 400))];
  });
  set(
    byId("outcome"),
    h("p", {}, h("strong", {}, counts.map(([number, word]) => `${count(number, "file")} ${word}`).join(", ") || "No files"), `; ${count(result.chunks, "passage")} in ${seconds(result.seconds)}. `, h("a", { href: askAddress(result.collection), id: "ask-it" }, "Ask it")),
    table("What became of each file", ["File", "State", "Passages", "Remark"], rows),
    result.more_files > 0 && h("p", { class: "hint" }, `and ${count(result.more_files, "file")} more`),
  );
}

/** A name in a table: a short one is not broken, a long one wherever it must be. */
function nameCell(name) {
  return h("span", { class: name.length <= UNBROKEN ? "whole" : null }, quoted(name, 200));
}

/** Tasks that were begun before the page was opened are shown again. */
async function resume() {
  const { jobs } = await call("jobs");
  const open = jobs.filter((job) => job.kind === "index" && (job.state === "running" || job.state === "queued"));
  if (!open.length || busy) return;
  setBusy(true);
  try {
    const job = await follow(byId("job"), open[open.length - 1].id, "Indexing");
    if (job.result) drawOutcome(job.result);
    await load();
  } finally {
    setBusy(false);
  }
}

/* Collections */

async function load(selected) {
  const root = byId("collections");
  try {
    ({ collections } = await call("collections"));
  } catch (error) {
    set(root, problem(error.message));
    root.setAttribute("aria-busy", "false");
    return;
  }
  drawPicker(selected);
  const rows = collections.map((one) => [
    h("span", {}, quoted(one.name, 80), one.default && h("span", { class: "hint" }, " (default)")),
    one.passages.toLocaleString("en"),
    h("span", {}, quoted(one.embedding_model, 60), `, ${one.retriever}`),
    h(
      "span",
      { class: "row" },
      h("a", { href: askAddress(one.name), "aria-label": `Ask ${shown(one.name, 80)}` }, "Ask it"),
      button({ class: "link", "aria-label": `Documents of ${shown(one.name, 80)}`, onclick: () => list(one.name) }, "Documents"),
      one.writable
        ? button({ class: "link", "aria-label": `Delete ${shown(one.name, 80)}`, onclick: () => askToDelete(one) }, "Delete")
        : h("span", { class: "hint" }, "comes with the package"),
    ),
  ]);
  set(root, rows.length ? table("The collections of this service", ["Name", "Passages", "Made with", ""], rows) : h("p", { class: "empty" }, "There is none yet: add files on this page, and it is made."));
  root.setAttribute("aria-busy", "false");
}

function drawPicker(selected) {
  const wanted = selected ?? picker.value;
  const open = collections.filter((one) => one.writable);
  set(
    picker,
    ...open.map((one) => h("option", { value: one.name }, `${shown(one.name, 80)} (${count(one.passages, "passage")})`)),
    h("option", { value: NEW }, "New collection …"),
  );
  picker.value = open.some((one) => one.name === wanted) ? wanted : open.length ? open[0].name : NEW;
  showNew();
}

function showNew() {
  byId("new-field").hidden = picker.value !== NEW;
  ready();
}
picker.addEventListener("change", () => {
  showNew();
  if (picker.value === NEW) byId("new-name").focus();
});
byId("new-name").addEventListener("input", ready);

function askAddress(name) {
  return `./#${new URLSearchParams({ c: name })}`;
}

/** The documents of a collection, as many as are asked for. */
async function list(name, limit = LISTED) {
  const root = byId("listed");
  try {
    const { documents, total } = await call(`collections/${encodeURIComponent(name)}/documents?limit=${limit}`);
    const rows = documents.map((one) => [
      h("span", {}, quoted(one.title || one.id, 120), one.title && h("span", { class: "hint" }, " ", quoted(one.id, 200))),
      one.passages.toLocaleString("en"),
    ]);
    const left = total - documents.length;
    const more = () => button({ class: "small", onclick: () => list(name, MOST_LISTED) }, "Show more");
    set(
      root,
      table(`${shown(name, 80)}: ${count(total, "document")}`, ["Document", "Passages"], rows),
      left > 0 && h("p", { class: "hint row" }, `and ${left.toLocaleString("en")} more `, limit < MOST_LISTED && more()),
    );
    root.focus({ preventScroll: true });
    announce(`${count(total, "document")} in ${shown(name, 80)}`);
  } catch (error) {
    set(root, problem(error.message));
  }
}

/* Deleting */

const dialog = byId("delete");
let doomed = null;

function askToDelete(collection) {
  doomed = collection;
  byId("delete-name").value = "";
  byId("delete-yes").disabled = true;
  set(byId("delete-problem"));
  set(byId("delete-said"), quoted(collection.name, 200), ` and its ${count(collection.passages, "passage")} will be gone for good.`);
  dialog.showModal();
  byId("delete-name").focus();
}
byId("delete-name").addEventListener("input", () => (byId("delete-yes").disabled = byId("delete-name").value !== doomed?.name));
byId("delete-no").addEventListener("click", () => dialog.close());
byId("delete-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (byId("delete-name").value !== doomed?.name) return;
  byId("delete-yes").disabled = true;
  try {
    await call(`collections/${encodeURIComponent(doomed.name)}`, { method: "DELETE" });
    dialog.close();
    set(byId("listed"));
    announce(`${doomed.name} is deleted`);
    await load();
    byId("collections-title").focus();
  } catch (error) {
    set(byId("delete-problem"), problem(error.message));
    byId("delete-yes").disabled = false;
  }
});

async function begin() {
  await load();
  await resume().catch(() => {});
}
document.addEventListener("key-given", begin);
begin();
