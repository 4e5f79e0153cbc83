/**
 * What all pages share around their content: name and navigation, theme, the key field, spoken updates.
 *
 * A page has <header id="top"></header> and calls mountChrome("playground"). The key field shows itself when
 * the service answers 401; after a key was given, the document gets a "key-given" event to try again.
 */

import { key, setKey } from "./api.js";
import { button, h } from "./dom.js";

const PAGES = [
  ["playground", "./", "Playground"],
  ["documents", "documents", "Documents"],
  ["evaluation", "evaluation", "Evaluation"],
  ["docs", "docs", "API"],
];

let live = null;

/** @param {"playground"|"documents"|"evaluation"|"docs"} current */
export function mountChrome(current) {
  const links = PAGES.map(([name, href, label]) =>
    h("a", { href, "aria-current": name === current ? "page" : null }, label),
  );
  const top = document.getElementById("top");
  top.classList.add("top");
  top.append(
    h(
      "a",
      { class: "brand", href: "./" },
      h("img", { src: "static/icon.svg", alt: "", width: 22, height: 22 }),
      "Dartboard",
    ),
    h("nav", { "aria-label": "Pages" }, ...links),
    themeButton(),
  );
  top.after(keyBar());
  live = h("div", { class: "hidden", role: "status", "aria-live": "polite", id: "live" });
  document.body.append(live);
}

/** Tell assistive technology what changed. @param {string} text */
export function announce(text) {
  if (live && live.textContent !== text) live.textContent = text;
}

function themeButton() {
  const flipper = button({ class: "quiet theme", onclick: flip });
  const dark = () =>
    document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => {
    flipper.textContent = dark() ? "Light" : "Dark";
    flipper.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`);
  };
  function flip() {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("dartboard-theme", document.documentElement.dataset.theme);
    } catch {
      // The choice then lasts as long as the page.
    }
    label();
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
  return flipper;
}

function keyBar() {
  const input = h("input", {
    type: "password",
    id: "api-key",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
  });
  const said = h("p", { class: "key-said", role: "alert" });
  const form = h(
    "form",
    { class: "keybar", id: "key-form", hidden: true, "aria-label": "API key" },
    said,
    h("label", { for: "api-key" }, "API key"),
    input,
    h("button", { type: "submit", class: "primary" }, "Use key"),
    h("p", { class: "hint" }, "Kept in this tab only. ‘dartboard keys create’ makes one."),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(input.value.trim());
    input.value = "";
    form.hidden = true;
    document.dispatchEvent(new CustomEvent("key-given"));
  });
  document.addEventListener("key-needed", (event) => {
    if (!form.hidden) return;
    said.textContent = event.detail.message;
    if (key()) setKey("");
    form.hidden = false;
    input.focus();
  });
  return form;
}
