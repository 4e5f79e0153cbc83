/**
 * A table twin for a chart: the same numbers as a real table, one button away.
 */

import { button, h, set } from "./dom.js";

/**
 * A table that scrolls by itself where it is too wide.
 * @param {string} label for assistive technology
 * @param {(Node|string)[]} caption
 * @param {Node[]} head cells of the first row
 * @param {Node[]} rows whole rows
 * @param {Record<string, any>} [attributes] of the table
 * @returns {HTMLElement}
 */
export function scrolling(label, caption, head, rows, attributes = {}) {
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", attributes, h("caption", {}, ...caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)),
  );
}

/**
 * @param {string} caption
 * @param {string[]} head column names
 * @param {(Node|string|number)[][]} rows the first cell of a row is its header
 * @returns {HTMLElement}
 */
export function table(caption, head, rows) {
  return scrolling(
    caption,
    [caption],
    head.map((name) => h("th", { scope: "col" }, name)),
    rows.map((row) =>
      h("tr", {}, ...row.map((cell, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, cell))),
    ),
  );
}

/**
 * A button that swaps a chart for its table. The table is made when it is looked at.
 * @param {HTMLElement} chart what is hidden while the table shows
 * @param {() => HTMLElement} make
 * @param {string} name of the chart, for the button's label
 * @returns {{button: HTMLElement, holder: HTMLElement, refresh: () => void}}
 */
export function twin(chart, make, name) {
  const holder = h("div", { class: "twin", hidden: true });
  const swap = button(
    { class: "quiet small", "aria-pressed": "false", "aria-label": `${name} as table` },
    "As table",
  );
  const refresh = () => {
    if (!holder.hidden) set(holder, make());
  };
  swap.addEventListener("click", () => {
    const tabular = holder.hidden;
    holder.hidden = !tabular;
    chart.hidden = tabular;
    swap.setAttribute("aria-pressed", String(tabular));
    refresh();
  });
  return { button: swap, holder, refresh };
}

/**
 * A chart in its panel, with the button for its table among the panel's tools.
 * @returns {() => void} refreshes the table where it shows
 */
export function panel(root, tools, chart, make, name) {
  const { button: swap, holder, refresh } = twin(chart, make, name);
  tools.append(swap);
  set(root, chart, holder);
  return refresh;
}
