/**
 * Which words two texts share, in order: the longest common subsequence of their words.
 *
 * Words are compared without case; spaces and punctuation ride along with the word before them. A symbol
 * (an emoji, a sign of money or of mathematics) is a word of its own.
 */

const MOST = 1500;
const LONGEST = 30000;
/** Bars and tildes are marks of Markdown. */
const SYMBOL = /[\p{So}\p{Sc}]|[^\P{Sm}|~]/u;

/** @typedef {{text: string, same: boolean}} Run words in a row that are all shared, or all not */

/**
 * @param {string} left
 * @param {string} right
 * @returns {{left: Run[], right: Run[], shared: number, share: number, cut: boolean}} `shared` words in
 *   common; `share` of the left text's words; `cut` when a text was too long to be compared whole
 */
export function diffWords(left, right) {
  const [a, b] = [left, right].map((text) => words(text.slice(0, LONGEST)));
  const cut = Math.max(a.length, b.length) > MOST || Math.max(left.length, right.length) > LONGEST;
  const [x, y] = [a.slice(0, MOST), b.slice(0, MOST)];
  const [inLeft, inRight] = common(x.map(plain), y.map(plain));
  const shared = inLeft.reduce((sum, one) => sum + one, 0);
  return {
    left: runs(x, inLeft),
    right: runs(y, inRight),
    shared,
    share: x.length ? shared / x.length : 0,
    cut,
  };
}

/** Splits a text into words, each with what follows it up to the next; joined they give the text again. */
export function words(text) {
  const found = [];
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(
    text,
  )) {
    if (isWordLike || SYMBOL.test(segment) || !found.length) found.push(segment);
    else found[found.length - 1] += segment;
  }
  if (found.length > 1 && !/[\p{L}\p{N}]/u.test(found[0]) && !SYMBOL.test(found[0])) found.splice(0, 2, found[0] + found[1]);
  return found;
}

function plain(word) {
  const letters = word.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  return letters || word.replace(/[\s\p{P}|~`^]+/gu, "") || word.trim();
}

/** Flags (0 or 1) for the members of a longest common subsequence, for both sides. */
function common(a, b) {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      longest[at] =
        a[i] === b[j] ? longest[at + width + 1] + 1 : Math.max(longest[at + width], longest[at + 1]);
    }
  }
  const inA = new Uint8Array(a.length);
  const inB = new Uint8Array(b.length);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) inA[i++] = inB[j++] = 1;
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return [inA, inB];
}

function runs(parts, flags) {
  const made = [];
  parts.forEach((text, at) => {
    const same = flags[at] === 1;
    const last = made[made.length - 1];
    if (last && last.same === same) last.text += text;
    else made.push({ text, same });
  });
  return made;
}
