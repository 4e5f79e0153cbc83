/**
 * What the page shows, in one place. Views subscribe; only `update` changes anything.
 */

/**
 * @typedef {object} State
 * @property {string} query
 * @property {string} collection "" for the service's default
 * @property {string[]} also further questions, answered together with the first
 * @property {string[]} seen ids of passages that the reader has already
 * @property {"k"|"tokens"} size what limits the set
 * @property {number} k
 * @property {number} tokens
 * @property {number|"auto"} sigma what was asked for
 * @property {number} pool candidates that the retriever gives
 * @property {number} mmr MMR's weight of relevance
 * @property {string} filter
 * @property {number|null} step picks shown so far; null: all
 * @property {string|null} why id of the candidate that is being explained
 * @property {Set<string>} marks ids that the reader calls relevant
 * @property {"top_k"|"mmr"|"dartboard"} tab the column that is shown where only one fits
 * @property {number|null} hover candidate under the pointer or focus
 * @property {import("./reading.js").Reading|null} reading
 * @property {boolean} busy
 * @property {import("../api.js").Problem|null} problem
 */

/** @returns {State} */
export function initialState() {
  return {
    query: "",
    also: [],
    seen: [],
    collection: "",
    size: "k",
    k: 5,
    tokens: 500,
    sigma: "auto",
    pool: 100,
    mmr: 0.7,
    filter: "",
    step: null,
    why: null,
    marks: new Set(),
    tab: "dartboard",
    hover: null,
    reading: null,
    busy: false,
    problem: null,
  };
}

/** The most that the service takes: further questions, passages seen, and candidates in all. */
export const MOST_ALSO = 15;
export const MOST_SEEN = 300;
const MOST_CANDIDATES = 1200;

/** What the view asks the service for. @param {State} state @param {"k"|"top_k"} k what the endpoint calls it */
export function searchBody(state, k) {
  const body = { query: state.query };
  if (state.collection) body.collection = state.collection;
  if (state.size === "tokens") body.token_budget = state.tokens;
  else body[k] = state.k;
  body.sigma = state.sigma;
  const room = Math.floor((MOST_CANDIDATES - state.seen.length) / (1 + state.also.length));
  const pool = Math.min(state.pool, room);
  body.triage_k = state.size === "k" ? Math.max(pool, state.k) : pool;
  if (state.also.length) body.also = state.also;
  if (state.seen.length) body.seen = state.seen;
  if (state.filter) body.filter = state.filter;
  return body;
}

/** A store of one object. @param {State} state */
export function createStore(state) {
  const views = [];
  return {
    get: () => state,
    /** @param {Partial<State>} change */
    update(change) {
      const before = state;
      state = { ...state, ...change };
      for (const { keys, view } of views) {
        if (keys.some((key) => before[key] !== state[key])) view(state, before);
      }
    },
    /** Calls `view` whenever one of `keys` changes. @param {(keyof State)[]} keys */
    on(keys, view) {
      views.push({ keys, view });
    },
  };
}
