/**
 * A "?" beside a term: a click shows one sentence that explains it; Escape or a click elsewhere hides it.
 */

import { announce } from "../chrome.js";
import { button, h } from "../dom.js";

const SENTENCES = {
  "σ":
    "σ is how far from the question its answer may lie: with a small σ only the nearest passages count, " +
    "with a large one the picks spread out.",
  "P(t|q)":
    "P(t|q) is the probability that passage t is what question q is after; over all candidates it adds up " +
    "to 100 %, and near-duplicates of a better passage have none.",
  stress:
    "Stress is how much the flat map bends the distances between passages, from 0 for not at all; distances " +
    "to the question are always exact.",
  "who survives":
    "Each row is a passage, filled at every σ at which Dartboard picks it: a passage with a long bar is " +
    "picked whatever σ is, one with a short bar depends on it.",
};
const WIDE = 300;
const TALL = 130;

/**
 * @param {keyof typeof SENTENCES} term
 * @param {Record<string, any>} [attributes] of the button
 * @returns {HTMLElement} the button, with its sentence
 */
export function help(term, attributes = {}) {
  const text = h("span", { class: "help-text", popover: "auto", role: "note" }, SENTENCES[term]);
  const mark = button({ class: "help-mark", "aria-label": `What does “${term}” mean?`, ...attributes }, "?");
  mark.popoverTargetElement = text;
  const hide = () => text.hidePopover();
  text.addEventListener("beforetoggle", ({ newState }) => {
    if (newState === "open") place(text, mark.getBoundingClientRect());
  });
  text.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") {
      announce(text.textContent);
      document.addEventListener("scroll", hide, { capture: true, once: true });
    } else document.removeEventListener("scroll", hide, { capture: true });
  });
  return h("span", { class: "help" }, mark, text);
}

/** Below the mark, or above it where there is no room; never beyond the window's edge. */
function place(text, at) {
  const wide = Math.min(WIDE, innerWidth - 16);
  const below = at.bottom + TALL < innerHeight;
  text.style.width = `${wide}px`;
  text.style.left = `${Math.max(8, Math.min(at.left - 8, innerWidth - wide - 8))}px`;
  text.style.top = below ? `${at.bottom + 6}px` : "auto";
  text.style.bottom = below ? "auto" : `${innerHeight - at.top + 6}px`;
}
