/**
 * The same retrieval as a command or a program. A key is named by a variable, never written out.
 */

import { searchBody } from "./state.js";

/** Body of POST /retrieve for a view. @param {import("./state.js").State} state */
export function retrieveBody(state) {
  return { ...searchBody(state, "top_k"), explain: true };
}

/** @param {any} body @param {string} url @param {boolean} keyed */
export function asCurl(body, url, keyed) {
  const lines = [`curl ${quote(url)}`, `-H 'Content-Type: application/json'`];
  if (keyed) lines.push('-H "Authorization: Bearer $DARTBOARD_KEY"');
  lines.push(`--data-binary ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** @param {any} body @param {string} url @param {boolean} keyed */
export function asPython(body, url, keyed) {
  const rows = Object.entries(body).map(([name, value]) => `        ${python(name)}: ${python(value)},`);
  return [
    ...(keyed ? ["import os", ""] : []),
    "import httpx",
    "",
    "answer = httpx.post(",
    `    ${python(url)},`,
    ...(keyed ? [`    headers={"Authorization": f"Bearer {os.environ['DARTBOARD_KEY']}"},`] : []),
    "    json={",
    ...rows,
    "    },",
    "    timeout=30,",
    ")",
    "answer.raise_for_status()",
    'for hit in answer.json()["results"]:',
    "    print(f\"{hit['score']:.3f}  {hit['chunk_id']}  {hit['text'][:80]}\")",
    "",
  ].join("\n");
}

/** One word for a POSIX shell. */
function quote(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A literal: JSON's strings and numbers are Python's; its other words are not. */
function python(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
