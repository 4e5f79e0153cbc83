/**
 * An answer over the picks, as the service's language model writes it. The panel is there only where the
 * service has such a model. The text enters as text; a citation is a button that asks why that passage was
 * picked.
 */

import { Problem, call, events } from "../api.js";
import { announce } from "../chrome.js";
import { button, byId, h, quoted, set, shown } from "../dom.js";
import { searchBody } from "./state.js";

/** @param {any} store */
export function mountAnswer(store) {
  const panel = byId("answer-panel");
  const box = byId("answer");
  const tools = byId("answer-tools");
  let running = new AbortController();
  let model = "";

  /** Forget the answer: it belongs to another question or to other passages. */
  function clear() {
    running.abort();
    running = new AbortController();
    panel.removeAttribute("aria-busy");
    set(box);
    set(tools, button({ class: "small", id: "answer-go", onclick: ask }, "Answer"), note(`by ${model}`));
  }

  async function ask() {
    clear();
    const mine = running;
    const stop = button({ class: "small", id: "answer-stop", onclick: () => mine.abort() }, "Stop");
    const live = quoted("");
    panel.setAttribute("aria-busy", "true");
    set(tools, stop, note(`${model} is asked …`));
    set(box, h("p", { class: "answer-text" }, live));
    try {
      const json = { ...searchBody(store.get(), "top_k"), stream: true }; // the passages of the view
      for await (const one of events("ask", { json, signal: mine.signal })) {
        if (one.name === "text") live.append(shown(one.data.text));
        if (one.name === "answer") show(one.data);
      }
    } catch (error) {
      if (mine !== running) return;
      const stopped = error.name === "AbortError";
      box.append(stopped ? note("Stopped: this is not all.") : h("p", { class: "problem" }, quoted(told(error), 600)));
    }
    if (mine !== running) return;
    panel.removeAttribute("aria-busy");
    set(tools, button({ class: "small", id: "answer-go", onclick: ask }, "Answer again"), note(`by ${model}`));
  }

  function show(answer) {
    const nothing = answer.finish_reason === "no_passages";
    set(box, h("p", { class: "answer-text" }, ...(nothing ? ["Nothing was found."] : parts(answer))));
    const unknown = [...new Set(answer.unknown_citations.map((one) => `[${one.number}]`))];
    if (unknown.length) box.append(note(`${unknown.join(", ")}: there is no such passage.`));
    if (answer.finish_reason === "length") box.append(note("The answer was cut at the limit of tokens."));
    announce(`Answer: ${box.textContent}`);
  }

  /** The text with a button for every bracket that names passages; places count characters, not UTF-16 units. */
  function parts(answer) {
    const letters = Array.from(answer.answer);
    const found = [];
    let end = 0;
    for (const one of answer.citations) {
      if (one.start > end) found.push(quoted(letters.slice(end, one.start).join("")));
      end = Math.max(end, one.end);
      found.push(citation(one));
    }
    return [...found, quoted(letters.slice(end).join(""))];
  }

  function citation(one) {
    const label = `Passage ${one.number}: why it was picked`;
    const ask = () => store.update({ why: one.chunk_id });
    return button({ class: "citation", title: label, "aria-label": label, onclick: ask }, `[${one.number}]`);
  }

  store.on(["reading"], clear);
  return {
    /** Ask the service whether it answers at all. */
    async find() {
      model = (await call("health")).answer_model ?? "";
      panel.hidden = !model;
      if (model) clear();
    },
  };
}

function told(error) {
  if (error instanceof Problem) return error.message;
  console.error(error);
  return "The answer could not be read.";
}

function note(text) {
  return h("span", { class: "hint" }, quoted(text, 200));
}
