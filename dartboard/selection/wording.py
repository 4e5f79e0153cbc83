"""What words tell about candidates: who repeats whom, and who names what the other does not.

Vectors do not tell a copy from a passage that is alike: two updates on a ticket, two versions of a function,
a statement and its correction lie as close together as a passage and its edit. Words tell. A passage
*repeats* another if four fifths of its different words stand in the other, and all of its names and numbers.
A name begins with a capital letter and follows a word or a comma; at the beginning of a sentence, where
anything has a capital, it is one if some candidate has it as a name inside a sentence. A capital further on
in a word makes it a name anywhere (iPad, JSON). English words that decide what is said
(:mod:`dartboard.selection.telling`) count as names, too. A number, or whatever has a digit in it, counts as
often as it stands there; signs between digits are part of it (0.5, 2024-05-03). A cut, another order,
boilerplate around it and other words here and there leave a copy a copy, while another year, price or person
makes a passage of its own. Of two copies one repeats the other and has at least two fifths as many words: a
sentence is no copy of the chapter that holds it.

Two passages are *told apart* if each has a name or a number that the other has not. However close they lie,
neither stands for the other then. Telling words do not count here: whoever says the same in other words
exchanges them, too. Most pairs are neither copies nor told apart.

What words of their own do not tell: who did what to whom, a "not" more, lower-case names (of drugs, of
functions), a unit. Two passages that differ in nothing else count as copies.

In the order of relevance, each passage goes with the first that it repeats or that repeats it, so whatever is
set aside is a copy of what stands for it, and is not told apart from what was set aside with it.
docs/sigma.md has the measurements.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.selection.compiled import compiled
from dartboard.selection.telling import TELLING
from dartboard.types import IntArray

Texts = Callable[[IntArray], Sequence[str]]
"""Gives the texts of some candidates by their positions."""

SHARED = 0.8
"""So much of a copy's different words stands in the other passage."""

AS_LONG = 0.4
"""A copy has this share of the other's different words, or more."""

LONGEST_TEXT = 10_000
"""Longer texts, in characters, are no passages, and count as copies of nothing."""

SHORTEST_TEXT = 30
"""Where most texts are shorter, as names and numbers of passages are, they say nothing about copies."""

_CHARACTERS = 1 << 16
"""Those beyond, such as pictures, are part of no word."""

_CASES = 0x2E80
"""Scripts with small and capital letters come first: Latin, Greek, Cyrillic, Armenian, Georgian …"""

_LETTER, _UNSPACED, _CAPITAL, _DIGIT, _OPENING = 1, 2, 3, 4, 5
_COMMA, _BREAK = ord(","), ord("\n")
_SPACES, _SIGNS, _WITHIN_NUMBERS = (
    np.array([ord(sign) for sign in signs], dtype=np.uint32)
    for signs in (" \n\t\u00a0", "([{-*/\"'\u201c\u2018\u00ab", ".,:/-")
)
"""What is between words; what may stand before a word inside a sentence; what digits have between them."""
_WITHOUT_SPACES = ((_CASES, 0xA4CF), (0xAC00, 0xD7FF), (0xF900, 0xFAFF))
"""Scripts in which words are not spaced: any two characters that follow each other count as one."""

_LONGEST = 64
"""Beyond, what a word is made of counts, and its order no longer."""

_AGAIN = np.uint64(0x9E3779B97F4A7C15)
"""A number that stands in a text again counts as another one, so much larger."""


class Compared(NamedTuple):
    """Of all pairs of texts, ``(n, n)``, which are copies and which are told apart."""

    copies: npt.NDArray[np.bool_]
    apart: npt.NDArray[np.bool_]


class Alphabet(NamedTuple):
    """Of each character its small letter and its part in a word; what makes words numbers; telling words."""

    small: npt.NDArray[np.uint16]
    kinds: npt.NDArray[np.uint8]
    multipliers: npt.NDArray[np.uint64]
    telling: npt.NDArray[np.uint64]


def telling(texts: Sequence[str]) -> bool:
    """Whether there is enough to read to tell copies by it, and not too much."""
    return 2 * sum(SHORTEST_TEXT <= len(text) <= LONGEST_TEXT for text in texts) >= len(texts)


def repeated(copies: npt.NDArray[np.bool_], apart: npt.NDArray[np.bool_]) -> IntArray:
    """``(n,)`` for each text, the most relevant first, the first that it is a copy of: its leader.

    A text that says less than several others may be a copy of each, while these are told apart from one
    another: these have no leader but themselves.
    """
    leaders = np.full(len(copies), -1)
    for i, like_it in enumerate(copies):
        if leaders[i] < 0:
            members = np.flatnonzero(like_it & (leaders < 0))
            others = apart[np.ix_(members, members)].any(axis=1)
            leaders[members[~others]] = i
    return leaders


def compare(texts: Sequence[str]) -> Compared:
    """Which of some texts are copies of one another, and which are told apart; no words tell nothing."""
    read = [text if len(text) <= LONGEST_TEXT else "" for text in texts]
    codes = np.frombuffer("\n".join([*read, ""]).encode("utf-32-le", "surrogatepass"), "<u4")
    ends = np.cumsum([len(text) + 1 for text in read])
    if machine := compiled():
        return Compared(*machine.compare_texts(codes, ends, *alphabet(), SHARED, AS_LONG))
    words, text_of, kind = _words(codes, ends)
    is_name = (kind == _DIGIT) | (kind == _CAPITAL)
    is_name |= (kind == _OPENING) & np.isin(words, words[kind == _CAPITAL])
    decides = is_name | np.isin(words, alphabet().telling)
    words[kind == _DIGIT] += _times_before(words[kind == _DIGIT], text_of[kind == _DIGIT]) * _AGAIN
    different, number = np.unique(words, return_inverse=True)
    has, names, deciding = np.zeros((3, len(texts), len(different)), np.float32)
    has[text_of, number] = 1.0
    names[text_of[is_name], number[is_name]] = 1.0
    deciding[text_of[decides], number[decides]] = 1.0
    sizes, shared = has.sum(axis=1), has @ has.T
    more, other = (part.sum(axis=1)[:, None] - part @ has.T >= 1 for part in (names, deciding))
    repeats = (shared >= SHARED * sizes[:, None]) & ~other & (shared > 0)
    comparable = np.minimum.outer(sizes, sizes) >= AS_LONG * np.maximum.outer(sizes, sizes)
    copies = (repeats | repeats.T) & comparable
    np.fill_diagonal(copies, True)
    return Compared(copies, more & more.T)


def _words(
    codes: npt.NDArray[np.uint32], ends: IntArray
) -> tuple[npt.NDArray[np.uint64], IntArray, npt.NDArray[np.uint8]]:
    """All words as figures, the text of each, and the kind of its first character; a break ends each text.

    A capital that may be one for beginning a sentence is ``_OPENING``.
    """
    small, kinds, multipliers, _ = alphabet()
    known = np.minimum(codes, _CHARACTERS - 1)
    kind, letters = kinds[known], small[known].astype(np.uint64)
    digit = kind == _DIGIT
    kind[1:-1][np.isin(codes[1:-1], _WITHIN_NUMBERS) & digit[:-2] & digit[2:]] = _DIGIT
    inside = (kind > 0) & (kind != _UNSPACED)
    starts = np.flatnonzero(inside[1:] & ~inside[:-1]) + 1
    starts = np.concatenate(([0], starts)) if inside[0] else starts
    pairs = np.flatnonzero((kind[1:] == _UNSPACED) & (kind[:-1] == _UNSPACED))
    apart = letters[pairs] * multipliers[0] + letters[pairs + 1] * multipliers[1]
    words, has_digit, has_capital = apart, *np.zeros((2, 0), dtype=bool)
    if len(starts):
        before = starts[0]
        place = np.arange(before, len(codes)) - np.repeat(starts, np.diff(starts, append=len(codes)))
        parts = np.where(inside[before:], letters[before:] * multipliers[place % _LONGEST], np.uint64(0))
        words = np.concatenate((np.add.reduceat(parts, starts - before), apart))
        further = (kind[before:] == _CAPITAL) & (place > 0)
        has_digit = np.logical_or.reduceat((kind == _DIGIT)[before:], starts - before)
        has_capital = np.logical_or.reduceat(further, starts - before)
    at = np.concatenate((starts, pairs))
    text_of = np.searchsorted(ends, at, side="right")
    begins = kind[at]
    opening = (begins == _CAPITAL) & ~_follows(codes, kind, at, np.concatenate(([0], ends))[text_of])
    begins[opening] = _OPENING
    begins[: len(starts)][has_capital] = _CAPITAL
    begins[: len(starts)][has_digit] = _DIGIT
    return words, text_of, begins


def _follows(
    codes: npt.NDArray[np.uint32], kind: npt.NDArray[np.uint8], at: IntArray, begin: IntArray
) -> npt.NDArray[np.bool_]:
    """Whether words follow another word of their text, or a comma: in one line or the next, signs or not."""
    here = _back(codes, at, begin, _SIGNS)
    word = _back(codes, here, begin, _SPACES)
    blank_line = (
        (here - word == 2) & (codes[word] == _BREAK) & (codes[np.minimum(word + 1, len(codes) - 1)] == _BREAK)
    )
    joined = (here < at) & (here > begin) & (kind[here - 1] > 0)
    spaced = (
        (word < here) & (word > begin) & ~blank_line & ((kind[word - 1] > 0) | (codes[word - 1] == _COMMA))
    )
    found: npt.NDArray[np.bool_] = joined | spaced
    return found


def _back(
    codes: npt.NDArray[np.uint32], at: IntArray, begin: IntArray, over: npt.NDArray[np.uint32]
) -> IntArray:
    """Up to two places further back, over some characters."""
    for _ in range(2):
        at = at - ((at > begin) & np.isin(codes[at - 1], over))
    return at


def _times_before(words: npt.NDArray[np.uint64], text_of: IntArray) -> npt.NDArray[np.uint64]:
    """How often each word stands in its text before."""
    order = np.lexsort((np.arange(len(words)), words, text_of))
    first = np.ones(len(words), dtype=bool)
    first[1:] = (words[order][1:] != words[order][:-1]) | (text_of[order][1:] != text_of[order][:-1])
    starts = np.flatnonzero(first)
    times = np.empty(len(words), dtype=np.uint64)
    times[order] = np.arange(len(words)) - np.repeat(starts, np.diff(starts, append=len(words)))
    return times


@cache
def alphabet() -> Alphabet:
    """All characters, by what Python knows of them."""
    every = np.arange(_CHARACTERS, dtype=np.uint32).view("U1")
    small = np.arange(_CHARACTERS, dtype=np.uint16)
    small[:_CASES] = np.char.lower(every[:_CASES]).astype("U1").view(np.uint32)
    kinds = np.char.isalnum(every).astype(np.uint8) * np.uint8(_LETTER)
    kinds[np.char.isupper(every)] = _CAPITAL
    kinds[np.char.isdigit(every)] = _DIGIT
    for first, last in _WITHOUT_SPACES:
        here = kinds[first : last + 1]
        here[here > 0] = _UNSPACED
    multipliers = np.random.default_rng(20240712).integers(2**63, size=_LONGEST, dtype=np.uint64)
    multipliers = multipliers * np.uint64(2) + np.uint64(1)
    telling = [np.frombuffer(word.encode("utf-32-le"), "<u4").astype(np.uint64) for word in sorted(TELLING)]
    numbers = np.array([(word * multipliers[: len(word)]).sum(dtype=np.uint64) for word in telling])
    return Alphabet(small, kinds, multipliers, numbers)
