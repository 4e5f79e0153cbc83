/**
 * What the service's answer says, in the terms that all views share.
 */

import { withNames } from "./names.js";

/**
 * @typedef {object} Reading
 * @property {any} data the answer itself
 * @property {any[]} candidates with names that tell them apart
 * @property {number[]} picks Dartboard's, in order
 * @property {Map<number, number>} place order (from 0) of each of Dartboard's picks
 * @property {(number|null)[]} owner for each candidate the order of the pick that stands for it
 * @property {boolean[]} old for each candidate whether it was seen, or what was seen stands for it
 * @property {boolean} follows whether anything was seen
 */

/** A pick stands for what it covers at least by this share. */
const HALF = 0.5;

export const METHODS = [
  ["top_k", "Nearest neighbours", "KNN"],
  ["mmr", "MMR", "MMR"],
  ["dartboard", "Dartboard", "Dartboard"],
];

/**
 * @param {any} data answer of POST /explore
 * @param {Reading|null} [before] earlier answer to the same question: lends its map and its sweep
 * @returns {Reading}
 */
export function read(data, before = null) {
  const lent = before ? withMap(data, before.data) : data;
  const picks = lent.methods.dartboard.picks;
  const place = new Map(picks.map((index, order) => [index, order]));
  const owner = lent.candidates.map((_, index) => {
    if (place.has(index)) return place.get(index);
    return lent.cover[index] >= Math.max(HALF, lent.seen_cover[index]) ? (place.get(lent.covered_by[index]) ?? null) : null;
  });
  const old = owner.map((order, index) => order === null && lent.seen_cover[index] >= HALF);
  const follows = lent.seen.length > 0;
  return { data: lent, candidates: withNames(lent.candidates), picks, place, owner, old, follows };
}

function withMap(data, before) {
  const places = new Map(before.candidates.map((one) => [one.id, one]));
  const known = data.candidates.every((one) => places.has(one.id));
  const candidates = data.candidates.map((one) => {
    const { x, y } = places.get(one.id) ?? {};
    return data.layout || !known ? one : { ...one, x, y };
  });
  return {
    ...data,
    candidates,
    layout: data.layout ?? (known ? before.layout : null),
    sweep: data.sweep ?? before.sweep,
  };
}

/**
 * How many different things a method's picks say: those that one Dartboard pick stands for count once, and those
 * that say what was seen not at all.
 */
export function different(reading, method) {
  const seen = new Set();
  for (const index of reading.data.methods[method].picks) {
    if (reading.old[index]) continue;
    seen.add(reading.owner[index] === null ? `alone ${index}` : reading.owner[index]);
  }
  return seen.size;
}

/** The same in words: "3 different", or "3 new" where something was seen. */
export function newness(reading, method) {
  return `${different(reading, method)} ${reading.follows ? "new" : "different"}`;
}

/** The question that a method's pick serves most, from 0; null of a single question. */
export function servedBy(reading, method, index) {
  const { picks, serves } = reading.data.methods[method];
  return serves?.[picks.indexOf(index)] ?? null;
}

/** Picks shown at the state's step. @returns {number} */
export function stepOf(state) {
  const most = state.reading ? state.reading.data.steps.length : 0;
  return state.step === null ? most : Math.max(0, Math.min(state.step, most));
}

/** Which of the eight pick colours an order gets; "alone" where no pick stands for it. */
export function tint(order) {
  return order === null || order < 0 ? "alone" : `o${order % 8}`;
}

/** How much of the candidate's gain went away with each pick: the pick (order) with the largest drop. */
export function largestDrop(data, index) {
  let worst = null;
  let most = 0;
  for (let at = 0; at + 1 < data.steps.length; at++) {
    const drop = (data.steps[at].gains[index] ?? 0) - (data.steps[at + 1].gains[index] ?? 0);
    if (data.steps[at + 1].gains[index] !== null && drop > most) [worst, most] = [at, drop];
  }
  return worst;
}
