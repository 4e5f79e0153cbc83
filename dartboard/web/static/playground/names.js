/**
 * Names that tell passages apart: the document's title and, where several candidates bear it, what sets each
 * apart: its section, else its page, its document, its row or place there ("#3"), at last its id. A file that was
 * uploaded shows its name as well: the reader knows it by that.
 */

import { h, quoted, shown } from "../dom.js";

const LEVELS = [sectionOf, pageOf, fileOf, rowOf, placeOf, (one) => one.id];

/** The candidates, each with a `name`: its title, then what sets it apart. @param {any[]} candidates */
export function withNames(candidates) {
  const named = candidates.map((one) => ({ ...one, name: [titleOf(one)] }));
  for (const group of Map.groupBy(named, titleOf).values()) setApart(group, LEVELS);
  for (const one of named) {
    const known = one.name.some((part) => `/${one.source}`.endsWith(`/${part}`));
    if (one.metadata?.uploaded === true && one.source && !known) one.name.splice(1, 0, fileOf(one));
  }
  return named;
}

/** A level that says the same of all says nothing; those that it does not part go on to the next. */
function setApart(group, [level, ...further]) {
  if (group.length < 2 || !level) return;
  const families = Map.groupBy(group, level);
  for (const [words, family] of families) {
    if (words && families.size > 1) family.forEach((one) => one.name.push(words));
    setApart(family, further);
  }
}

/** The name as a text. */
export function nameOf(candidate) {
  return candidate.name.join(" · ");
}

/** The name as an element; where room is short, each part gives up some. @param {number} longest of a part */
export function named(candidate, longest) {
  const [title, ...more] = candidate.name.map((part) => quoted(middle(part, longest), longest));
  if (!more.length) return title;
  const apart = h("span", { class: "name-more" }, ...more.flatMap((part) => [" ", part]));
  return h("span", { class: "named", title: shown(nameOf(candidate), 400) }, title, apart);
}

/** A text whose end tells as much as its beginning: where it is too long, its middle goes. */
function middle(text, longest) {
  const signs = [...text];
  const half = Math.floor((longest - 1) / 2);
  return signs.length > longest ? `${signs.slice(0, half).join("")}…${signs.slice(-half).join("")}` : text;
}

/** A title that is made of the file's name, or of a row's key alone, says less than the file's name. */
function titleOf(one) {
  const title = String(one.title || one.metadata?.title || "");
  const source = String(one.source ?? "");
  const file = source.split("/").pop();
  const bare = title && [file.replace(/(.)\.[^.]*$/, "$1"), rowOf(one)].includes(title);
  return (bare && file) || title || source || one.id;
}

function rowOf(one) {
  return ["string", "number"].includes(typeof one.metadata?.row) ? String(one.metadata.row) : "";
}

/** The headings below the title: "Install > Linux". */
function sectionOf(one) {
  const section = one.metadata?.section;
  if (typeof section !== "string" || section === titleOf(one)) return "";
  const above = `${titleOf(one)} > `;
  return section.startsWith(above) ? section.slice(above.length) : section;
}

function pageOf(one) {
  return Number.isInteger(one.metadata?.page) ? `p. ${one.metadata.page}` : "";
}

function fileOf(one) {
  return String(one.source ?? "").split("/").slice(-2).join("/");
}

function placeOf(one) {
  return Number.isInteger(one.metadata?.position) ? `#${one.metadata.position + 1}` : "";
}
