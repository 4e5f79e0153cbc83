/**
 * Which passages are picked across σ: one row a passage, one cell a value. A click on a column sets σ.
 */

import { button, h, s, set } from "../dom.js";
import { count, sigmaText } from "../numbers.js";
import { panel, table } from "../table.js";
import { help } from "./help.js";
import { named } from "./names.js";
import { tint } from "./reading.js";
import { logScale } from "./sigma.js";

const MOST_ROWS = 16;

/** @param {HTMLElement} root @param {HTMLElement} tools @param {any} store @param {() => void} again */
export function mountStrip(root, tools, store, again) {
  const strip = h("div", { class: "strip" });
  const note = h(
    "p",
    { class: "hint" },
    "A filled cell: the passage is picked at that σ. Solid line: σ now. Dotted: automatic.",
  );
  const chart = h("div", {}, strip, note);
  tools.append(help("who survives"));
  const refreshTable = panel(root, tools, chart, () => stripTable(store.get()), "Survival across sigma");

  /** @type {import("./reading.js").Reading|null} */
  let drawn = null;

  strip.addEventListener("click", (event) => {
    const cells = event.target.closest(".strip-cells");
    if (!cells) return;
    const box = cells.getBoundingClientRect();
    const { sigma } = store.get().reading.data;
    const place = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    store.update({ sigma: Number(logScale(sigma).at(place).toPrecision(4)) });
    again();
  });

  store.on(["reading", "sigma"], (state, before) => {
    if (!state.reading) return;
    const { sigma } = state.reading.data;
    if (state.reading !== before.reading && !looksLike(state.reading, drawn)) {
      draw(strip, state.reading, store);
      refreshTable();
      drawn = state.reading;
    }
    moveLine(strip, "now", logScale(sigma).of(state.sigma === "auto" ? sigma.auto : state.sigma));
    moveLine(strip, "auto", logScale(sigma).of(sigma.auto));
  });
}

/** A small move of σ mostly changes nothing here, and several hundred cells can stay. */
function looksLike(one, other) {
  if (!other || one.data.sweep !== other.data.sweep) return false;
  const facts = ({ data: { sigma }, candidates, picks, owner }) =>
    JSON.stringify([sigma.low, sigma.high, sigma.auto, picks, owner, candidates.map(({ id }) => id)]);
  return facts(one) === facts(other);
}

/** Candidates picked at any σ: today's picks first, then by how many σ they survive. */
function survivors(reading) {
  const times = new Map(reading.picks.map((index) => [index, []]));
  reading.data.sweep.picks.forEach((picks, at) =>
    picks.forEach((index, rank) => {
      if (!times.has(index)) times.set(index, []);
      times.get(index).push({ at, rank });
    }),
  );
  const order = (index) => reading.place.get(index) ?? Infinity;
  const compare = ([a, x], [b, y]) =>
    (order(a) === order(b) ? 0 : order(a) - order(b)) || y.length - x.length || a - b;
  return [...times].sort(compare);
}

function draw(strip, reading, store) {
  const { sweep, sigma } = reading.data;
  if (!sweep || !sweep.sigmas.length) return set(strip, h("p", { class: "hint" }, "Too few candidates."));
  const rows = survivors(reading);
  const shown = rows.slice(0, MOST_ROWS);
  const places = sweep.sigmas.map(logScale(sigma).of);
  const lines = s(
    "svg",
    { class: "strip-lines", "aria-hidden": "true" },
    s("line", { class: "line-auto", y1: 0, y2: "100%" }),
    s("line", { class: "line-now", y1: 0, y2: "100%" }),
  );
  lines.style.gridRow = `1 / span ${shown.length}`;
  const cells = shown.flatMap(([index, times], at) => row(reading, index, times, places, at + 1, store));
  const rest = rows.length - shown.length;
  return set(
    strip,
    ...cells,
    axis(sigma),
    lines,
    rest > 0 && h("p", { class: "hint strip-rest" }, `${count(rest, "more passage")} in the table.`),
  );
}

function row(reading, index, times, places, line, store) {
  const wide = 100 / Math.max(1, places.length - 1);
  const order = reading.place.get(index);
  const cells = s("svg", {
    class: `strip-cells ${tint(reading.owner[index])}${order === undefined ? "" : " now"}`,
    role: "img",
    "aria-label": `Picked at ${times.length} of ${places.length} values of sigma`,
  });
  cells.append(s("rect", { class: "strip-bed", x: 0, width: "100%", height: "100%" }));
  for (const { at, rank } of times) {
    const from = Math.max(0, 100 * places[at] - wide / 2);
    const to = Math.min(100, 100 * places[at] + wide / 2);
    const title = `σ ${sigmaText(reading.data.sweep.sigmas[at])}: pick ${rank + 1}`;
    cells.append(s("rect", { x: `${from}%`, width: `${to - from}%`, height: "100%" }, s("title", {}, title)));
  }
  const name = button(
    {
      class: "strip-name",
      title: "Why, or why not?",
      onclick: () => store.update({ why: reading.candidates[index].id }),
    },
    h("span", { class: "num" }, order === undefined ? "" : order + 1),
    named(reading.candidates[index], 60),
  );
  name.style.gridRow = cells.style.gridRow = String(line);
  return [name, cells];
}

function axis(sigma) {
  return s(
    "svg",
    { class: "strip-axis", "aria-hidden": "true" },
    s("text", { x: 0, y: 11 }, sigmaText(sigma.low)),
    s("text", { x: `${100 * logScale(sigma).of(sigma.auto)}%`, y: 11, "text-anchor": "middle" }, "auto"),
    s("text", { x: "100%", y: 11, "text-anchor": "end" }, sigmaText(sigma.high)),
  );
}

function moveLine(strip, name, place) {
  const line = strip.querySelector(`.line-${name}`);
  line?.setAttribute("x1", `${100 * place}%`);
  line?.setAttribute("x2", `${100 * place}%`);
}

function stripTable(state) {
  const { reading } = state;
  const { sweep } = reading.data;
  if (!sweep) return h("p", { class: "hint" }, "Too few candidates.");
  return table(
    "Which passages are picked across σ",
    ["Passage", "Picked now", "Values of σ", "Picked at σ"],
    survivors(reading).map(([index, times]) => [
      named(reading.candidates[index], 60),
      reading.place.has(index) ? `pick ${reading.place.get(index) + 1}` : "no",
      `${times.length} of ${sweep.sigmas.length}`,
      h("span", { class: "ranges" }, ranges(times, sweep.sigmas)),
    ]),
  );
}

/** Neighbouring values of σ as one range: "0.01 – 0.03, 0.2". */
function ranges(times, sigmas) {
  const found = [];
  for (const { at } of times) {
    const last = found[found.length - 1];
    if (last && last[1] === at - 1) last[1] = at;
    else found.push([at, at]);
  }
  const text = (at) => sigmaText(sigmas[at]);
  return found.map(([from, to]) => (from === to ? text(from) : `${text(from)} – ${text(to)}`)).join(", ");
}
