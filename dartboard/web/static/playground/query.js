/**
 * The question and its options: form, ready questions, collections.
 */

import { call } from "../api.js";
import { button, byId, h, quoted, set } from "../dom.js";
import { held } from "./permalink.js";

/** The collection that the ready questions are about. */
const DEMO = "demo";

/** @param {any} store @param {ReturnType<import("./explore.js").createExplorer>} explorer */
export function mountQuery(store, explorer) {
  const field = Object.fromEntries(
    ["query", "collection", "k", "tokens", "pool", "mmr", "filter"].map((id) => [id, byId(id)]),
  );
  const byK = byId("by-k");
  const byTokens = byId("by-tokens");

  function fresh() {
    store.update({ step: null, why: null });
    explorer.everything();
  }
  function number(id) {
    const value = held(id, Number(field[id].value));
    return Number.isFinite(value) && field[id].value !== "" ? value : store.get()[id];
  }

  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    take();
    if (field.query.value.trim() !== store.get().query) store.update({ marks: new Set() });
    store.update({ query: field.query.value.trim() });
    fresh();
  });
  field.collection.addEventListener("change", () => {
    store.update({ collection: field.collection.value, marks: new Set() });
    fresh();
  });
  for (const radio of [byK, byTokens]) radio.addEventListener("change", resize);
  for (const id of ["k", "tokens"]) field[id].addEventListener("change", resize);
  for (const id of ["pool", "filter", "mmr"]) {
    field[id].addEventListener("change", () => {
      take();
      fresh();
    });
  }

  function take() {
    store.update({
      pool: number("pool"),
      mmr: number("mmr"),
      filter: field.filter.value.trim(),
    });
  }
  function resize() {
    store.update({
      size: byTokens.checked ? "tokens" : "k",
      k: number("k"),
      tokens: number("tokens"),
      step: null,
    });
    explorer.size();
  }

  store.on(["query", "collection", "size", "k", "tokens", "pool", "mmr", "filter"], (state) => {
    for (const id of Object.keys(field)) {
      if (document.activeElement !== field[id] || field[id].type === "number")
        field[id].value = String(state[id]);
    }
    byK.checked = state.size === "k";
    byTokens.checked = state.size === "tokens";
    field.k.disabled = state.size !== "k";
    field.tokens.disabled = state.size !== "tokens";
    if (state.filter) byId("more").open = true;
    byId("questions").hidden = state.collection !== DEMO;
  });

  return {
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
    const ask = button({ class: "chip", title: one.wants }, quoted(one.text, 140));
    ask.addEventListener("click", () => {
      store.update({ query: one.text, marks: new Set(), filter: "" });
      fresh();
    });
    return h("li", {}, ask);
  }
}
