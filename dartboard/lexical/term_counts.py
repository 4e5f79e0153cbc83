"""Count the terms of texts in blocks, so that a large corpus fits in memory."""

from array import array
from collections.abc import Callable, Iterable, Sized
from itertools import islice

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.lexical.analysis import Analyzer, words

_WORDS_A_BLOCK = 2_000_000
_REPORT_EVERY = 1000

Keys = npt.NDArray[np.int64]
Progress = Callable[[int, int | None], None]
"""Called with the number of finished texts and of all texts (None if unknown)."""


class _Words(dict[str, int]):
    """Words as spelt, numbered in order; each is analysed once, not at every occurrence."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class _Terms:
    """The vocabulary, and the terms of each numbered word."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.vocabulary: dict[str, int] = {}
        self._analyzer = analyzer
        self._terms = array("i")
        self._ends = array("q", [0])

    def learn(self, words: Iterable[str]) -> None:
        """Analyse these words, in the order of their numbers."""
        for word in words:
            for term in self._analyzer.terms_of(word):
                self._terms.append(self.vocabulary.setdefault(term, len(self.vocabulary)))
            self._ends.append(len(self._terms))

    def expand(self, numbers: Keys) -> tuple[Keys, Keys]:
        """The concatenated terms of these words, and the number of terms per word."""
        ends = np.array(self._ends)
        sizes = np.diff(ends)[numbers]
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.array(self._terms, dtype=np.int64)[np.repeat(ends[numbers], sizes) + offsets], sizes


def count_terms(
    texts: Iterable[str], analyzer: Analyzer, progress: Progress | None
) -> tuple[dict[str, int], Keys, Keys, npt.NDArray[np.int32]]:
    """Vocabulary, the sorted keys ``term << 32 | row`` of all postings, their counts, and row lengths."""
    total = len(texts) if isinstance(texts, Sized) else None
    known, terms = _Words(), _Terms(analyzer)
    numbers, sizes, learnt, done = array("i"), array("i"), 0, 0
    blocks: list[tuple[Keys, Keys, Keys]] = []

    def group() -> None:
        nonlocal numbers, sizes, learnt
        terms.learn(islice(known, learnt, None))
        learnt = len(known)
        blocks.append(_group(terms, np.array(numbers, dtype=np.int64), np.array(sizes), done - len(sizes)))
        numbers, sizes = array("i"), array("i")

    for text in texts:
        if not isinstance(text, str):
            raise InvalidInputError(f"text {done} is {type(text).__name__}, not str")
        before = len(numbers)
        numbers.extend(map(known.__getitem__, words(text)))
        sizes.append(len(numbers) - before)
        done += 1
        if len(numbers) >= _WORDS_A_BLOCK:
            group()
        if progress and done % _REPORT_EVERY == 0:
            progress(done, total)
    group()
    if progress:
        progress(done, total)
    keys, counts, lengths = map(np.concatenate, zip(*blocks, strict=True))
    order = np.argsort(keys, kind="stable")
    return terms.vocabulary, keys[order], counts[order], lengths.astype(np.int32)


def _group(terms: _Terms, numbers: Keys, sizes: Keys, first: int) -> tuple[Keys, Keys, Keys]:
    """For the rows from ``first`` on: their distinct sorted keys, the count of each, and row lengths."""
    ids, spread = terms.expand(numbers)
    rows = np.repeat(np.repeat(np.arange(sizes.size), sizes), spread)
    keys, counts = np.unique(ids << 32 | (rows + first), return_counts=True)
    return keys, counts, np.bincount(rows, minlength=sizes.size)
