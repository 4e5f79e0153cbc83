/**
 * One passage in a column: its text, what stands for it, where it moved, what each retriever said.
 */

import { button, h, quoted, shown } from "../dom.js";
import { fixed, percent } from "../numbers.js";
import { help } from "./help.js";
import { named } from "./names.js";
import { MOST_SEEN } from "./state.js";
import { servedBy, tint } from "./reading.js";

const SHORT = 420;
const LONG = 20000;
const FITS = 150;

/**
 * @param {any} state @param {string} method @param {number} index of the candidate
 * @param {number} rank in the column, from 0
 * @param {any} store
 */
export function card(state, method, index, rank, store) {
  const { reading } = state;
  const one = reading.candidates[index];
  const owner = reading.owner[index];
  const [body, more] = passage(one.text);
  const name = button(
    {
      class: "card-name",
      title: "Why, or why not?",
      onclick: () => store.update({ why: one.id }),
      onfocus: () => store.update({ hover: index }),
      onblur: () => store.update({ hover: null }),
    },
    named(one, 100),
  );
  return h(
    "li",
    {
      class: `card ${tint(owner)}`,
      "data-index": index,
      "data-method": method,
      onclick: ({ target }) => {
        if (target.closest("button, [popover]") || !getSelection().isCollapsed) return;
        name.focus({ preventScroll: true }); // where the focus returns to
        name.click();
      },
      onpointerenter: () => store.update({ hover: index }),
      onpointerleave: () => store.update({ hover: null }),
    },
    h(
      "div",
      { class: "card-top" },
      h("span", { class: "rank num", "aria-label": `Rank ${rank + 1}` }, rank + 1),
      name,
      markButton(store, one),
      badge(owner, reading.old[index]),
    ),
    h("p", { class: "card-note" }, servedTag(reading, method, index), ...movement(reading, method, index)),
    body,
    facts(reading, method, index, one.text.length > FITS && more),
    members(reading, one),
  );
}

/** The sign of one of several questions, as on its chip. @param {number} at from 0 @param {string} text */
export function tag(at, text) {
  const label = `Question ${at + 1}: ${shown(text, 200)}`;
  return h("span", { class: `tag q${at % 8}`, title: label, role: "img", "aria-label": label }, `Q${at + 1}`);
}

/** The sign of the question that a pick serves; null of a single question. */
export function servedTag(reading, method, index) {
  const at = servedBy(reading, method, index);
  return at === null ? null : tag(at, reading.data.questions[at].text);
}

/** The number of the pick that stands for a passage. @param {number|null} order @param {boolean} [old] seen */
export function badge(order, old = false) {
  const none = old ? "What was seen says it" : "No pick stands for it";
  const label = order === null ? none : `Pick ${order + 1} stands for it`;
  return h(
    "span",
    { class: `badge ${tint(order)}`, title: label, role: "img", "aria-label": label },
    order === null ? (old ? "✓" : "–") : order + 1,
  );
}

/** A text of a few lines, and the button that shows all of it. @returns {[HTMLElement, HTMLElement]} */
function passage(text) {
  const body = h("p", { class: "card-text" }, quoted(text, SHORT));
  const more = button({ class: "link more-text", "aria-expanded": "false" }, "more");
  more.addEventListener("click", () => {
    const open = body.classList.toggle("open");
    body.replaceChildren(quoted(text, open ? LONG : SHORT));
    more.setAttribute("aria-expanded", String(open));
    more.textContent = open ? "less" : "more";
  });
  return [body, more];
}

/** Where the passage stands in the other sets. */
function movement(reading, method, index) {
  const owner = reading.owner[index];
  const place = reading.place.get(index);
  if (method === "dartboard") {
    const nearest = reading.data.methods.top_k.picks.indexOf(index);
    if (nearest < 0) {
      return [
        h("b", { class: "moved new" }, "New"),
        reading.data.questions
          ? ` rank ${reading.candidates[index].retriever_rank} of a question`
          : ` rank ${reading.candidates[index].retriever_rank} in KNN`,
      ];
    }
    const way = nearest === place ? "=" : nearest > place ? "▲" : "▼";
    return [h("b", { class: "moved" }, way), ` KNN has it at ${nearest + 1}`];
  }
  if (place !== undefined) return [h("b", { class: "moved" }, "→"), ` Dartboard’s pick ${place + 1}`];
  if (reading.old[index]) {
    const share = percent(reading.data.seen_cover[index]);
    return [h("b", { class: "moved out" }, "✕"), ` left out: what was seen says it (${share})`];
  }
  if (owner !== null) {
    return [
      h("b", { class: "moved out" }, "✕"),
      ` left out: pick ${owner + 1} says it (${percent(reading.data.cover[index])})`,
    ];
  }
  return [h("b", { class: "moved out" }, "✕"), " left out: it would have added less"];
}

function facts(reading, method, index, more) {
  const one = reading.candidates[index];
  const list = [
    ["cosine", fixed(one.similarity)],
    ["P(t|q)", percent(one.probability), help("P(t|q)", { tabindex: -1 })], // Tab finds it beside the map
    ["tokens", String(one.tokens)],
  ];
  if (method === "dartboard") {
    const step = reading.data.steps[reading.place.get(index)];
    if (step) {
      const others = step.stands_for.filter((other) => other !== index).length;
      list.unshift(["gain", percent(step.gain)], ["stands for", others ? `${others} more` : "itself"]);
    }
  }
  return h(
    "dl",
    { class: "facts num" },
    ...list.map(([name, value, why]) => h("div", {}, h("dt", {}, name, why), h("dd", {}, value))),
    more && h("div", {}, h("dd", {}, more)),
  );
}

/** What each member of a hybrid said: its rank and its own score. */
function members(reading, one) {
  const shares = Object.entries(one.shares ?? {}).filter(([name]) => name !== reading.data.retriever);
  if (!shares.length) return null;
  return h(
    "ul",
    { class: "members num", "aria-label": "Rank and score by retriever" },
    ...shares.map(([name, said]) =>
      h(
        "li",
        {
          title: said
            ? `${name}: rank ${said.rank}, score ${fixed(said.score, 3)}`
            : `${name} did not find it`,
        },
        h("span", {}, name),
        said && said.rank !== null ? ` #${said.rank} · ${fixed(said.score)}` : " not found",
      ),
    ),
  );
}

/** A toggle that calls a passage relevant. @param {boolean} [worded] with its name, where there is room */
export function markButton(store, one, worded = false) {
  const toggle = button({
    class: `quiet small marker${worded ? " worded" : ""}`,
    "data-id": one.id,
    onclick() {
      const marks = new Set(store.get().marks);
      if (!marks.delete(one.id)) marks.add(one.id);
      store.update({ marks });
    },
  });
  showMark(toggle, store.get().marks.has(one.id));
  return toggle;
}

/** A toggle that counts a passage as seen. @param {(change: object) => void} ask asks again */
export function seenButton(store, one, ask) {
  const { seen } = store.get();
  const known = seen.includes(one.id);
  return button(
    {
      class: "quiet small",
      id: "why-seen",
      "aria-pressed": String(known),
      disabled: !known && seen.length >= MOST_SEEN,
      onclick: () => ask({ seen: known ? seen.filter((id) => id !== one.id) : [...seen, one.id], why: one.id }),
    },
    known ? "✓ Seen" : "Count as seen",
  );
}

/** Keeps the toggles in step with the state without building cards again. */
export function refreshMarkers(root, marks) {
  for (const one of root.querySelectorAll(".marker")) showMark(one, marks.has(one.dataset.id));
}

function showMark(toggle, marked) {
  const words = marked ? "Marked relevant" : "Mark relevant";
  toggle.setAttribute("aria-pressed", String(marked));
  toggle.setAttribute("aria-label", "Mark relevant");
  toggle.title = words;
  toggle.textContent = (marked ? "★" : "☆") + (toggle.classList.contains("worded") ? ` ${words}` : "");
}
