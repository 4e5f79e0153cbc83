/**
 * A long task of the service, followed until it ends: a bar, what it does now, and a button that stops it.
 */

import { call } from "./api.js";
import { announce, copies } from "./chrome.js";
import { button, h, set, shown } from "./dom.js";
import { seconds } from "./numbers.js";

const SOON = 250;
const LATER = 1500;
const ENDED = ["done", "failed", "cancelled"];

/**
 * Shows a task in an element and asks for it until it has ended. A service that does not answer for a moment
 * is asked again.
 * @param {HTMLElement} root
 * @param {string} id
 * @param {string} title what the task does, for people
 * @returns {Promise<any>} the job as it ended
 */
export async function follow(root, id, title) {
  const bar = h("progress", { "aria-label": title });
  const said = h("p", { class: "job-said", role: "status" }, `${title}: waiting for its turn`);
  const stop = button({ class: "small", onclick: cancel }, "Cancel");
  set(root, h("div", { class: "row" }, h("h3", {}, title), stop), bar, said);
  root.hidden = false;
  let failures = 0;
  let wait = SOON;
  let quarter = 0;

  async function cancel() {
    stop.disabled = true;
    said.textContent = "Stopping at the next step …";
    try {
      await call(`jobs/${encodeURIComponent(id)}`, { method: "DELETE" });
    } catch (error) {
      stop.disabled = false;
      said.textContent = error.message;
    }
  }

  for (;;) {
    let job;
    try {
      job = await call(`jobs/${encodeURIComponent(id)}`);
      failures = 0;
    } catch (error) {
      failures += 1;
      if (failures > 20 || (error.status >= 400 && error.status < 500 && error.status !== 429)) {
        stop.remove();
        bar.remove();
        set(root, h("h3", {}, title), problem(error.message));
        throw error;
      }
      await pause((error.wait ?? 2) * 1000);
      continue;
    }
    if (ENDED.includes(job.state)) {
      stop.remove();
      bar.remove();
      said.textContent = endOf(job);
      announce(`${title}: ${said.textContent}`);
      if (job.state === "failed") root.append(problem(job.error ?? "The task failed."));
      return job;
    }
    if (job.total > 0) {
      bar.max = job.total;
      bar.value = Math.min(job.done, job.total);
      const now = Math.floor((4 * job.done) / job.total);
      if (now > quarter && now < 4) announce(`${title}: ${25 * now} percent`);
      quarter = now;
    } else {
      bar.removeAttribute("value");
    }
    if (!stop.disabled) said.textContent = shown(job.message || (job.state === "queued" ? "Waiting for its turn" : "Working"), 200);
    await pause(wait);
    wait = Math.min(LATER, wait * 1.25);
  }
}

function endOf(job) {
  if (job.state === "done") return `Done in ${seconds(job.finished - job.started)}.`;
  if (job.state === "cancelled") return "Cancelled. What was finished is kept.";
  return "Failed.";
}

/** @param {string} message @returns {HTMLElement} */
export function problem(message) {
  return h("div", { class: "problem", role: "alert" }, h("strong", {}, "That did not work. "), shown(message));
}

/** @param {number} milliseconds */
export function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}

/** Hands a file to the browser. @param {string} name @param {Blob} blob */
export function keep(name, blob) {
  const href = URL.createObjectURL(blob);
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

/** A line to type, with a button that copies it. @param {string} text @returns {HTMLElement} */
export function command(text) {
  const copier = button({ class: "quiet small", "aria-label": `Copy: ${text}` }, "Copy");
  copies(copier, () => text);
  return h("div", { class: "command" }, h("code", {}, text), copier);
}
