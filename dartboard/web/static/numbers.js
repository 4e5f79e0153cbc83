/** Numbers as the pages write them. */

/** A share as a percentage with two figures that say something. @param {number} share */
export function percent(share) {
  const value = 100 * share;
  if (value === 0) return "0\u00a0%";
  if (value < 0.01) return "<\u00a00.01\u00a0%";
  return `${value >= 9.95 ? value.toFixed(0) : value >= 0.995 ? value.toFixed(1) : value.toFixed(2)}\u00a0%`;
}

/** @param {number} value */
export function fixed(value, digits = 2) {
  return Number(value)
    .toFixed(digits)
    .replace(/^-(0\.?0*)$/, "$1");
}

/** σ with three figures. @param {number} value */
export function sigmaText(value) {
  return String(Number(Number(value).toPrecision(3)));
}

/** "1 passage", "2,000 passages". @param {number} number @param {string} one @param {string} [many] */
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** @param {number} value */
export function seconds(value) {
  return value < 90 ? `${value.toFixed(value < 10 ? 1 : 0)} s` : `${Math.round(value / 60)} min`;
}

/** Bytes. @param {number} value */
export function size(value) {
  if (value < 1000) return `${value} B`;
  return value < 1e6 ? `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}
