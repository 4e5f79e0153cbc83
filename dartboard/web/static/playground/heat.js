/**
 * How alike the picks of each method are: cosine between each two, as shade and as number.
 */

import { h, s, set } from "../dom.js";
import { fixed } from "../numbers.js";
import { panel, table } from "../table.js";
import { METHODS } from "./reading.js";

const CELL = 34;
const EDGE = 18;
const READABLE = 12;

/** @param {HTMLElement} root @param {HTMLElement} tools @param {any} store */
export function mountHeat(root, tools, store) {
  const chart = h("div", { class: "heats" });
  const refreshTable = panel(root, tools, chart, () => heatTables(store.get()), "Likeness of the picks");
  store.on(["reading"], (state) => {
    if (!state.reading) return;
    set(chart, ...METHODS.map(([method, , name]) => heatMap(state.reading.data.methods[method], name)));
    refreshTable();
  });
}

function heatMap({ matrix, redundancy }, name) {
  const side = EDGE + CELL * matrix.length;
  const label = `${name}: redundancy ${fixed(redundancy)}`;
  const svg = s("svg", { viewBox: `0 0 ${side} ${side}`, class: "heat", role: "img", "aria-label": label });
  matrix.forEach((row, i) => {
    const middle = EDGE + CELL * (i + 0.5);
    svg.append(word(i + 1, middle, 12, "heat-axis"), word(i + 1, 8, middle + 4, "heat-axis"));
    row.forEach((value, j) => svg.append(...cell(value, i, j, matrix.length)));
  });
  const number = h("span", { class: "hint num" }, fixed(redundancy));
  return h("figure", {}, h("figcaption", {}, h("h3", {}, name), number), svg);
}

function word(text, x, y, kind) {
  return s("text", { x, y, class: kind, "text-anchor": "middle" }, text);
}

/** The strength of the one colour grows with the square of the cosine, so that near-copies stand out. */
function cell(value, i, j, size) {
  const [x, y, side] = [EDGE + CELL * j, EDGE + CELL * i, CELL - 2];
  const own = i === j;
  const strength = Math.max(0.04, Math.min(1, value * Math.abs(value)));
  const box = { x: x + 1, y: y + 1, width: side, height: side, rx: 3, class: own ? "heat-own" : "heat-cell" };
  const title = s("title", {}, `${i + 1} and ${j + 1}: cosine ${fixed(value, 3)}`);
  const rect = s("rect", { ...box, "fill-opacity": own ? null : strength.toFixed(2) }, title);
  if (own || size > READABLE) return [rect];
  const kind = `heat-text${strength > 0.5 ? " strong" : ""}`;
  return [rect, word(fixed(value).replace(/^0/, ""), x + CELL / 2, y + CELL / 2 + 4, kind)];
}

function heatTables(state) {
  return h(
    "div",
    { class: "heat-tables" },
    ...METHODS.map(([method, name]) => {
      const { matrix } = state.reading.data.methods[method];
      return table(
        `Cosine between the picks of ${name}`,
        ["Pick", ...matrix.map((_, at) => String(at + 1))],
        matrix.map((row, i) => [String(i + 1), ...row.map((value) => fixed(value, 3))]),
      );
    }),
  );
}
