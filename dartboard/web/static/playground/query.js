/**
 * The question and its options: form, ready questions, collections.
 */

import { call } from "../api.js";
import { byId, h, quoted, set } from "../dom.js";

/** @param {any} store @param {ReturnType<import("./explore.js").createExplorer>} explorer */
export function mountQuery(store, explorer) {
  const field = Object.fromEntries(["query", "collection", "k", "tokens", "pool", "mmr", "filter"].map((id) => [id, byId(id)]));
  const byK = byId("by-k");
  const byTokens = byId("by-tokens");

  function fresh() {
    store.update({ step: null, why: null });
    explorer.everything();
  }
  function number(id, least, most) {
    const value = Math.min(most, Math.max(least, Number(field[id].value)));
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
    store.update({ pool: Math.round(number("pool", 2, 300)), mmr: number("mmr", 0, 1), filter: field.filter.value.trim() });
  }
  function resize() {
    store.update({
      size: byTokens.checked ? "tokens" : "k",
      k: Math.round(number("k", 1, 50)),
      tokens: Math.round(number("tokens", 1, 100000)),
      step: null,
    });
    explorer.size();
  }

  store.on(["query", "collection", "size", "k", "tokens", "pool", "mmr", "filter"], (state) => {
    for (const id of Object.keys(field)) {
      if (document.activeElement !== field[id] || field[id].type === "number") field[id].value = String(state[id]);
    }
    byK.checked = state.size === "k";
    byTokens.checked = state.size === "tokens";
    field.k.disabled = state.size !== "k";
    field.tokens.disabled = state.size !== "tokens";
    if (state.filter || state.pool !== 60) byId("more").open = true;
  });

  return {
    /** Fill the list of collections; the address may name one that is not there. */
    async collections() {
      const answer = await call("collections");
      const names = (answer.collections ?? []).map((one) => (typeof one === "string" ? one : one.name));
      const chosen = store.get().collection || answer.default || (names.includes("demo") ? "demo" : names[0]) || "";
      if (chosen && !names.includes(chosen)) names.push(chosen);
      set(field.collection, ...names.map((name) => h("option", { value: name }, name)));
      field.collection.value = chosen;
      store.update({ collection: chosen });
    },
    /** Ready questions as buttons. @returns {Promise<string[]>} */
    async questions() {
      const answer = await call("questions");
      const list = (answer.questions ?? answer ?? []).map((one) => (typeof one === "string" ? { question: one } : one));
      set(byId("questions"), ...list.map((one) => chip(one)));
      return list.map((one) => one.question ?? one.text);
    },
  };

  function chip(one) {
    const text = one.question ?? one.text;
    const button = h("button", { type: "button", class: "chip", title: one.why ?? one.wants ?? "" }, quoted(text, 140));
    button.addEventListener("click", () => {
      field.query.value = text;
      if (store.get().collection !== "demo" && [...field.collection.options].some((each) => each.value === "demo")) {
        store.update({ collection: "demo" });
      }
      store.update({ query: text, marks: new Set() });
      fresh();
    });
    return h("li", {}, button);
  }
}
