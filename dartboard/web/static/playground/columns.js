/**
 * KNN, MMR and Dartboard side by side, each with how much it repeats itself and how much it covers.
 */

import { h, s, set } from "../dom.js";
import { count, fixed, percent } from "../numbers.js";
import { card, refreshMarkers } from "./card.js";
import { METHODS, newness, stepOf, tint } from "./reading.js";

/** As in playground.css: from 860 pixels on the columns stand side by side, without tabs. */
const NARROW = matchMedia("(max-width: 859.98px)");
const TAB_KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -METHODS.length, End: METHODS.length };
const PAIRS = [
  ["top_k", "mmr"],
  ["mmr", "dartboard"],
];

/** @param {HTMLElement} root @param {any} store */
export function mountColumns(root, store) {
  const svg = s("svg", { class: "connectors", "aria-hidden": "true" });
  const tabs = mountTabs(root, store);
  let frame = 0;
  const again = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      const { reading } = store.get();
      if (reading) connect(root, svg, reading);
    });
  };
  new ResizeObserver(again).observe(root);

  store.on(["reading"], (state) => {
    if (!state.reading) return;
    const held = heldCard(root);
    set(root, svg, ...METHODS.map(([method, name]) => column(state, method, name, store)));
    tabs();
    again();
    later(root, state);
    if (held) root.querySelector(held)?.focus({ preventScroll: true });
  });
  store.on(["step"], (state) => later(root, state));
  store.on(["marks"], (state) => refreshMarkers(root, state.marks));
  store.on(["hover", "why"], (state) => light(root, state));
}

/** A selector for the card button that has the focus, so that it can be found again after a change. */
function heldCard(root) {
  const held = document.activeElement?.closest?.(".card");
  if (!held || !root.contains(held)) return null;
  const part = document.activeElement.classList.contains("marker") ? ".marker" : ".card-name";
  return `[data-method="${held.dataset.method}"][data-index="${held.dataset.index}"] ${part}`;
}

function column(state, method, name, store) {
  const { picks } = state.reading.data.methods[method];
  return h(
    "section",
    { class: `column ${method}`, id: `column-${method}`, "aria-labelledby": `head-${method}` },
    head(state, method, name),
    h("ol", { class: "cards" }, ...picks.map((index, rank) => card(state, method, index, rank, store))),
  );
}

/** What a column goes by, where its name alone does not say it. */
function howRanked(data, method) {
  const weight = data.methods[method].parameters?.relevance_weight;
  const by = data.retriever === "dense" || method === "dartboard" ? "" : `by ${data.retriever} score`;
  return [weight === undefined ? "" : `relevance ${weight}`, by].filter(Boolean).join(", ");
}

function head(state, method, name) {
  const { data } = state.reading;
  const set_ = data.methods[method];
  const how = howRanked(data, method);
  return h(
    "header",
    { class: "column-head" },
    h(
      "h2",
      { id: `head-${method}` },
      name,
      how ? h("span", { class: "hint" }, ` ${how}`) : null,
    ),
    h(
      "p",
      { class: "says" },
      h("strong", {}, newness(state.reading, method)),
      ` of ${count(set_.picks.length, "passage")}`,
    ),
    meter(
      "Redundancy",
      set_.redundancy,
      fixed(set_.redundancy),
      "Mean over the picks of the highest cosine to another pick",
    ),
    meter(
      "Coverage",
      set_.coverage,
      percent(set_.coverage),
      "Share of the probability that the picks cover; grey: what was seen",
      set_.covered_before,
    ),
    h("p", { class: "hint num" }, overlapText(data, method), h("span", {}, count(set_.tokens, "token"))),
  );
}

/** @param {number} [before] the part of the value that was there before, in grey */
function meter(name, value, text, title, before = 0) {
  const wide = (share) => `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%`;
  return h(
    "div",
    { class: `meter ${name.toLowerCase()}`, title },
    h("span", {}, name),
    s(
      "svg",
      { "aria-hidden": "true" },
      s("rect", { class: "meter-rest", width: "100%", height: "100%" }),
      s("rect", { class: "meter-part", width: wide(value), height: "100%" }),
      before > 0 && s("rect", { class: "mass-seen", width: wide(before), height: "100%" }),
    ),
    h("strong", { class: "num" }, text),
  );
}

function overlapText(data, method) {
  const parts = METHODS.filter(([other]) => other !== method).map(([other, , short]) => {
    const shared = data.overlap[`${method}|${other}`] ?? data.overlap[`${other}|${method}`] ?? 0;
    return `${shared} with ${short}`;
  });
  return `Shares ${parts.join(", ")}`;
}

/** Picks that the scrubber has not reached yet stand back. */
function later(root, state) {
  const step = stepOf(state);
  root
    .querySelectorAll(".column.dartboard .card")
    .forEach((one, rank) => one.classList.toggle("later", rank >= step));
}

/** Light the passage under the pointer in every column, and the pick that stands for it. */
function light(root, state) {
  const { reading, hover, why } = state;
  const stands = hover === null || !reading ? null : reading.picks[reading.owner[hover]];
  for (const one of root.querySelectorAll("[data-index]")) {
    const index = Number(one.dataset.index);
    one.classList.toggle("hover", index === hover);
    one.classList.toggle("covers", index === stands && index !== hover);
    one.classList.toggle("asked", Boolean(reading) && reading.candidates[index]?.id === why);
  }
}

/**
 * Where three columns do not fit, one is shown at a time: a tab for each method.
 * @param {HTMLElement} root of the columns @param {any} store
 * @returns {() => void} shows the state's tab after the columns were drawn
 */
function mountTabs(root, store) {
  const tabs = METHODS.map(([method], at) =>
    h("button", {
      type: "button",
      role: "tab",
      class: "column-tab",
      id: `tab-${method}`,
      "aria-controls": `column-${method}`,
      onclick: () => store.update({ tab: method }),
      onkeydown: (event) => steer(event, at),
    }),
  );
  root.before(h("div", { class: "column-tabs", role: "tablist", "aria-label": "Method" }, ...tabs));

  function steer(event, at) {
    if (!(event.key in TAB_KEYS)) return;
    const to = Math.max(0, Math.min(METHODS.length - 1, at + TAB_KEYS[event.key]));
    store.update({ tab: METHODS[to][0] });
    tabs[to].focus();
    event.preventDefault();
  }

  function show() {
    const { tab, reading } = store.get();
    METHODS.forEach(([method, , short], at) => {
      const chosen = method === tab;
      tabs[at].setAttribute("aria-selected", String(chosen));
      tabs[at].setAttribute("tabindex", chosen ? "0" : "-1");
      if (!reading) return;
      const said = h("span", { class: "hint" }, newness(reading, method));
      set(tabs[at], h("strong", {}, short), " ", said);
      const column = root.querySelector(`.column.${method}`);
      column.classList.toggle("chosen", chosen);
      if (NARROW.matches) column.setAttribute("role", "tabpanel");
      else column.removeAttribute("role");
    });
  }
  store.on(["tab"], show);
  NARROW.addEventListener("change", show);
  return show;
}

/**
 * Lines between the columns: solid from one column to the next, dashed where a passage skips MMR.
 * @param {HTMLElement} root the columns @param {SVGElement} svg over all of it
 */
function connect(root, svg, reading) {
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
