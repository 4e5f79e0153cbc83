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
  ["duplicates", "duplicates", "Duplicates"],
  ["evaluation", "evaluation", "Evaluation"],
  ["docs", "docs", "API"],
];

let live = null;

/** @param {"playground"|"documents"|"duplicates"|"evaluation"|"docs"} current */
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

/**
 * A button that copies a text, and says for a moment whether it could.
 * @param {HTMLElement} button
 * @param {() => string|Promise<string>} text "" copies nothing
 * @param {() => string} [said] what to say once it is copied
 */
export function copies(button, text, said = () => "Copied") {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      const copied = await text();
      if (copied) await navigator.clipboard.writeText(copied);
      button.textContent = copied ? said() : "Nothing copied";
    } catch {
      button.textContent = "Copying is not allowed here";
    }
    announce(button.textContent);
    setTimeout(() => (button.textContent = label), 1600);
  });
}

/** Keeps a value in this browser; one that forbids storage forgets it with the page. */
export function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {}
}

/** @returns {string|null} what was kept under the name */
export function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
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
    remember("dartboard-theme", document.documentElement.dataset.theme);
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
