/**
 * Elements from data. Text only ever enters the page as text nodes, so markup in a document stays text.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Keys that start with "on" become listeners; false, null and undefined are left out;
 * true gives an empty attribute.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node|string|number|null|false|undefined)} children
 * @returns {HTMLElement}
 */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** A button that submits nothing. @returns {HTMLElement} */
export function button(attributes, ...children) {
  return h("button", { type: "button", ...attributes }, ...children);
}

/** The same for SVG. @returns {SVGElement} */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

/** Replaces what an element holds. @param {Element} element @param {...(Node|string|null|false)} children */
export function set(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== false));
  return element;
}

/** The element with this id; a missing one is a mistake in the page. @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Text that may be hostile, for showing: control characters become visible signs, direction is isolated.
 * @param {string} text
 * @param {number} [longest] cut after this many UTF-16 units, with an ellipsis
 * @returns {HTMLElement}
 */
export function quoted(text, longest = Infinity) {
  return h("bdi", { dir: "auto" }, shown(text, longest));
}

/** The same as a string, for attributes and titles. @param {string} text @param {number} [longest] */
export function shown(text, longest = Infinity) {
  let visible = String(text);
  if (visible.length > longest) {
    const last = visible.charCodeAt(longest - 1);
    visible = visible.slice(0, last >= 0xd800 && last < 0xdc00 ? longest - 1 : longest) + "…";
  }
  return visible.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : "\ufffd";
  });
}
