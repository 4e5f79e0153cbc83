/**
 * Why, or why not: one candidate's gain at each step, the pick that made it redundant, the words they share.
 */

import { button, byId, h, quoted, s, set, shown } from "../dom.js";
import { count, fixed, percent } from "../numbers.js";
import { table, twin } from "../table.js";
import { badge, markButton, refreshMarkers, seenButton, servedTag } from "./card.js";
import { diffWords } from "./diff.js";
import { help } from "./help.js";
import { named } from "./names.js";
import { METHODS, largestDrop, servedBy, tint } from "./reading.js";

/** @param {HTMLElement} root @param {any} store @param {(change: object) => void} ask asks again */
export function mountWhy(root, store, ask) {
  let opener = null;
  const close = () => {
    store.update({ why: null });
    (opener?.isConnected ? opener : byId("results")).focus();
    opener = null;
  };
  document.addEventListener("keydown", (event) => {
    const helping = document.querySelector(":popover-open"); // which Escape closes first
    if (event.key === "Escape" && !root.hidden && !helping) close();
  });

  store.on(["why", "reading"], (state, before) => {
    const index = state.reading?.candidates.findIndex((one) => one.id === state.why) ?? -1;
    root.hidden = index < 0;
    if (index < 0) return;
    const fresh = state.why !== before.why || root.childElementCount === 0;
    if (fresh && document.activeElement !== document.body && !root.contains(document.activeElement)) {
      opener = document.activeElement;
    }
    set(root, ...content(state, index, store, close, ask));
    if (fresh) root.focus({ preventScroll: true });
  });
  store.on(["marks"], (state) => refreshMarkers(root, state.marks));
}

function content(state, index, store, close, ask) {
  const { reading } = state;
  const one = reading.candidates[index];
  const place = reading.place.get(index);
  // The pick that took its place: the one that stands for it, else the one that cost it most gain.
  const blame = place === undefined ? (reading.owner[index] ?? largestDrop(reading.data, index)) : null;
  return [
    h(
      "header",
      { class: "why-head" },
      h(
        "h2",
        { id: "why-title" },
        place === undefined ? "Why not this one?" : `Why is this pick ${place + 1}?`,
      ),
      button({ class: "quiet small", "aria-label": "Close", onclick: close }, "✕"),
    ),
    h(
      "p",
      { class: "why-name" },
      badge(reading.owner[index], reading.old[index]),
      servedTag(reading, "dartboard", index),
      h("strong", {}, named(one, 120)),
    ),
    h("p", { class: "why-verdict", id: "why-verdict" }, verdict(reading, index, blame)),
    gains(reading, index),
    comparison(reading, index, blame ?? nearestPick(reading, index)),
    numbers(reading, index),
    h("p", { class: "why-marks" }, markButton(store, one, true), seenButton(store, one, ask)),
  ];
}

/** Something to compare a pick with: the pick before it. */
function nearestPick(reading, index) {
  const place = reading.place.get(index) ?? 0;
  return place > 0 ? place - 1 : reading.picks.length > 1 ? 1 : null;
}

function verdict(reading, index, blame) {
  const { steps, cover } = reading.data;
  const place = reading.place.get(index);
  if (place !== undefined) return pickVerdict(reading, place, index);
  if (reading.data.seen.includes(index)) return "It counts as seen: only what is new beside it is picked.";
  if (!steps.length) return "Nothing was picked.";
  if (reading.old[index]) {
    return `What was seen already says it: it covers ${percent(reading.data.seen_cover[index])} of this passage.`;
  }
  const own = steps.map((one) => one.gains[index] ?? 0);
  const best = closest(steps, index);
  if (reading.owner[index] !== null) {
    const after = own[blame + 1];
    const fall =
      after === undefined
        ? ""
        : ` With it chosen, this one’s gain fell from ${percent(own[blame])} to ${percent(after)}.`;
    return `Pick ${blame + 1} already says it: it covers ${percent(cover[index])} of this passage.${fall}`;
  }
  const near = blame === null ? "" : ` Pick ${blame + 1} comes nearest to it and took most of its gain.`;
  return (
    `No pick says the same, but it would have added too little: at step ${best + 1}, where it came closest, ` +
    `it offered ${percent(own[best])} and the pick ${percent(steps[best].gain)}.${near}`
  );
}

function pickVerdict(reading, place, index) {
  const one = reading.data.steps[place];
  const others = one.stands_for.filter((other) => other !== index).length;
  const stands = others ? ` It stands for ${count(others, "other candidate")}.` : "";
  const at = servedBy(reading, "dartboard", index);
  const serves = at === null ? "" : ` It serves question ${at + 1} most.`;
  if (one.criterion === "probability" && place === 0) {
    return `It is the most probable target, and alone covers ${percent(one.gain)} of the probability.${stands}${serves}`;
  }
  return `At step ${place + 1} nothing else added more: ${percent(one.gain)} of the probability.${stands}${serves}`;
}

/** The step at which the candidate came nearest to being picked. */
function closest(steps, index) {
  const share = (one) => (one.gain > 0 ? (one.gains[index] ?? 0) / one.gain : 0);
  return steps.reduce((best, one, at) => (share(one) > share(steps[best]) ? at : best), 0);
}

function gains(reading, index) {
  const { steps } = reading.data;
  const upTo = reading.place.has(index) ? steps.slice(0, reading.place.get(index) + 1) : steps;
  const most = Math.max(...upTo.flatMap((one) => [one.gain, one.gains[index] ?? 0]), 1e-300);
  const wide = 100 / upTo.length;
  const svg = s("svg", {
    class: "why-chart",
    role: "img",
    "aria-label": "Gain of this passage at each step beside the pick’s",
  });
  upTo.forEach((one, at) => {
    const bar = (value, kind, from) => {
      const tall = 96 * Math.sqrt(value / most);
      return s("rect", {
        class: kind,
        x: `${at * wide + from * wide}%`,
        width: `${0.34 * wide}%`,
        y: `${100 - tall}%`,
        height: `${tall}%`,
      });
    };
    svg.append(bar(one.gain, `why-pick ${tint(at)}`, 0.14), bar(one.gains[index] ?? 0, "why-own", 0.52));
  });
  const axis = h(
    "ol",
    { class: "why-axis", "aria-hidden": "true" },
    ...upTo.map((_, at) => h("li", { class: `badge ${tint(at)}` }, at + 1)),
  );
  const chart = h(
    "div",
    {},
    svg,
    axis,
    h(
      "p",
      { class: "hint" },
      "Coloured: gain of the pick. Dashed: of this passage. Heights are square roots.",
    ),
  );
  const asTable = twin(
    chart,
    () =>
      table(
        "Gain at each step",
        ["Step", "This passage", "The pick"],
        upTo.map((one, at) => [String(at + 1), percent(one.gains[index] ?? 0), percent(one.gain)]),
      ),
    "Gain at each step",
  );
  return h(
    "section",
    { class: "why-part" },
    h("div", { class: "panel-head" }, h("h3", {}, "Gain at each step"), asTable.button),
    chart,
    asTable.holder,
  );
}

function comparison(reading, index, with_) {
  const part = h("section", { class: "why-part" });
  const others = reading.picks.map((_, order) => order).filter((order) => reading.picks[order] !== index);
  if (with_ === null || !others.length) {
    set(
      part,
      h("h3", {}, "Text"),
      h("p", { class: "diff-text" }, quoted(reading.candidates[index].text, 6000)),
    );
    return part;
  }
  const choice = h(
    "select",
    { "aria-label": "Compare with", id: "compare" },
    ...others.map((order) => h("option", { value: order, selected: order === with_ }, `pick ${order + 1}`)),
  );
  const body = h("div", {});
  const draw = () => set(body, ...diffView(reading, index, Number(choice.value)));
  choice.addEventListener("change", draw);
  set(part, h("div", { class: "panel-head" }, h("h3", {}, "Words, compared with "), choice), body);
  draw();
  return part;
}

function diffView(reading, index, order) {
  const [own, other] = [reading.candidates[index], reading.candidates[reading.picks[order]]];
  const diff = diffWords(own.text, other.text);
  const side = (title, runs) =>
    h(
      "div",
      { class: "diff-side" },
      h("h4", {}, title),
      h(
        "p",
        { class: "diff-text" },
        h(
          "bdi",
          { dir: "auto" },
          ...runs.map((run) => (run.same ? shown(run.text) : h("mark", {}, shown(run.text)))),
        ),
      ),
    );
  return [
    h(
      "p",
      { class: "hint", id: "diff-share" },
      `${percent(diff.share)} of its words stand in pick ${order + 1}, in the same order. Marked: said by one only.` +
        (diff.cut ? " Long texts are compared by their beginning." : ""),
    ),
    h(
      "div",
      { class: "diff" },
      side("This passage", diff.left),
      side(h("span", {}, badge(order), " Pick"), diff.right),
    ),
  ];
}

function numbers(reading, index) {
  const one = reading.candidates[index];
  const chose = METHODS.filter(([method]) => reading.data.methods[method].picks.includes(index));
  const rows = [
    ["Retriever", `rank ${one.retriever_rank}, score ${fixed(one.retriever_score, 3)}`],
    ...Object.entries(one.shares ?? {})
      .filter(([name]) => name !== reading.data.retriever)
      .map(([name, said]) => [
        name,
        said && said.rank !== null ? `rank ${said.rank}, score ${fixed(said.score, 3)}` : "did not find it",
      ]),
    ["Cosine to the query", fixed(one.similarity, 3)],
    [h("span", {}, "P(t|q)", help("P(t|q)")), percent(one.probability)],
    ["Tokens", String(one.tokens)],
    ["Chosen by", chose.map(([, , short]) => short).join(", ") || "none"],
    ["Id", quoted(one.id, 200)],
    ...Object.entries(one.metadata ?? {})
      .slice(0, 12)
      .map(([name, value]) => [
        quoted(name, 40),
        quoted(typeof value === "object" ? JSON.stringify(value) : String(value), 200),
      ]),
  ];
  return h(
    "dl",
    { class: "why-numbers num" },
    ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}
