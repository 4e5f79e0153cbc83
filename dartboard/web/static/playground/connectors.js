/**
 * Lines between the columns: solid from one column to the next, dashed where a passage skips MMR.
 */

import { s, set } from "../dom.js";
import { tint } from "./reading.js";

const PAIRS = [
  ["top_k", "mmr"],
  ["mmr", "dartboard"],
];

/** @param {HTMLElement} root the columns @param {SVGElement} svg over all of it */
export function connect(root, svg, reading) {
  const room = root.getBoundingClientRect();
  const ends = new Map();
  for (const card of root.querySelectorAll(".card")) {
    const box = card.getBoundingClientRect();
    const at = { left: box.left - room.left, right: box.right - room.left, y: box.top - room.top + 20 };
    ends.set(`${card.dataset.method} ${card.dataset.index}`, at);
  }
  const lines = [];
  for (const [from, to] of PAIRS) {
    for (const index of reading.data.methods[from].picks) {
      if (reading.data.methods[to].picks.includes(index)) lines.push([from, to, index, "kept"]);
    }
  }
  for (const index of reading.data.methods.top_k.picks) {
    const skips = !reading.data.methods.mmr.picks.includes(index);
    if (skips && reading.place.has(index)) lines.push(["top_k", "dartboard", index, "kept skips"]);
  }
  svg.setAttribute("width", String(room.width));
  svg.setAttribute("height", String(room.height));
  set(
    svg,
    ...lines.map(([from, to, index, kind]) => {
      const [a, b] = [ends.get(`${from} ${index}`), ends.get(`${to} ${index}`)];
      const bend = Math.min(60, (b.left - a.right) / 2);
      const d = `M${a.right} ${a.y}C${a.right + bend} ${a.y} ${b.left - bend} ${b.y} ${b.left} ${b.y}`;
      return s("path", { d, class: `${kind} ${tint(reading.owner[index])}`, "data-index": index });
    }),
  );
}
