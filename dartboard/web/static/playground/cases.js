/**
 * The query with the passages that the reader calls relevant, saved as a case that `dartboard eval` reads.
 */

import { announce } from "../chrome.js";
import { call, download } from "../api.js";
import { button, h, set } from "../dom.js";
import { keep } from "../jobs.js";
import { count } from "../numbers.js";

/** @param {HTMLElement} root @param {any} store */
export function mountCases(root, store) {
  const name = h("input", {
    type: "text",
    id: "case-name",
    required: true,
    maxlength: "64",
    pattern: "[A-Za-z0-9][A-Za-z0-9_.\\-]*",
    title: "Letters, digits, dot, dash and underscore",
    value: "playground",
  });
  const marked = h("strong", { id: "case-count" });
  const said = h("p", { class: "hint case-said", role: "status" });
  const form = h(
    "form",
    { class: "case-form", id: "case-form" },
    h("span", {}, marked, " marked relevant for this question."),
    h("label", { for: "case-name" }, "Save in"),
    name,
    h("button", { type: "submit", class: "primary" }, "Save as evaluation case"),
    button(
      {
        id: "case-download",
        onclick: () => keep(`${name.value || "case"}.json`, asFile(bodyOf(store.get(), name.value))),
      },
      "Download",
    ),
    button({ class: "quiet", onclick: () => store.update({ marks: new Set() }) }, "Clear"),
  );
  set(root, form, said);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const body = bodyOf(store.get(), name.value);
      const answer = await call("cases", { json: body });
      const zip = `cases/${encodeURIComponent(answer?.name ?? body.name)}.zip`;
      const link = button(
        {
          class: "link",
          id: "case-zip",
          onclick: async () => {
            try {
              keep(`${body.name}.zip`, await download(zip));
            } catch (error) {
              said.textContent = error.message;
            }
          },
        },
        "Download all cases of this name",
      );
      set(said, `Saved. ‘dartboard eval’ reads it. `, link);
      announce("Case saved");
    } catch (error) {
      said.textContent = `${error.message} The case is still here: ‘Download’ keeps it.`;
    }
  });
  store.on(["marks", "reading"], (state, before) => {
    root.hidden = state.marks.size === 0;
    marked.textContent = count(state.marks.size, "passage");
    if (state.marks !== before.marks) said.textContent = "";
  });
}

function bodyOf(state, name) {
  const { reading } = state;
  const known = reading.candidates.map((one) => one.id);
  return {
    name,
    collection: reading.data.collection,
    query: reading.data.query,
    relevant: [...state.marks].sort(),
    candidates: known,
  };
}

function asFile(body) {
  return new Blob([JSON.stringify(body, null, 2), "\n"], { type: "application/json" });
}
