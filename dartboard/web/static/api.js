/**
 * The service over fetch: one door for every page. The key lives in sessionStorage and nowhere else.
 */

const KEY = "dartboard-key";
const BASE = new URL("api/dartboard/", document.baseURI);

/** What went wrong, in words for the reader. */
export class Problem extends Error {
  /**
   * @param {number} status HTTP status; 0 when no answer came
   * @param {string} message what to tell the reader
   * @param {{code?: string, errors?: {field: string, message: string}[], wait?: number|null}} [more]
   */
  constructor(status, message, { code = "", errors = [], wait = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.errors = errors;
    /** Seconds after which another try may succeed, where the server says so. */
    this.wait = wait;
  }
}

/** @returns {string} the API key of this tab, or "" */
export function key() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} secret "" forgets it */
export function setKey(secret) {
  if (secret) sessionStorage.setItem(KEY, secret);
  else sessionStorage.removeItem(KEY);
}

/** The absolute address of an endpoint. @param {string} path such as "explore" */
export function address(path) {
  return new URL(path, BASE);
}

/**
 * Ask the service and return its JSON. Fails with a Problem, or with an AbortError when `signal` stops it.
 * @param {string} path below /api/dartboard/
 * @param {{method?: string, json?: any, body?: BodyInit, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export async function call(path, options = {}) {
  const answer = await send(path, options);
  return answer.status === 204 ? null : answer.json();
}

/**
 * Ask the service and read its server-sent events as they come. An event "error" is thrown as a Problem.
 * @param {string} path below /api/dartboard/
 * @param {{json?: any, signal?: AbortSignal}} [options]
 * @returns {AsyncGenerator<{name: string, data: any}>}
 */
export async function* events(path, options = {}) {
  const answer = await send(path, options);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await next(reader);
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const found = /^event: (\w+)\ndata: (.*)$/.exec(block);
      if (!found) continue;
      const data = JSON.parse(found[2]);
      if (found[1] === "error") throw new Problem(data.status, data.detail, { code: data.code });
      yield { name: found[1], data };
    }
  }
}

async function next(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The connection to the service broke off.");
  }
}

/** The same for a file. @returns {Promise<Blob>} */
export async function download(path, options = {}) {
  return (await send(path, options)).blob();
}

async function send(path, { method, json, body, signal } = {}) {
  const headers = new Headers({ Accept: "application/json" });
  if (json !== undefined) headers.set("Content-Type", "application/json");
  if (key()) headers.set("Authorization", `Bearer ${key()}`);
  let answer;
  try {
    answer = await fetch(address(path), {
      method: method ?? (json !== undefined || body !== undefined ? "POST" : "GET"),
      headers,
      body: json !== undefined ? JSON.stringify(json) : body,
      signal,
      credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The service does not answer. Is it still running?");
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer) {
  const told = await answer.json().catch(() => ({})); // a proxy may answer with a page of its own
  return asProblem(answer.status, told, answer.headers.get("Retry-After"));
}

/**
 * What an answer with an error means. Where a key is missing, the document hears "key-needed".
 * @param {number} status
 * @param {any} told the body, as JSON
 * @param {string|null} retryAfter the header
 * @param {Record<number, string>} [messages] that say more than the usual ones
 * @returns {Problem}
 */
export function asProblem(status, told, retryAfter, messages = {}) {
  const seconds = Number.parseFloat(retryAfter ?? "");
  const wait = Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : null;
  const errors = Array.isArray(told.errors) ? told.errors : [];
  const code = String(told.code ?? "");
  const detail = String(told.detail ?? "");
  const usual = code.startsWith("model_") ? detail : friendly(status, detail, wait);
  const problem = new Problem(status, messages[status] ?? usual, { code, errors, wait });
  if (status === 401) document.dispatchEvent(new CustomEvent("key-needed", { detail: problem }));
  return problem;
}

function friendly(status, detail, wait) {
  const again = wait ? ` Try again in ${wait} s.` : " Try again in a moment.";
  switch (status) {
    case 401:
      return key() ? "The service does not accept this key." : "This service asks for an API key.";
    case 403:
      return "This key may not do that: it has no write access.";
    case 404:
      return detail || "There is nothing of that name on this service.";
    case 413:
      return detail || "That is more than the service takes at once.";
    case 422:
      return `The service cannot work with this: ${detail || "check the values"}`;
    case 429:
      return `The service is busy or the limit is reached.${again}`;
    case 503:
      return `The service is starting, stopping or cannot reach its store.${again}`;
    case 504:
      return "The service ran out of time for this. Ask for fewer candidates, or try again.";
    default:
      return detail || `The service answered with error ${status}.`;
  }
}
