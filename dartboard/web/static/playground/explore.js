/**
 * Asks the service and keeps only the newest answer.
 *
 * A new question asks for everything. A change of σ asks for a selection only and keeps map and sweep; a
 * change of size needs the sweep again, not the map. While σ moves, one request is under way at a time, and
 * the next one takes the latest value: the page follows the hand as fast as answers come.
 */

import { Problem, call } from "../api.js";
import { read } from "./reading.js";
import { searchBody } from "./state.js";

/** Milliseconds after which a slow answer is given up for a newer σ. */
const PATIENCE = 150;

/** @param {ReturnType<import("./state.js").createStore>} store */
export function createExplorer(store) {
  let running = new AbortController();
  let flying = false;
  let waiting = false;
  let timer = 0;
  /** Parts that were asked for and have not come yet. */
  let owed = { layout: true, sweep: true };

  /** @param {{layout: boolean, sweep: boolean}} wanted */
  async function ask(wanted) {
    clearTimeout(timer);
    waiting = false;
    running.abort();
    const mine = (running = new AbortController());
    const state = store.get();
    if (!state.query.trim()) return;
    const parts = { layout: wanted.layout || owed.layout, sweep: wanted.sweep || owed.sweep };
    const before = parts.layout ? null : state.reading;
    owed = parts;
    flying = true;
    store.update({ busy: true });
    try {
      const json = { ...searchBody(state, "k"), mmr_relevance: state.mmr, ...parts };
      const data = await call("explore", { json, signal: mine.signal });
      if (mine !== running) return;
      flying = false;
      owed = { layout: false, sweep: false };
      const reading = read(data, before);
      store.update({ reading, problem: null, busy: waiting, ...fitting(store.get(), reading) });
    } catch (error) {
      if (error.name === "AbortError" || mine !== running) return;
      flying = false;
      store.update({ busy: false, problem: error instanceof Problem ? error : asProblem(error) });
    }
    next();
  }

  function next() {
    if (waiting) ask({ layout: false, sweep: false });
  }

  return {
    /** A new question, collection, filter or pool. */
    everything: () => ask({ layout: true, sweep: true }),
    /** Another number of passages or tokens. */
    size: () => ask({ layout: false, sweep: true }),
    /** Another σ. */
    sigma() {
      waiting = true;
      clearTimeout(timer);
      if (flying) timer = setTimeout(next, PATIENCE);
      else next();
    },
  };
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
