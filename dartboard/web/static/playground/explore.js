/**
 * Asks the service and keeps only the newest answer.
 *
 * A new question asks for everything. A change of σ asks for a selection only and keeps map and sweep; a
 * change of size needs the sweep again, not the map.
 */

import { Problem, call } from "../api.js";
import { read } from "./reading.js";

/** @param {ReturnType<import("./state.js").createStore>} store */
export function createExplorer(store) {
  let running = new AbortController();
  let timer = 0;

  /** @param {{layout: boolean, sweep: boolean}} parts */
  async function ask(parts) {
    clearTimeout(timer);
    running.abort();
    const mine = (running = new AbortController());
    const state = store.get();
    if (!state.query.trim()) return;
    const before = parts.layout ? null : state.reading;
    store.update({ busy: true });
    try {
      const data = await call("explore", { json: bodyOf(state, parts), signal: mine.signal });
      if (mine !== running) return;
      const reading = read(data, before);
      store.update({ reading, problem: null, busy: false, ...fitting(store.get(), reading) });
    } catch (error) {
      if (error.name === "AbortError" || mine !== running) return;
      store.update({ busy: false, problem: error instanceof Problem ? error : asProblem(error) });
    }
  }

  return {
    /** A new question, collection, filter or pool. */
    everything: () => ask({ layout: true, sweep: true }),
    /** Another number of passages or tokens. */
    size: () => ask({ layout: false, sweep: true }),
    /** Another σ: waits for the hand to rest a moment. */
    sigma() {
      clearTimeout(timer);
      timer = setTimeout(() => ask({ layout: false, sweep: false }), 30);
    },
  };
}

function bodyOf(state, { layout, sweep }) {
  const body = {
    query: state.query,
    sigma: state.sigma,
    triage_k: state.size === "k" ? Math.max(state.pool, state.k) : state.pool,
    mmr_relevance: state.mmr,
    layout,
    sweep,
  };
  if (state.size === "tokens") body.token_budget = state.tokens;
  else body.k = state.k;
  if (state.collection) body.collection = state.collection;
  if (state.filter) body.filter = state.filter;
  return body;
}

/** Selections that the new answer no longer has are let go. */
function fitting(state, reading) {
  const steps = reading.data.steps.length;
  const known = reading.candidates.some((one) => one.id === state.why);
  return {
    step: state.step !== null && state.step >= steps ? null : state.step,
    why: known ? state.why : null,
    hover: null,
  };
}

function asProblem(error) {
  console.error(error);
  return new Problem(0, "The service's answer could not be read. Is it of the same version as this page?");
}
