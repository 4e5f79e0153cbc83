/**
 * The playground: puts the views together, runs the first question, keeps the address in step.
 */

import { Problem, address, call, key } from "../api.js";
import { announce, copies, mountChrome } from "../chrome.js";
import { button, byId, h, quoted, set } from "../dom.js";
import { count, fixed, percent, sigmaText } from "../numbers.js";
import { mountAnswer } from "./answer.js";
import { mountCases } from "./cases.js";
import { mountChips } from "./chips.js";
import { mountColumns } from "./columns.js";
import { createExplorer } from "./explore.js";
import { mountMap } from "./map.js";
import { fromHash, toHash } from "./permalink.js";
import { mountQuery } from "./query.js";
import { different, newness } from "./reading.js";
import { mountSigma } from "./sigma.js";
import { asCurl, asPython, retrieveBody } from "./snippets.js";
import { createStore, initialState, searchBody } from "./state.js";
import { mountSteps } from "./steps.js";
import { mountStrip } from "./strip.js";
import { mountWhy } from "./why.js";

/** What makes a new question, and a new entry in the browser's history. */
const ASKED = ["query", "also", "seen"];

const store = createStore({ ...initialState(), busy: true });
let restoring = false;
const explorer = createExplorer(store);
mountChrome("playground");
const form = mountQuery(store, explorer);
mountChips(store, form.ask);
store.on(["reading"], ({ reading }) => (byId("shown").hidden = !reading || !reading.candidates.length));
mountMap(byId("map"), byId("map-tools"), store);
mountSteps(byId("steps"), byId("steps-tools"), store);
mountColumns(byId("columns"), store);
mountSigma(byId("sigma-bar"), store, explorer.sigma);
mountStrip(byId("strip"), byId("strip-tools"), store, explorer.sigma);
mountWhy(byId("why"), store, form.ask);
mountCases(byId("case"), store);
const answer = mountAnswer(store);

store.on(["busy"], (state) => byId("results").setAttribute("aria-busy", String(state.busy)));
store.on(["query"], ({ query }) => (byId("parts").hidden = byId("copying").hidden = !query));
store.on(["collection"], ({ query }, before) => {
  if (!query && before.collection) invite();
});
store.on(["reading"], showVerdict);
store.on(["problem"], showProblem);
store.on(
  [...ASKED, "collection", "size", "k", "tokens", "sigma", "pool", "mmr", "filter", "step", "why", "marks"],
  keepAddress,
);
addEventListener("hashchange", restore);
document.addEventListener("key-given", start);
let contextTokens = 0;
copies(byId("copy-context"), context, () => `Copied ${count(contextTokens, "token")}`);
copies(byId("copy-link"), () => location.href);
copies(byId("copy-curl"), () => asCurl(retrieveBody(store.get()), address("retrieve").href, Boolean(key())));
copies(byId("copy-python"), () => asPython(retrieveBody(store.get()), address("retrieve").href, Boolean(key())));
start();

/** First visit: the first ready question runs by itself. */
async function start() {
  store.update(fromHash(location.hash));
  try {
    const [demo, questions] = await Promise.all([form.collections(), form.questions(), answer.find()]);
    const typed = byId("query").value.trim();
    if (!store.get().query && !typed && demo && questions.length) store.update({ query: questions[0] });
    if (store.get().query) explorer.everything();
    else {
      invite();
      byId("query").focus();
    }
  } catch (problem) {
    store.update({ problem, busy: false });
  }
}

/** The context of the view as text; what goes wrong is shown above the results. */
async function context() {
  const state = store.get();
  if (!state.query.trim()) return "";
  try {
    const built = await call("context", { json: searchBody(state, "top_k") });
    store.update({ problem: null });
    contextTokens = built.tokens;
    return built.text;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    store.update({ problem: error });
    return "";
  }
}

/** Nothing was asked yet: says what there is to ask, with the largest documents to begin with. */
async function invite() {
  const { collection } = store.get();
  const current = () => !store.get().query && store.get().collection === collection;
  store.update({ busy: false, problem: null });
  byId("loading").hidden = true;
  byId("empty").hidden = false;
  set(byId("empty"), h("p", {}, "Ask the collection something."));
  try {
    const { documents, total } = await call(`collections/${encodeURIComponent(collection)}/documents`);
    if (!current()) return;
    const largest = documents.sort((a, b) => b.passages - a.passages).slice(0, 6);
    const none = h("p", { class: "hint" }, "It has no documents yet: ", h("a", { href: "documents" }, "add some"), ".");
    const some = h("p", { class: "hint" }, `It has ${count(total, "document")}. Begin with what one of them is about:`);
    set(
      byId("empty"),
      h("p", {}, "Ask the collection something."),
      total ? some : none,
      total > 0 && h("ul", { class: "questions", id: "beginnings" }, ...largest.map(beginning)),
    );
  } catch (problem) {
    if (current()) store.update({ problem });
  }
}

/** A document's title, to be asked about. */
function beginning({ id, title }) {
  const query = title || id;
  return h("li", {}, button({ class: "chip", onclick: () => form.ask({ query }) }, quoted(query, 80)));
}

function showVerdict({ reading }) {
  if (!reading) return;
  const nothing = reading.candidates.length === 0;
  byId("loading").hidden = true;
  byId("empty").hidden = !nothing;
  byId("empty").textContent = store.get().seen.length
    ? "Nothing new: what was found has been seen, or the filter leaves nothing over."
    : "Nothing found. The collection is empty, or the filter leaves nothing over.";
  const { data } = reading;
  const irrelevant = nothing ? "" : data.relevance.message;
  byId("irrelevant").hidden = !irrelevant;
  byId("irrelevant").textContent = irrelevant;
  byId("hint-questions").hidden = !data.questions;
  set(byId("verdict"), ...(nothing ? [] : verdictParts(reading)));
  byId("foot").textContent =
    `${data.model} · ${data.retriever} · ${count(reading.candidates.length, "candidate")} · ` +
    `σ ${sigmaText(data.sigma.value)} · answered in ${fixed(1000 * data.seconds.total, 0)} ms`;
  announce(nothing ? "Nothing found" : `${irrelevant} ${byId("verdict").textContent}`.trim());
}

function verdictParts(reading) {
  const { top_k: nearest, mmr, dartboard } = reading.data.methods;
  if (![nearest, mmr, dartboard].some((method) => method.picks.length)) {
    const { covered_before: before } = dartboard;
    if (before) return [h("strong", {}, "Nothing new"), `: what was seen covers ${percent(before)}.`];
    return [h("strong", {}, "No passage fits"), " into this token budget."];
  }
  const strong = (method) => {
    const size = count(reading.data.methods[method].picks.length, "passage");
    return h("strong", {}, `${size}, ${newness(reading, method)}`);
  };
  const within = nearest.picks.every((index) => reading.place.has(index));
  if (within && nearest.picks.length === dartboard.picks.length) {
    return ["Nearest neighbours and Dartboard choose the ", h("strong", {}, "same passages"), " at this σ."];
  }
  const before = dartboard.covered_before;
  const cover = before ? `with what was seen (${percent(before)}), they cover` : "they cover";
  const after = reading.data.questions ? "the questions" : "the question";
  const [mine, theirs] = [different(reading, "dartboard"), different(reading, "top_k")];
  const beside = mine === theirs ? ", as many as nearest neighbours" : `, not ${theirs} as nearest neighbours`;
  const end = `${beside}; ${cover} ${percent(dartboard.coverage)} of what ${after} may be after.`;
  return ["Dartboard: ", strong("dartboard"), end];
}

function showProblem({ problem }) {
  const box = byId("problem");
  box.hidden = !problem || problem.status === 401;
  if (!problem) return;
  byId("loading").hidden = true;
  const again = button({ class: "small", onclick: start }, "Try again");
  const sorry = h("strong", {}, "That did not work. ");
  set(box, h("p", { class: "problem" }, sorry, quoted(problem.message, 600), " ", again));
}

/** A new question makes a new entry in the browser's history; anything else changes the entry. */
function keepAddress(state, before) {
  const hash = `#${toHash(state, initialState())}`;
  if (hash === location.hash || !state.query) return;
  const asked = before.query && ASKED.some((key) => before[key] !== state[key]) && !restoring;
  history[asked ? "pushState" : "replaceState"](null, "", hash);
}

/** The reader changed the address, or went back. */
function restore() {
  const { reading, collection, tab } = store.get();
  restoring = true;
  store.update({ ...initialState(), collection, tab, ...fromHash(location.hash), reading });
  restoring = false;
  explorer.everything();
}
