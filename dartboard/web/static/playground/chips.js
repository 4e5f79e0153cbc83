/**
 * Chips under the question box: further questions that are answered together with it, each with how far it is
 * covered, and the passages that count as seen.
 */

import { announce } from "../chrome.js";
import { button, byId, h, quoted, s, set, shown } from "../dom.js";
import { count, percent } from "../numbers.js";
import { tag } from "./card.js";
import { MOST_ALSO, MOST_SEEN } from "./state.js";

/** @param {any} store @param {(change: object) => void} ask asks again, with a change of the state */
export function mountChips(store, ask) {
  const box = byId("also");
  const list = byId("also-list");
  const seen = byId("seen");
  const follow = byId("follow-up");

  byId("also-add").addEventListener("click", () => {
    if (box.value.trim()) byId("ask").requestSubmit();
    else box.focus();
  });
  box.addEventListener("keydown", (event) => {
    const { also } = store.get();
    if (event.key !== "Backspace" || box.value || !also.length) return;
    event.preventDefault();
    remove(also.length - 1);
  });
  follow.addEventListener("click", () => {
    const { reading, seen: before } = store.get();
    const picks = reading.picks.map((index) => reading.candidates[index].id);
    ask({ seen: [...new Set([...before, ...picks])] });
    byId("query").focus();
    byId("query").select();
    announce(`${count(picks.length, "passage")} count as seen. Ask a follow-up.`);
  });

  function remove(at) {
    const { also } = store.get();
    ask({ also: also.filter((_, other) => other !== at) });
    const buttons = list.querySelectorAll("button");
    (buttons[Math.min(at, buttons.length - 1)] ?? box).focus();
    announce(`Question removed: ${shown(also[at], 100)}`);
  }

  function question(text, at, state) {
    const covered = coverageOf(state, at);
    const label = `Remove question ${at + 1}: ${shown(text, 100)}`;
    return h(
      "li",
      { class: `part q${at % 8}`, title: shown(text, 600) },
      tag(at, text),
      h("span", { class: "part-text" }, quoted(text, 140)),
      covered !== null && meter(covered),
      at > 0 &&
        button(
          {
            class: "quiet part-remove",
            "aria-label": label,
            onclick: () => remove(at - 1),
            onkeydown(event) {
              if (!["Backspace", "Delete"].includes(event.key)) return;
              event.preventDefault();
              remove(at - 1);
            },
          },
          "✕",
        ),
    );
  }

  store.on(["also", "query", "reading"], (state) => {
    const { also } = state;
    list.hidden = !also.length;
    set(list, ...(also.length ? [state.query, ...also].map((text, at) => question(text, at, state)) : []));
    box.disabled = byId("also-add").disabled = also.length >= MOST_ALSO;
  });
  store.on(["seen"], (state) => {
    seen.hidden = !state.seen.length;
    set(
      seen,
      h("span", { class: "part-text" }, `${count(state.seen.length, "passage")} seen`),
      button(
        {
          class: "quiet part-remove",
          "aria-label": "Forget what was seen",
          onclick() {
            ask({ seen: [] });
            follow.focus();
          },
        },
        "✕",
      ),
    );
  });
  store.on(["reading", "seen"], ({ reading, seen: ids }) => {
    const picks = reading?.picks.length ?? 0;
    follow.disabled = !picks || ids.length + picks > MOST_SEEN;
  });
}

/** How far the picks cover a question; null while another answer is shown. */
function coverageOf({ query, also, reading }, at) {
  const asked = reading?.data.questions?.[at];
  return asked?.text === [query, ...also][at] ? reading.data.methods.dartboard.question_coverage[at] : null;
}

function meter(covered) {
  return h(
    "span",
    { class: "part-meter num", title: "Share of what this question may be after that the picks cover" },
    s(
      "svg",
      { "aria-hidden": "true" },
      s("rect", { class: "meter-rest", width: "100%", height: "100%" }),
      s("rect", { class: "part-cover", width: `${(100 * covered).toFixed(1)}%`, height: "100%" }),
    ),
    h("span", { class: "hidden" }, "covered "),
    percent(covered),
  );
}
