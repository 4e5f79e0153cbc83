/**
 * The API page: Swagger UI over the service's own OpenAPI document, from files of this service alone.
 */

import { key } from "./api.js";
import { mountChrome } from "./chrome.js";

const SCHEME = "HTTPBearer";
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

/** Swagger UI has a theme of its own, chosen by a class. */
function showTheme() {
  const { theme } = root.dataset;
  root.classList.toggle("dark-mode", theme ? theme === "dark" : system.matches);
}

mountChrome("docs");
showTheme();
system.addEventListener("change", showTheme);
new MutationObserver(showTheme).observe(root, { attributeFilter: ["data-theme"] });

const ui = window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  onComplete: () => key() && ui.preauthorizeApiKey(SCHEME, key()),
});
