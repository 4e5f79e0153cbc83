/**
 * How alike the picks of each method are: cosine between each two, as shade and as number.
 */

import { h, s, set } from "../dom.js";
import { table, twin } from "../table.js";
import { fixed } from "./numbers.js";
import { METHODS } from "./reading.js";

const CELL = 34;
const EDGE = 18;
const READABLE = 12;

/** @param {HTMLElement} root @param {HTMLElement} tools @param {any} store */
export function mountHeat(root, tools, store) {
  const chart = h("div", { class: "heats" });
  const asTable = twin(chart, () => heatTables(store.get()), "Likeness of the picks");
  tools.append(asTable.button);
  set(root, chart, asTable.holder);
  store.on(["reading"], (state) => {
    if (!state.reading) return;
    set(chart, ...METHODS.map(([method, , name]) => heatMap(state, method, name)));
    asTable.refresh();
  });
}

function matrixOf(state, method) {
  return state.reading.data.methods[method].matrix ?? [];
}

function heatMap(state, method, name) {
  const matrix = matrixOf(state, method);
  const side = EDGE + CELL * matrix.length;
  const label = `${name}: redundancy ${fixed(state.reading.data.methods[method].redundancy)}`;
  const svg = s("svg", {
    viewBox: `0 0 ${Math.max(side, 1)} ${Math.max(side, 1)}`,
    class: "heat",
    role: "img",
    "aria-label": label,
  });
  matrix.forEach((row, i) => {
    const middle = EDGE + CELL * (i + 0.5);
    svg.append(
      s("text", { x: middle, y: 12, class: "heat-axis", "text-anchor": "middle" }, i + 1),
      s("text", { x: 8, y: middle + 4, class: "heat-axis", "text-anchor": "middle" }, i + 1),
    );
    row.forEach((value, j) => svg.append(...cell(value, i, j, matrix.length)));
  });
  return h(
    "figure",
    {},
    h(
      "figcaption",
      {},
      h("h3", {}, name),
      h("span", { class: "hint num" }, fixed(state.reading.data.methods[method].redundancy)),
    ),
    svg,
  );
}

function cell(value, i, j, size) {
  const at = { x: EDGE + CELL * j, y: EDGE + CELL * i };
  const own = i === j;
  const shade = Math.max(0, Math.min(9, Math.floor(value * 10)));
  const rect = s(
    "rect",
    {
      x: at.x + 1,
      y: at.y + 1,
      width: CELL - 2,
      height: CELL - 2,
      rx: 3,
      class: own ? "heat-own" : `heat-cell h${shade}`,
    },
    s("title", {}, `${i + 1} and ${j + 1}: cosine ${fixed(value, 3)}`),
  );
  if (own || size > READABLE) return [rect];
  const text = fixed(value).replace(/^0/, "");
  return [
    rect,
    s(
      "text",
      { x: at.x + CELL / 2, y: at.y + CELL / 2 + 4, class: `heat-text h${shade}`, "text-anchor": "middle" },
      text,
    ),
  ];
}

function heatTables(state) {
  return h(
    "div",
    { class: "heat-tables" },
    ...METHODS.map(([method, name]) => {
      const matrix = matrixOf(state, method);
      return table(
        `Cosine between the picks of ${name}`,
        ["Pick", ...matrix.map((_, at) => String(at + 1))],
        matrix.map((row, i) => [String(i + 1), ...row.map((value) => fixed(value, 3))]),
      );
    }),
  );
}
