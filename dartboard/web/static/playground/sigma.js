/**
 * σ on a log scale: a slider that selects again at once, with the automatic value marked on it.
 */

import { button, h, set } from "../dom.js";
import { sigmaText } from "../numbers.js";
import { help } from "./help.js";

const FINE = 1000;
const SOURCES = {
  candidates: "from the candidates",
  given: "set by hand",
  calibration: "calibrated",
  model: "known for the model",
  fallback: "a fallback",
};

/** @param {HTMLElement} root @param {any} store @param {() => void} again selects again */
export function mountSigma(root, store, again) {
  const range = h("input", {
    type: "range",
    id: "sigma-range",
    min: "0",
    max: String(FINE),
    step: "1",
    "aria-label": "Sigma, log scale",
  });
  const value = h("output", { class: "num sigma-value", for: "sigma-range" });
  const source = h("span", { class: "hint sigma-source" });
  const tick = h("span", { class: "auto-tick", "aria-hidden": "true" });
  const auto = button({ class: "small", id: "sigma-auto" }, "Auto");
  set(
    root,
    h("div", { class: "sigma-now" }, value, help("σ"), source),
    h("span", { class: "hint sigma-end" }, "nearest"),
    h("div", { class: "sigma-track" }, tick, range),
    h("span", { class: "hint sigma-end" }, "spread out"),
    auto,
  );

  range.addEventListener("input", () => {
    const { reading } = store.get();
    if (!reading) return;
    const sigma = logScale(reading.data.sigma).at(Number(range.value) / FINE);
    store.update({ sigma: Number(sigma.toPrecision(4)) });
    again();
  });
  auto.addEventListener("click", () => {
    store.update({ sigma: "auto" });
    again();
  });

  store.on(["reading", "sigma"], (state) => {
    if (!state.reading) return;
    const { sigma, near_copies: copies } = state.reading.data;
    const places = logScale(sigma);
    const shown = state.sigma === "auto" ? sigma.auto : state.sigma;
    const place = Math.round(FINE * places.of(shown));
    if (Math.abs(Number(range.value) - place) > 1) range.value = String(place);
    range.setAttribute(
      "aria-valuetext",
      `sigma ${sigmaText(shown)}${state.sigma === "auto" ? ", automatic" : ""}`,
    );
    value.textContent = `σ ${sigmaText(shown)}`;
    const removed = copies ? `, ${copies} near-duplicate${copies === 1 ? "" : "s"} removed` : "";
    source.textContent =
      (state.sigma === "auto" ? (SOURCES[sigma.source] ?? sigma.source) : SOURCES.given) + removed;
    auto.disabled = state.sigma === "auto";
    auto.textContent = `Auto ${sigmaText(sigma.auto)}`;
    tick.style.left = `calc(8px + (100% - 16px) * ${places.of(sigma.auto).toFixed(4)})`;
  });
}

/** Between σ and a place in 0 … 1. @param {{low: number, high: number}} range */
export function logScale({ low, high }) {
  const span = Math.log(high / low) || 1;
  return {
    at: (place) => low * Math.exp(place * span),
    of: (sigma) => Math.max(0, Math.min(1, Math.log(sigma / low) / span)),
  };
}
