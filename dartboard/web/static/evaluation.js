/**
 * The evaluation page: measure a setting by a background task; beside it reports and saved cases.
 */

import { call } from "./api.js";
import { announce, mountChrome, remember, remembered } from "./chrome.js";
import { byId, h, quoted, set, shown } from "./dom.js";
import { loadCases } from "./evaluation-cases.js";
import { BOUNDS, loadReports } from "./evaluation-reports.js";
import { follow, problem } from "./jobs.js";
import { count } from "./numbers.js";
import { scrolling } from "./table.js";

const SYSTEMS = [
  ["cosine", "nearest neighbours", true],
  ["mmr-0.5", "MMR 0.5", false],
  ["mmr-0.7", "MMR 0.7", true],
  ["mmr-0.9", "MMR 0.9", false],
  ["dedup-0.90", "near-duplicate filter 0.90", true],
  ["bm25", "BM25", false],
  ["hybrid", "hybrid of vectors and BM25", false],
  ["random", "random", false],
  ["oracle", "oracle", false],
];
const METRICS = [
  ["headline", "headline", true],
  ["ndcg", "nDCG", true],
  ["recall", "recall", true],
  ["precision", "precision", false],
  ["mrr", "reciprocal rank", false],
  ["map", "average precision", false],
  ["set_recall", "set recall", false],
  ["alpha_ndcg", "α-nDCG", false],
  ["subtopic_recall", "subtopic recall", false],
  ["diversity", "diversity", true],
];

/** Its questions are about several clusters of passages each: what telling one thing twice costs can be seen. */
const FIRST_SET = "synthetic_clustered";

const MEASURED = "dartboard-measured";
const OURS = "this setting";

mountChrome("evaluation");
let busy = false;

function boxes(root, choices) {
  set(root, ...choices.map(([value, label, on]) => h("label", {}, h("input", { type: "checkbox", value, checked: on }), label)));
}
boxes(byId("systems"), SYSTEMS);
boxes(byId("metrics"), METRICS);

function ticked(id) {
  return [...byId(id).querySelectorAll("input:checked")].map((box) => box.value);
}

/* Data sets */

async function loadDatasets() {
  const picker = byId("dataset");
  const before = picker.value || FIRST_SET;
  const { datasets } = await call("datasets");
  set(
    picker,
    ...datasets.map((one) =>
      h(
        "option",
        { value: one.name, disabled: !one.usable },
        `${shown(one.name, 80)} (${one.usable ? `${count(one.num_queries, "question")}, ${count(one.num_chunks, "passage")}` : "cannot be read"})`,
      ),
    ),
  );
  if (datasets.some((one) => one.name === before)) picker.value = before;
}

/* Measuring */

function asked() {
  const sigma = byId("sigma").value.trim();
  return {
    dataset_name: byId("dataset").value,
    config: {
      sigma: sigma === "auto" ? "auto" : Number(sigma),
      top_k: byId("k").valueAsNumber,
      triage_k: byId("triage").valueAsNumber,
      reranker_type: byId("reranker").value,
    },
    metrics: ticked("metrics"),
    systems: ticked("systems"),
    background: true,
  };
}

byId("measure").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (busy) return;
  set(byId("said"));
  set(byId("outcome"));
  const body = asked();
  if (!body.metrics.length) {
    set(byId("said"), problem("Choose at least one measure."));
    return;
  }
  setBusy(true);
  try {
    const started = await call("evaluate", { json: body });
    remember(MEASURED, started.job_id);
    await finish(started.job_id, body.dataset_name);
  } catch (error) {
    set(byId("said"), problem(error.message));
  } finally {
    setBusy(false);
  }
});

function setBusy(value) {
  busy = value;
  byId("start").disabled = value;
}

async function finish(id, name) {
  const job = await follow(byId("job"), id, name ? `Measuring on ${shown(name, 60)}` : "Measuring");
  if (job.result) drawOutcome(job.result);
}

function drawOutcome(result) {
  const found = { [OURS]: result.metrics, ...result.systems };
  const names = Object.keys(result.metrics);
  const lead = names.includes(result.headline) ? result.headline : names[0];
  const rivals = Object.entries(found).filter(([system]) => !BOUNDS.includes(system));
  const best = Object.fromEntries(names.map((name) => [name, Math.max(...rivals.map(([, figures]) => figures[name]))]));
  const order = Object.entries(found).sort(([a, left], [b, right]) => right[lead] - left[lead] || a.localeCompare(b));
  const line = ([system, figures]) => {
    const bound = BOUNDS.includes(system);
    const cell = (name) => h("td", { class: !bound && figures[name] === best[name] ? "figure best" : "figure" }, figures[name].toFixed(3));
    return h("tr", { class: system === OURS ? "ours" : bound ? "bound" : null }, h("th", { scope: "row" }, shown(system, 60)), ...names.map(cell));
  };
  const caption = `${shown(result.dataset, 80)}: ${count(result.num_queries, "question")}; best ${lead} first, the best of each measure marked`;
  set(
    byId("outcome"),
    scrolling(
      "What was measured",
      [caption],
      [h("th", { scope: "col" }, "System"), ...names.map((name) => h("th", { scope: "col", class: "figure" }, name))],
      order.map(line),
      { class: "figures" },
    ),
    ...Object.entries(result.skipped).map(([system, reason]) => h("p", { class: "hint" }, quoted(`${system} was skipped: ${reason}.`, 300))),
    h("p", { class: "hint" }, `σ ${result.config.sigma}, k ${result.config.top_k}, from ${result.config.triage_k} candidates.`),
  );
  announce(`Measured ${count(order.length, "system")}`);
}

/** What this browser measured last is followed again, or shown with the form as it was; not what others did. */
async function resume() {
  const { jobs } = await call("jobs");
  const mine = jobs.find((job) => job.kind === "evaluate" && job.id === remembered(MEASURED));
  if (busy || !mine) return;
  if (mine.state === "done" && mine.result) {
    fillForm(mine.result);
    drawOutcome(mine.result);
  }
  if (mine.state !== "running" && mine.state !== "queued") return;
  setBusy(true);
  try {
    await finish(mine.id);
  } finally {
    setBusy(false);
  }
}

function fillForm({ dataset, config }) {
  const known = [...byId("dataset").options].some((one) => one.value === dataset);
  if (known) byId("dataset").value = dataset;
  byId("k").value = config.top_k;
  byId("triage").value = config.triage_k;
  byId("sigma").value = config.sigma;
  byId("reranker").value = config.reranker_type;
}

async function begin() {
  set(byId("said"));
  try {
    await loadDatasets();
  } catch (error) {
    set(byId("said"), problem(error.message));
  }
  await Promise.all([loadReports(), loadCases()]);
  await resume().catch(() => {});
}
document.addEventListener("key-given", begin);
document.addEventListener("measure-on", (event) => {
  byId("dataset").value = event.detail;
  byId("measure").scrollIntoView({ block: "start" });
  byId("start").focus({ preventScroll: true });
  announce(`Data set ${shown(event.detail, 80)} chosen`);
});
document.addEventListener("cases-changed", () => loadDatasets().catch(() => {}));
begin();
