/**
 * The dartboard: candidates around the query.
 *
 * Distance from the middle is the true distance to the query; the angle comes from the service's layout.
 * A dot's area is P(t|q). Picks carry their number; a line ties a candidate to the pick that stands for it.
 */

import { button, h, quoted, s, set, shown } from "../dom.js";
import { count, fixed, percent } from "../numbers.js";
import { panel, table } from "../table.js";
import { help } from "./help.js";
import { nameOf, named } from "./names.js";
import { servedBy, stepOf, tint } from "./reading.js";
import { rings, scaleOf } from "./rings.js";
import { createTooltip } from "./tooltip.js";

const WIDEST = 640;

/** @param {HTMLElement} root @param {HTMLElement} tools @param {any} store */
export function mountMap(root, tools, store) {
  const svg = s("svg", {
    class: "map",
    role: "group",
    "aria-label": "Map of the candidates around the query. Arrow keys move, Enter explains.",
  });
  const stress = h("span", {});
  const nearest = new Text();
  const grey = h("em", { id: "map-seen" });
  const note = h(
    "p",
    { class: "hint map-note" },
    "Ring: distance to the ",
    nearest,
    ", (1 − cosine) / 2. Area: P(t|q)",
    help("P(t|q)"),
    ". A line leads to the pick that stands for a passage. Dashed: runner-up. ",
    grey,
    stress,
    help("stress"),
    ".",
  );
  const frame = h("div", { class: "map-frame" }, svg);
  const chart = h("div", {}, frame, note);
  const refreshTable = panel(root, tools, chart, () => mapTable(store), "Map");
  const tooltip = createTooltip(frame);
  /** @type {Record<string, any>[]} */
  let marks = [];
  let drawn = null;
  let current = 0;
  let size = WIDEST;
  let middle = size / 2;

  function draw(state) {
    const { reading } = state;
    if (!reading || !reading.candidates.length || !reading.data.layout) return;
    size = Math.max(280, Math.min(WIDEST, frame.clientWidth || size));
    middle = size / 2;
    const key = size + reading.candidates.map((one) => `${one.id} ${one.x} ${one.y}`).join();
    if (key !== drawn) build(reading);
    drawn = key;
    refresh(state);
    refreshTable();
  }

  function build(reading) {
    const scale = scaleOf(reading, middle);
    svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
    marks = reading.candidates.map((one, index) => mark(one, index, scale));
    current = 0;
    marks[0].group.setAttribute("tabindex", "0");
    set(
      svg,
      rings(scale, reading, middle),
      s("g", { class: "ties" }, ...marks.map((one) => one.line)),
      s("g", { class: "eye" }, s("path", { d: `M${middle - 7} ${middle}h14M${middle} ${middle - 7}v14` })),
      s("g", {}, ...marks.map((one) => one.group)),
    );
  }

  function mark(one, index, scale) {
    const [x, y] = scale.at(one);
    const dot = s("circle", { class: "dot" });
    const shade = s("circle", { class: "shade" });
    const halo = s("circle", { class: "halo" });
    const badge = s("circle", { class: "dot-badge" });
    const label = s("text", { class: "dot-label", "text-anchor": "middle", dy: "0.36em" });
    const group = s(
      "g",
      {
        class: "spot",
        tabindex: "-1",
        role: "button",
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        "data-index": index,
        onpointerenter: () => enter(index),
        onpointerleave: leave,
        onfocus: () => enter(index),
        onblur: leave,
        onclick: () => open(index),
        onkeydown: (event) => steer(event, index),
      },
      s("circle", { class: "reach", r: 9 }),
      halo,
      dot,
      shade,
      badge,
      label,
    );
    return { group, dot, shade, badge, label, halo, line: s("line", { class: "tie" }), x, y };
  }

  function refresh(state) {
    const { reading } = state;
    const step = stepOf(state);
    const top = Math.max(...reading.candidates.map((one) => one.probability), 1e-300);
    const largest = Math.max(13, size / 30);
    const rival = step ? reading.data.steps[step - 1].runner_up?.index : undefined;
    marks.forEach((one, index) => {
      const role = roleAt(reading, index, step);
      const radius = largest * Math.sqrt(reading.candidates[index].probability / top);
      const pick = role.order !== null && reading.place.get(index) === role.order;
      one.dot.setAttribute("r", radius.toFixed(2));
      // Its area is the probability that what was seen covers; a pick shows what is new.
      one.shade.setAttribute("r", (pick ? 0 : radius * Math.sqrt(reading.data.seen_cover[index])).toFixed(2));
      one.halo.setAttribute("r", Math.max(radius + 3, 7.5).toFixed(2));
      one.group.setAttribute("class", `spot ${tint(role.order)}${pick ? " pick" : ""}`);
      number(one, pick ? role.order + 1 : null, radius);
      if (role.seen && radius >= 7) {
        attributes(one.label, { x: 0, y: 0 });
        one.label.textContent = "✓";
      }
      one.group.classList.toggle("seen", role.seen);
      one.group.classList.toggle("rival", index === rival);
      one.group.classList.toggle("asked", reading.candidates[index].id === state.why);
      one.group.classList.toggle("marked", state.marks.has(reading.candidates[index].id));
      one.group.setAttribute("aria-label", spoken(reading, index, role));
      tie(one, pick ? null : role.order, reading);
    });
    raise(reading, step);
    const { layout, candidates } = reading.data;
    nearest.data = reading.data.questions ? "nearest question" : "query";
    grey.textContent = reading.follows ? "Grey: covered by what was seen. " : "";
    stress.textContent = `Stress ${fixed(layout.stress, 3)} over ${count(candidates.length, "candidate")}`;
  }

  /** A pick's number: in its dot where there is room, else in a badge beside it, away from the middle. */
  function number(one, value, radius) {
    const inside = radius >= 10;
    const way = Math.hypot(one.x - middle, one.y - middle) || 1;
    const out = inside ? 0 : radius + 10;
    const [x, y] = [one.x, one.y].map((each) => (((each - middle) / way) * out).toFixed(1));
    attributes(one.badge, { r: value === null || inside ? 0 : 9.5, cx: x, cy: y });
    attributes(one.label, { x, y });
    one.label.textContent = value === null ? "" : String(value);
  }

  function tie(one, order, reading) {
    one.line.setAttribute("class", `tie ${tint(order)}`);
    const to = order === null ? one : marks[reading.picks[order]];
    attributes(one.line, { x1: one.x, y1: one.y, x2: to.x, y2: to.y });
  }

  /** Large dots first, then small, then picks in order: nothing small lies under something large. */
  function raise(reading, step) {
    const weight = (index) => {
      const order = reading.place.get(index);
      return order !== undefined && order < step ? 1000 + order : -reading.candidates[index].probability;
    };
    const parent = marks[0].group.parentNode;
    const order = marks.map((_, index) => index).sort((a, b) => weight(a) - weight(b) || a - b);
    const wanted = order.map((index) => marks[index].group);
    if (wanted.some((group, at) => parent.children[at] !== group)) {
      const held = document.activeElement;
      parent.append(...wanted);
      if (held instanceof SVGElement && parent.contains(held)) held.focus({ preventScroll: true });
    }
  }

  function enter(index) {
    const { reading } = store.get();
    const role = roleAt(reading, index, stepOf(store.get()));
    tooltip.show(reading.candidates[index], role.text, marks[index].group.getBoundingClientRect());
    store.update({ hover: index });
  }

  function leave() {
    tooltip.hide();
    store.update({ hover: null });
  }

  function open(index) {
    store.update({ why: store.get().reading.candidates[index].id });
  }

  function steer(event, index) {
    const last = marks.length - 1;
    const to = {
      ArrowRight: Math.min(index + 1, last),
      ArrowDown: Math.min(index + 1, last),
      ArrowLeft: Math.max(index - 1, 0),
      ArrowUp: Math.max(index - 1, 0),
      Home: 0,
      End: last,
    }[event.key];
    if (event.key === "Enter" || event.key === " ") open(index);
    else if (event.key === "Escape") tooltip.hide();
    else if (to !== undefined) {
      marks[current].group.setAttribute("tabindex", "-1");
      current = to;
      marks[to].group.setAttribute("tabindex", "0");
      marks[to].group.focus();
    } else return;
    event.preventDefault();
  }

  new ResizeObserver(() => {
    if (Math.abs((frame.clientWidth || size) - size) > 8 && frame.clientWidth < WIDEST + 8) draw(store.get());
  }).observe(frame);
  store.on(["reading", "step", "why", "marks"], draw);
  store.on(["hover"], (state) => {
    marks.forEach((one, index) => one.group.classList.toggle("hover", index === state.hover));
  });
}

function attributes(element, values) {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, String(value));
}

/** What a candidate is once `step` picks are made. */
function roleAt(reading, index, step) {
  const place = reading.place.get(index);
  if (reading.data.seen.includes(index)) return { order: null, text: "Seen", seen: true };
  if (place !== undefined && place < step) {
    const at = servedBy(reading, "dartboard", index);
    return { order: place, text: `Pick ${place + 1}${at === null ? "" : `, for question ${at + 1}`}`, seen: false };
  }
  const owner = reading.owner[index];
  if (owner !== null && owner < step && place === undefined) {
    const text = `Pick ${owner + 1} stands for it (${percent(reading.data.cover[index])})`;
    return { order: owner, text, seen: false };
  }
  if (reading.old[index]) {
    return { order: null, text: `What was seen says it (${percent(reading.data.seen_cover[index])})`, seen: false };
  }
  const yet = step < reading.data.steps.length ? " yet" : "";
  return { order: null, text: `No pick stands for it${yet}`, seen: false };
}

function spoken(reading, index, role) {
  const one = reading.candidates[index];
  return (
    `${shown(nameOf(one), 90)}. ${role.text}. Retriever rank ${one.retriever_rank}, ` +
    `cosine ${fixed(one.similarity)}, probability ${percent(one.probability)}. ${shown(one.text, 200)}`
  );
}

function mapTable(store) {
  const state = store.get();
  const { reading } = state;
  const step = stepOf(state);
  return table(
    `Candidates in the retriever's order, after ${step} picks`,
    ["Candidate and text", "Rank", "Cosine", "Distance", "P(t|q)", "State"],
    reading.candidates.map((one, index) => [
      h(
        "div",
        {},
        button({ class: "link", onclick: () => store.update({ why: one.id }) }, named(one, 60)),
        h("span", { class: "row-text", title: shown(one.text, 2000) }, quoted(one.text, 140)),
      ),
      String(one.retriever_rank),
      fixed(one.similarity, 3),
      fixed(one.distance, 3),
      percent(one.probability),
      stateCell(reading, index, roleAt(reading, index, step)),
    ]),
  );
}

/** From here on a percentage says 100: such a passage was removed as a near-duplicate, or is an exact copy. */
const SAME = 0.9995;

/** A role in few words; all of it in the title. */
function stateCell(reading, index, { order, text }) {
  if (order === null) {
    const said = reading.data.seen.includes(index) ? "seen" : reading.old[index] ? "like seen" : "no pick";
    return h("span", { title: text }, said);
  }
  const pick = `pick ${order + 1}`;
  if (reading.place.get(index) === order) return h("span", { title: text }, `Pick ${order + 1}`);
  const cover = reading.data.cover[index];
  return h("span", { title: text }, cover >= SAME ? `copy of ${pick}` : `like ${pick}, ${percent(cover)}`);
}
