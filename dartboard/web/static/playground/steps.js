/**
 * Pick by pick: a scrubber, the probability that is still uncovered, each pick's gain and its runner-up.
 */

import { announce } from "../chrome.js";
import { button, h, s, set } from "../dom.js";
import { percent } from "../numbers.js";
import { panel, table } from "../table.js";
import { servedTag } from "./card.js";
import { named } from "./names.js";
import { stepOf, tint } from "./reading.js";

const PACE = 1100;

/** @param {HTMLElement} root @param {HTMLElement} tools @param {any} store */
export function mountSteps(root, tools, store) {
  let timer = 0;
  const range = h("input", { type: "range", id: "step", min: "1", step: "1", "aria-label": "Picks made" });
  const play = button({ class: "small play", id: "play" }, "▶ Play");
  const where = h("output", { class: "num step-where", for: "step" });
  const mass = h("div", { class: "mass" });
  const list = h("ol", { class: "gains" });
  const chart = h("div", {}, mass, list);
  const body = h("div", {});
  const refreshTable = panel(body, tools, chart, () => stepsTable(store.get()), "Pick by pick");
  set(root, h("div", { class: "scrub" }, play, range, where), body);

  range.addEventListener("input", () => {
    stop();
    go(Number(range.value));
  });
  play.addEventListener("click", () => (timer ? stop() : start()));

  function start() {
    if (!store.get().reading) return;
    play.textContent = "❚❚ Pause";
    if (stepOf(store.get()) >= Number(range.max)) go(1);
    timer = setInterval(() => {
      const next = stepOf(store.get()) + 1;
      if (next > Number(range.max)) stop();
      else go(next);
    }, PACE);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "▶ Play";
  }

  function go(step) {
    const { reading } = store.get();
    store.update({ step: step >= reading.data.steps.length ? null : step });
    const now = reading.data.steps[step - 1];
    announce(`Step ${step}: gain ${percent(now.gain)}, still uncovered ${percent(now.uncovered)}`);
  }

  store.on(["reading", "step"], (state, before) => {
    if (!state.reading) return;
    const nothing = !state.reading.picks.length;
    const { covered_before: seen } = state.reading.data.methods.dartboard;
    range.disabled = play.disabled = nothing;
    if (nothing) {
      stop();
      where.textContent = "";
      refreshTable();
      const why = seen ? "Nothing adds to what was seen." : "No passage fits into this budget.";
      set(mass, h("p", { class: "hint" }, why));
      set(list);
      return;
    }
    if (state.reading !== before.reading && state.reading?.picks.length !== before.reading?.picks.length)
      stop();
    const step = stepOf(state);
    const { steps } = state.reading.data;
    range.max = String(steps.length);
    range.value = String(step);
    range.setAttribute("aria-valuetext", `${step} of ${steps.length} picks`);
    where.textContent = `${step} of ${steps.length}`;
    set(mass, massBar(steps, step, seen), massNote(steps[step - 1], seen));
    set(list, ...steps.map((one, order) => gainRow(state, one, order, step, go)));
    refreshTable();
  });
}

/** @param {number} before what was covered before the first pick, in grey */
function massBar(steps, step, before) {
  const bar = s("svg", { class: "mass-bar", role: "img", "aria-label": massLabel(steps[step - 1], before) });
  bar.append(s("rect", { class: "mass-rest", width: "100%", height: "100%" }));
  let from = 100 * before;
  if (before) bar.append(s("rect", { class: "mass-seen", width: `${from}%`, height: "100%" }));
  steps.forEach((one, order) => {
    const wide = 100 * one.gain;
    const state = order < step ? tint(order) : "ghost";
    bar.append(s("rect", { class: `mass-part ${state}`, x: `${from}%`, width: `${wide}%`, height: "100%" }));
    if (wide > 5 && order < step) {
      const x = `${from + wide / 2}%`;
      bar.append(
        s(
          "text",
          { class: `mass-label ${state}`, x, y: "50%", dy: "0.36em", "text-anchor": "middle" },
          order + 1,
        ),
      );
    }
    from += wide;
  });
  return bar;
}

function massLabel(now, before) {
  const seen = before ? `, ${percent(before)} of it by what was seen` : "";
  return `Covered ${percent(now.coverage)}${seen}, uncovered ${percent(now.uncovered)}`;
}

function massNote(now, before) {
  return h(
    "p",
    { class: "mass-note num" },
    before > 0 && h("span", { id: "covered-before" }, h("strong", {}, percent(before)), " seen"),
    h("span", {}, h("strong", {}, percent(now.coverage)), " of the probability covered"),
    h("span", { id: "uncovered" }, h("strong", {}, percent(now.uncovered)), " uncovered"),
  );
}

function gainRow(state, one, order, step, go) {
  const { candidates, data } = state.reading;
  const most = Math.max(...data.steps.map((each) => Math.max(each.gain, each.runner_up?.gain ?? 0)), 1e-300);
  const bar = s("svg", { class: "gain-bar", "aria-hidden": "true" });
  bar.append(
    s("rect", { class: `mass-part ${tint(order)}`, width: `${(100 * one.gain) / most}%`, height: "100%" }),
  );
  if (one.runner_up) {
    const x = `${(100 * one.runner_up.gain) / most}%`;
    bar.append(s("line", { class: "gain-rival", x1: x, x2: x, y1: 0, y2: "100%" }));
  }
  return h(
    "li",
    { class: `gain ${order < step ? "" : "later"} ${order === step - 1 ? "now" : ""}` },
    h("span", { class: `badge ${tint(order)}` }, order + 1),
    button(
      { class: "gain-name", onclick: () => go(order + 1), "aria-label": `Go to step ${order + 1}` },
      named(candidates[one.pick], 80),
    ),
    h(
      "span",
      { class: "gain-end" },
      servedTag(state.reading, "dartboard", one.pick),
      h("span", { class: "gain-value num" }, percent(one.gain)),
    ),
    bar,
    order === step - 1 && rivalNote(one, candidates),
  );
}

function rivalNote(one, candidates) {
  if (!one.runner_up) return h("p", { class: "hint rival-note" }, "Nothing else was left to choose.");
  const { index, gain } = one.runner_up;
  return h(
    "p",
    { class: "hint rival-note" },
    "Runner-up: ",
    named(candidates[index], 70),
    ` (rank ${candidates[index].retriever_rank}), ${percent(gain)}; ${behindText(one)}.`,
  );
}

const MEASURES = { probability: "probability", gain: "gain", gain_per_token: "gain per token" };

/** By how much the runner-up lost, in what decided the step. */
export function behindText(one) {
  const measure = MEASURES[one.criterion] ?? "gain";
  const { behind } = one.runner_up;
  if (one.criterion === "required") return "the pick was required";
  if (behind === null) return "neither adds anything";
  return behind < 0.0005 ? `equal in ${measure}` : `lost by ${percent(behind)} in ${measure}`;
}

function stepsTable(state) {
  const { candidates, data } = state.reading;
  return table(
    "Picks of Dartboard in order",
    ["Pick", "Gain", "Covered", "Uncovered", "Stands for", "Runner-up", "Its gain"],
    data.steps.map((one, order) => [
      h("span", {}, `${order + 1}. `, named(candidates[one.pick], 60)),
      percent(one.gain),
      percent(one.coverage),
      percent(one.uncovered),
      String(one.stands_for.length),
      one.runner_up ? named(candidates[one.runner_up.index], 60) : "none",
      one.runner_up ? percent(one.runner_up.gain) : "",
    ]),
  );
}
