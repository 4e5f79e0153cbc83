/**
 * The question and its options: form, ready questions, collections.
 */

import { call } from "../api.js";
import { button, byId, h, quoted, set } from "../dom.js";
import { held } from "./permalink.js";
import { MOST_ALSO } from "./state.js";

/** The collection that the ready questions are about. */
const DEMO = "demo";

/** @param {any} store @param {ReturnType<import("./explore.js").createExplorer>} explorer */
export function mountQuery(store, explorer) {
  const field = Object.fromEntries(
    ["query", "collection", "k", "tokens", "pool", "mmr", "filter"].map((id) => [id, byId(id)]),
  );
  const also = byId("also");
  const byK = byId("by-k");
  const byTokens = byId("by-tokens");

  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.query.value.trim()) ask();
  });
  field.collection.addEventListener("change", () =>
    ask({ collection: field.collection.value, marks: new Set(), seen: [] }),
  );
  for (const id of ["pool", "filter", "mmr"]) field[id].addEventListener("change", () => ask());
  for (const one of [byK, byTokens, field.k, field.tokens]) one.addEventListener("change", resize);

  /** The form as it stands, with a question that was typed and not asked yet; its marks begin anew. */
  function taken() {
    const before = store.get();
    const query = field.query.value.trim() || before.query;
    const further = also.value.trim();
    const known = !further || [query, ...before.also].includes(further) || before.also.length >= MOST_ALSO;
    return {
      query,
      also: known ? before.also : [...before.also, further],
      marks: query === before.query ? before.marks : new Set(),
      size: byTokens.checked ? "tokens" : "k",
      k: number("k"),
      tokens: number("tokens"),
      pool: number("pool"),
      mmr: number("mmr"),
      filter: field.filter.value.trim(),
      step: null,
    };
  }
  function number(id) {
    const value = held(id, Number(field[id].value));
    const now = Number.isFinite(value) && field[id].value !== "" ? value : store.get()[id];
    field[id].value = String(now);
    return now;
  }
  /** One update for all: the entry of the history that is left keeps what belonged to it. */
  function ask(change = {}) {
    store.update({ ...taken(), why: null, ...change });
    if (!("also" in change)) also.value = "";
    explorer.everything();
  }
  function resize() {
    const now = taken();
    if (["query", "also"].some((key) => now[key] !== store.get()[key])) return ask();
    store.update(now);
    return explorer.size();
  }

  store.on(["query", "collection", "size", "k", "tokens", "pool", "mmr", "filter"], (state, before) => {
    for (const id of Object.keys(field)) {
      // What is being written stays, until the state says something else.
      const free = id !== "query" && document.activeElement !== field[id];
      if (free || state[id] !== before[id]) show(field[id], String(state[id]));
    }
    byK.checked = state.size === "k";
    byTokens.checked = state.size === "tokens";
    field.k.disabled = state.size !== "k";
    field.tokens.disabled = state.size !== "tokens";
    if (state.filter) byId("more").open = true;
    byId("questions").hidden = state.collection !== DEMO;
  });

  return {
    ask,
    /** Fill the list of collections; the address may name one that is not there. @returns {Promise<boolean>} whether the demo is asked */
    async collections() {
      const { collections } = await call("collections");
      const standard = collections.find((one) => one.default) ?? collections[0];
      const chosen = store.get().collection || standard?.name || "";
      const options = collections.map((one) =>
        h("option", { value: one.name }, `${one.name} (${one.passages})`),
      );
      if (!collections.some((one) => one.name === chosen))
        options.push(h("option", { value: chosen }, chosen));
      set(field.collection, ...options);
      field.collection.value = chosen;
      store.update({ collection: chosen });
      return chosen === DEMO;
    },
    /** Ready questions as buttons. @returns {Promise<string[]>} */
    async questions() {
      const { questions } = await call("questions");
      set(byId("questions"), ...questions.map(chip));
      return questions.map((one) => one.text);
    },
  };

  function chip(one) {
    const chosen = button({ class: "chip", title: one.wants }, quoted(one.text, 140));
    chosen.addEventListener("click", () => {
      show(field.query, one.text);
      show(also, "");
      ask({ marks: new Set(), filter: "", also: [], seen: [] });
    });
    return h("li", {}, chosen);
  }
}

/** A value that is there already is not set again: the caret would move. */
function show(input, value) {
  if (input.value !== value) input.value = value;
}
