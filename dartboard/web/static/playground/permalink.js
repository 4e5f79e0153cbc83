/**
 * The view as the part of the address after "#": readable, and restored by opening it.
 */

import { MOST_ALSO, MOST_SEEN } from "./state.js";

/** The least and the most that the form takes. */
const LIMITS = { k: [1, 50], tokens: [1, 100000], pool: [2, 300], mmr: [0, 1] };
const NUMBERS = [...Object.keys(LIMITS), "step"];
const TEXTS = { q: "query", c: "collection", filter: "filter", why: "why" };

/**
 * @param {import("./state.js").State} state
 * @param {import("./state.js").State} standard values that need not be written
 * @returns {string} without "#"
 */
export function toHash(state, standard) {
  const parts = new URLSearchParams();
  for (const [name, key] of Object.entries(TEXTS)) {
    if (state[key] && state[key] !== standard[key]) parts.set(name, state[key]);
  }
  for (const name of ["also", "seen"]) for (const one of state[name]) parts.append(name, one);
  parts.set(state.size, String(state[state.size]));
  if (state.sigma !== "auto") parts.set("sigma", String(state.sigma));
  for (const name of ["pool", "mmr", "step"]) {
    if (state[name] !== null && state[name] !== standard[name]) parts.set(name, String(state[name]));
  }
  for (const id of [...state.marks].sort()) parts.append("relevant", id);
  return parts.toString();
}

/**
 * What an address says about the view; what it does not say, or says wrongly, is left out; numbers are held
 * to the form's limits.
 * @param {string} hash with or without "#"
 * @returns {Partial<import("./state.js").State>}
 */
export function fromHash(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {any} */
  const view = {};
  for (const [name, key] of Object.entries(TEXTS)) {
    if (parts.get(name)) view[key] = parts.get(name);
  }
  for (const name of NUMBERS) {
    const value = Number(parts.get(name) ?? "");
    if (parts.get(name) && Number.isFinite(value) && value >= 0 && (value > 0 || name === "mmr")) {
      view[name] = held(name, value);
    }
  }
  if (view.tokens !== undefined) view.size = "tokens";
  else if (view.k !== undefined) view.size = "k";
  const sigma = Number(parts.get("sigma") ?? "");
  if (parts.get("sigma") && Number.isFinite(sigma) && sigma > 0) view.sigma = sigma;
  for (const [name, most] of [["also", MOST_ALSO], ["seen", MOST_SEEN]]) {
    const given = [...new Set(parts.getAll(name).map((one) => one.trim()))].filter(Boolean);
    if (given.length) view[name] = given.slice(0, most);
  }
  if (parts.has("relevant")) view.marks = new Set(parts.getAll("relevant"));
  return view;
}

/** A number within the form's limits. @param {string} name @param {number} value */
export function held(name, value) {
  const [least, most] = LIMITS[name] ?? [1, Infinity];
  return Math.min(most, Math.max(least, name === "mmr" ? value : Math.round(value)));
}
