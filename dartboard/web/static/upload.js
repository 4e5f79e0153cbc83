/**
 * Files from the reader's machine: gathered from a drop or a choice, and sent with progress.
 */

import { address, asProblem, key, Problem } from "./api.js";

const MESSAGES = {
  401: "This service asks for an API key with write access.",
  403: "This key may only read: uploading needs one with write access.",
  429: "The service has enough to do: try again when a task has ended.",
};

/** @typedef {{name: string, file: File}} Chosen `name` may hold folders */

/**
 * What was dropped, folders with all below them.
 * @param {DataTransfer} transfer
 * @returns {Promise<Chosen[]>}
 */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ name: file.name, file }));
  const found = [];
  for (const entry of entries) await gather(entry, "", found);
  return found;
}

async function gather(entry, above, found) {
  const name = above + entry.name;
  if (entry.isFile) {
    const file = await new Promise((done, failed) => entry.file(done, failed)).catch(() => null);
    if (file) found.push({ name, file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    // A reader gives a hundred entries at a time, and an empty list at the end.
    const some = await new Promise((done, failed) => reader.readEntries(done, failed)).catch(() => []);
    if (!some.length) return;
    for (const one of some) await gather(one, `${name}/`, found);
  }
}

/** What an <input type=file> holds. @param {FileList} files @returns {Chosen[]} */
export function picked(files) {
  return [...files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
}

/**
 * Hidden files and node_modules of a folder are left out on the service as well: they need not travel.
 * @param {Chosen[]} files
 * @returns {{kept: Chosen[], hidden: number}}
 */
export function withoutHidden(files) {
  const kept = files.filter(({ name }) => {
    const parts = name.split("/");
    return parts.length === 1 || !parts.slice(1).some((part) => part.startsWith(".") || part === "node_modules" || part === "__pycache__");
  });
  return { kept, hidden: files.length - kept.length };
}

/**
 * Sends files as a form and says how far it is; fetch cannot.
 * @param {string} path below /api/dartboard/
 * @param {Chosen[]} files
 * @param {(sent: number, total: number) => void} listen
 * @param {AbortSignal} signal
 * @returns {Promise<any>} the service's JSON; fails with a Problem
 */
export function send(path, files, listen, signal) {
  const form = new FormData();
  for (const { name, file } of files) form.append("files", file, name);
  const request = new XMLHttpRequest();
  return new Promise((done, failed) => {
    request.open("POST", address(path));
    request.setRequestHeader("Accept", "application/json");
    if (key()) request.setRequestHeader("Authorization", `Bearer ${key()}`);
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => listen(event.loaded, event.total));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) done(request.response);
      else failed(asProblem(request.status, request.response ?? {}, request.getResponseHeader("Retry-After"), MESSAGES));
    });
    request.addEventListener("error", () => failed(new Problem(0, "The service stopped listening: is it still running, and is this less than it takes at once?")));
    request.addEventListener("abort", () => failed(new DOMException("stopped", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
