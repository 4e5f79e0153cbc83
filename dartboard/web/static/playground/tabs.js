/**
 * Where three columns do not fit, one is shown at a time: a tab for each method.
 */

import { h, set } from "../dom.js";
import { METHODS, different } from "./reading.js";

/** As in playground.css: from 860 pixels on the columns stand side by side, without tabs. */
const NARROW = matchMedia("(max-width: 859.98px)");
const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -METHODS.length, End: METHODS.length };

/**
 * @param {HTMLElement} root of the columns @param {any} store
 * @returns {() => void} shows the state's tab after the columns were drawn
 */
export function mountTabs(root, store) {
  const tabs = METHODS.map(([method], at) =>
    h("button", {
      type: "button",
      role: "tab",
      class: "column-tab",
      id: `tab-${method}`,
      "aria-controls": `column-${method}`,
      onclick: () => store.update({ tab: method }),
      onkeydown: (event) => steer(event, at),
    }),
  );
  root.before(h("div", { class: "column-tabs", role: "tablist", "aria-label": "Method" }, ...tabs));

  function steer(event, at) {
    if (!(event.key in KEYS)) return;
    const to = Math.max(0, Math.min(METHODS.length - 1, at + KEYS[event.key]));
    store.update({ tab: METHODS[to][0] });
    tabs[to].focus();
    event.preventDefault();
  }

  function show() {
    const { tab, reading } = store.get();
    METHODS.forEach(([method, , short], at) => {
      const chosen = method === tab;
      tabs[at].setAttribute("aria-selected", String(chosen));
      tabs[at].setAttribute("tabindex", chosen ? "0" : "-1");
      if (!reading) return;
      const said = h("span", { class: "hint" }, `${different(reading, method)} different`);
      set(tabs[at], h("strong", {}, short), " ", said);
      const column = root.querySelector(`.column.${method}`);
      column.classList.toggle("chosen", chosen);
      if (NARROW.matches) column.setAttribute("role", "tabpanel");
      else column.removeAttribute("role");
    });
  }
  store.on(["tab"], show);
  NARROW.addEventListener("change", show);
  return show;
}
