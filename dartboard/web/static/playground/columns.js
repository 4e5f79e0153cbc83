/**
 * KNN, MMR and Dartboard side by side, each with how much it repeats itself and how much it covers.
 */

import { h, s, set } from "../dom.js";
import { card, refreshMarkers } from "./card.js";
import { connect } from "./connectors.js";
import { count, fixed, percent } from "./numbers.js";
import { METHODS, different, stepOf } from "./reading.js";
import { mountTabs } from "./tabs.js";

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
      h("strong", {}, `${different(state.reading, method)} different`),
      ` of ${count(set_.picks.length, "passage")}`,
    ),
    meter(
      "Redundancy",
      set_.redundancy,
      fixed(set_.redundancy),
      "Mean over the picks of the highest cosine to another pick",
    ),
    meter("Coverage", set_.coverage, percent(set_.coverage), "Share of the probability that the picks cover"),
    h("p", { class: "hint num" }, overlapText(data, method), h("span", {}, count(set_.tokens, "token"))),
  );
}

function meter(name, value, text, title) {
  const wide = `${(100 * Math.max(0, Math.min(1, value))).toFixed(1)}%`;
  return h(
    "div",
    { class: `meter ${name.toLowerCase()}`, title },
    h("span", {}, name),
    s(
      "svg",
      { "aria-hidden": "true" },
      s("rect", { class: "meter-rest", width: "100%", height: "100%" }),
      s("rect", { class: "meter-part", width: wide, height: "100%" }),
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
