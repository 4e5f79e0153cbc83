"""Find near-duplicates among texts: copies that were edited, cut differently, or embedded in other text.

A text is a sequence of words, without case, punctuation, HTML tags and targets of Markdown links. Two texts
are *alike* if 70 % of the smaller one's shingles (three words in a row; Broder 1997) occur in the other, and
40 % of all their shingles are shared: containment, and enough resemblance that a sentence is no duplicate of
its chapter. If the smaller one has fewer than 20 shingles, all of them must occur, and half be shared.

One guard: alike texts *conflict*, and are not duplicates, if each has a number, date, version, identifier or
capitalised name that the other lacks in the same place: between the first and the last shared shingle, in the
eight words before, or in the eight words after. Text that was cut off or added is missing on one side only.
A capitalised word that begins a sentence is a name unless the texts have it in lower case more often than as
a name. Outside of the shared part it counts only directly before it, because text around a copy ("Print this
page") differs. There is no word list, so the guard misses a changed "not", numbers in words, lower-case and
swapped names, signs (-500, C++), and a name or number that changes in one place but occurs elsewhere too.

Scripts without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are compared by characters. In
scripts without capitals the guard sees only numbers. Texts of more than 2,000 words must be equal.

Groups come from leader clustering in the given order, not from transitive closure: the first text without a
group leads one, and its near-duplicates join, except those that conflict with another one that would join
(of a group of more than 128: with one of the 128 around it).
We use no library: datasketch, rensa and text-dedup estimate resemblance with MinHash, and semhash compares
embeddings. None of them finds a contained copy or separates texts that differ in one number.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.lazy import lazy
from dartboard.types import FloatArray, IntArray, as_matrix

SHINGLE = 3  # words
CONTAINMENT, RESEMBLANCE = 0.7, 0.4
SHORT = 20  # shingles; below that, containment must be 1 and resemblance 0.5
MARGIN = 8  # words before and after the shared part in which the guard looks for names
LONGEST = 2000  # words
CLOSE = 0.8  # minimum cosine of candidates that are compared
VERSION = (1).to_bytes(4, "little")  # prefix of every fingerprint; four bytes per word follow
_NAME, _UNCLEAR = 1, 2  # the two low bits of a word: a name or number; a capital at the start of a sentence
# \w excludes vowel signs and accents. A word may contain a dot (jest.fn), a number some other signs.
_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u109f"
_INNER = r"(?=[.,:/-]\w)(?:\.|(?<=\d)[,:/-](?=\d))"
_ASCII = re.compile(rf"\W*+\w++(?:{_INNER}\w++)*+", re.ASCII)
_UNICODE = re.compile(rf"[^\w{_MARKS}]*+[\w{_MARKS}]++(?:{_INNER}[\w{_MARKS}]++)*+")
_LETTER = re.compile(rf"[\w{_MARKS}]")
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])")
_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_LINK = re.compile(r"\]\([^()\s]*\)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n\s*(?=[^\W\d_])")
# Text between two words of one sentence, without decoration, is one of _INSIDE; else a sentence begins.
_DECORATION = str.maketrans("", "", "()[]{}\"'`*_~\u201c\u201d\u2018\u2019\u00ab\u00bb \t\u00a0")
_INSIDE = frozenset(("", ",", "-", "/", "&", "+", "\n", ",\n"))
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_NEIGHBOURS = 128  # texts with the same rare shingle that a text is compared with, besides the first
_BLOCK = 1 << 18  # shingles that are compared at once, to save memory; each text counts as 256 more
_TEXT_COST = 256  # so that a table of texts × shingles has at most 2**25 cells
_PAIRS_AT_ONCE = 1 << 14  # pairs whose texts are counted at once
_CELLS = 1 << 16  # shingles that are looked up at once
_PAIRS = 1 << 24  # pairs that are collected before those found twice are removed
_CACHED = 1 << 17  # words
_Bools = npt.NDArray[np.bool_]


def near_duplicates(texts: Sequence[str], *, pairs: IntArray | None = None) -> IntArray:
    """Group texts with nearly the same words.

    Args:
        texts: Most important first; the first text of a group represents it.
        pairs: ``(p, 2)`` positions: only these pairs are compared.

    Returns:
        ``(n,)`` group numbers: for each text, the position of the first text of its group.

    Example:
        >>> near_duplicates(["The bridge opened in 1927.", "<b>The bridge</b> opened in 1927", "It is old."])
        array([0, 0, 2])
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidInputError("texts must be a list of strings")
    used = range(len(texts)) if pairs is None else _positions(pairs, len(texts)).ravel().tolist()
    known = {text: fingerprint(text) for text in {texts[at] for at in used}}
    return group_fingerprints([known.get(text, VERSION) for text in texts], pairs=pairs)


def are_alike(one: str, other: str) -> bool:
    """Whether two texts have nearly the same words, even if the guard separates them.

    Example:
        >>> text = "The ferry stopped and the long new bridge over the river was opened to all traffic on the"
        >>> one, other = f"{text} first day of May in 1927.", f"{text} first day of May in 1972."
        >>> are_alike(one, other), near_duplicates([one, other])
        (True, array([0, 1]))
    """
    first, second = fingerprint(one), fingerprint(other)
    return first == second or bool(_Pool([first, second]).alike(np.array([[0, 1]]))[0])


@lru_cache(maxsize=4096)  # the same chunks are candidates of many questions
def fingerprint(text: str) -> bytes:
    """The input of :func:`group_fingerprints` for a text: its words as numbers, four bytes each."""
    plain = _without_markup(text)
    found = (_ASCII if plain.isascii() else _UNICODE).findall("." + plain)
    codes = np.fromiter(map(_CODES.__getitem__, found), dtype="<u4", count=len(found))
    codes = codes[codes > 0]
    if len(codes) > LONGEST:
        return VERSION + blake2b((codes >> 2).tobytes(), digest_size=4 * SHINGLE).digest()
    return VERSION + codes.tobytes().ljust(4 * SHINGLE if len(codes) else 0, b"\0")


def group_fingerprints(fingerprints: Sequence[bytes], *, pairs: IntArray | None = None) -> IntArray:
    """Group texts by their fingerprints; gives the same groups as :func:`near_duplicates`."""
    known: dict[bytes, int] = {}
    number = np.array([known.setdefault(one, len(known)) for one in fingerprints], dtype=np.int64)
    pool = _Pool(list(known))
    if pairs is not None:
        pairs = _unique(number[_positions(pairs, len(fingerprints))], len(known))
    leaders = pool.leaders(pool.candidates() if pairs is None else pairs)
    first = np.unique(number, return_index=True)[1]
    return np.where(pool.sizes[number] > 0, first[leaders[number]], np.arange(len(number)))


class _Pool:
    """Distinct texts: words from ``starts`` to ``ends`` in one array; ``sizes`` shingles from ``starts``."""

    def __init__(self, fingerprints: Sequence[bytes]) -> None:
        for one in fingerprints:
            if len(one) % 4 or one[:4] != VERSION:
                raise InvalidInputError(f"{one[:8]!r} begins no fingerprint: make one with fingerprint()")
        codes = np.frombuffer(b"".join(fingerprints), dtype="<u4")
        lengths = np.array([len(one) // 4 for one in fingerprints], dtype=np.int64)
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths + 1
        self.sizes = np.maximum(lengths - SHINGLE, 0)
        self.words: npt.NDArray[np.uint32] = codes >> np.uint32(2)
        self.flags: npt.NDArray[np.uint32] = codes & np.uint32(3)
        words = self.words.astype(np.uint64)
        one, two, three = _MULTIPLIERS
        self.shingles = words[:-2] * one + words[1:-1] * two + words[2:] * three

    def candidates(self) -> IntArray:
        """The pairs that share one of the rarest 30 % of shingles of either text: no other pair is alike."""
        at, text = _ranges(self.starts, self.sizes)
        order = np.lexsort((text, self.shingles[at]))
        shingle, text = self.shingles[at][order], text[order]
        first = np.searchsorted(shingle, shingle)
        frequency = np.searchsorted(shingle, shingle, "right") - first
        by_rarity = np.lexsort((frequency, text))
        rank = np.empty(len(text), dtype=np.int64)
        rank[by_rarity] = np.arange(len(text)) - (np.cumsum(self.sizes) - self.sizes)[text[by_rarity]]
        rare = rank <= (1 - CONTAINMENT) * self.sizes[text]
        del order, frequency, by_rarity, rank
        found, collected = [np.stack([text[first], text], axis=1)[rare | rare[first]]], 0
        for step in range(1, min(_NEIGHBOURS, len(shingle))):
            equal = np.flatnonzero((shingle[step:] == shingle[:-step]) & (rare[step:] | rare[:-step]))
            if not len(equal):
                break
            found.append(np.stack([text[equal], text[equal + step]], axis=1))
            collected += len(equal)
            if collected > _PAIRS:
                found, collected = [_unique(np.concatenate(found), len(self.starts))], 0
        return _unique(np.concatenate(found), len(self.starts))

    def alike(self, pairs: IntArray) -> _Bools:
        """Which pairs reach both thresholds."""
        in_order = self.sizes[pairs[:, 0]] <= self.sizes[pairs[:, 1]]
        smaller, larger = np.where(in_order, pairs.T, pairs.T[::-1])
        few, many = self.sizes[smaller], self.sizes[larger]
        possible = np.flatnonzero((few > 0) & (few >= RESEMBLANCE * many))
        shared = np.zeros(len(pairs), dtype=np.int64)
        for part, table in self._tables(pairs[possible]):
            at = possible[part]
            shared[at] = table.shared(smaller[at], larger[at])[0]
        contained: _Bools = shared >= np.where(few < SHORT, 1, CONTAINMENT) * few
        resembling: _Bools = shared >= np.where(few < SHORT, 0.5, RESEMBLANCE) * (few + many - shared)
        return contained & resembling & (shared > 0)

    def conflicting(self, pairs: IntArray) -> _Bools:
        """Which pairs have different names in the same place."""
        found: _Bools = np.zeros(len(pairs), dtype=bool)
        for at, table in self._tables(pairs) if len(pairs) else ():
            one, other = pairs[at].T
            lacking = table.lacking_names(np.append(one, other), np.append(other, one))
            found[at] = (lacking[: len(one)] & lacking[len(one) :]).any(axis=1)
        return found

    def _tables(self, pairs: IntArray) -> "Iterator[tuple[slice, _Table]]":
        """Parts of the pairs, each with a table of its texts: all at once unless that takes memory."""
        if self._whole is not None:
            yield slice(0, len(pairs)), self._whole
            return
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            yield from self._halves(pairs, start, min(start + _PAIRS_AT_ONCE, len(pairs)))

    def _halves(self, pairs: IntArray, start: int, stop: int) -> "Iterator[tuple[slice, _Table]]":
        """The pairs of a range, halved until their texts are few enough."""
        texts, half = np.unique(pairs[start:stop]), (start + stop) // 2
        if half == start or (self.sizes[texts] + _TEXT_COST).sum() <= _BLOCK:
            yield slice(start, stop), _Table(self, texts)
        else:
            yield from self._halves(pairs, start, half)
            yield from self._halves(pairs, half, stop)

    @lazy
    def _whole(self) -> "_Table | None":
        """All texts, unless they are too many."""
        small = (self.sizes + _TEXT_COST).sum() <= _BLOCK
        return _Table(self, np.arange(len(self.sizes))) if small else None

    @lazy
    def names(self) -> _Bools:
        """Which words are names or numbers."""
        name = (self.flags & _NAME) > 0
        unclear = np.flatnonzero(self.flags & _UNCLEAR)
        words = self.words[unclear]
        in_lower_case, as_name = (
            np.searchsorted(some, words, "right") - np.searchsorted(some, words)
            for some in (np.sort(self.words[self.flags == 0]), np.sort(self.words[name]))
        )
        name[unclear] = in_lower_case <= as_name
        return name

    def leaders(self, pairs: IntArray) -> IntArray:
        """``(m,)``: for each text the leader of its group, given these pairs."""
        alike = pairs[self.alike(pairs)]
        left = alike[~self.conflicting(alike)]
        known = left @ [len(self.starts), 1]
        while True:
            leaders = list(range(len(self.starts)))
            members: dict[int, list[int]] = {}
            for one, other in zip(*left.T.tolist(), strict=True):
                if leaders[one] == one and leaders[other] == other:
                    leaders[other] = one
                    members.setdefault(one, []).append(other)
            together = _close_by([np.array(group) for group in members.values()])
            unknown = together[~np.isin(together @ [len(self.starts), 1], known)]
            out = np.unique(unknown[self.conflicting(unknown)])
            if not len(out):
                return np.array(leaders, dtype=np.int64)
            left = left[~(np.isin(left[:, 1], out) & (np.array(leaders)[left[:, 1]] == left[:, 0]))]


class _Table:
    """Shingles and names of some texts, a row for each, to look up those of one text in another.

    Shingles that occur only once cannot be shared: column 0, which no text has.
    """

    def __init__(self, pool: _Pool, texts: IntArray) -> None:
        self._pool, self._texts = pool, texts
        self._row = np.zeros(len(pool.starts), dtype=np.int64)
        self._row[texts] = np.arange(len(texts))
        self._sizes = pool.sizes[texts]
        at, text = _ranges(pool.starts[texts], self._sizes)
        _, shingle, times = np.unique(pool.shingles[at], return_inverse=True, return_counts=True)
        column = np.where(times > 1, np.cumsum(times > 1), 0)[shingle]
        self._columns = _padded(column, self._sizes, fill=0)
        self._has: _Bools = np.zeros((len(texts), column.max(initial=0) + 1), dtype=bool)
        self._has[text, column] = True
        self._has[:, 0] = False

    def shared(self, these: IntArray, others: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """How many shingles of these texts the others have, and the range of words from first to last."""
        these, others = self._row[these], self._row[others]
        count, begin, end = np.zeros((3, len(these)), dtype=np.int64)
        for pairs, width in _by_length(self._sizes[these]):
            hit = _look_up(self._has, others[pairs], self._columns[these[pairs], :width])
            count[pairs] = np.count_nonzero(hit, axis=1)
            begin[pairs] = hit.argmax(axis=1)
            end[pairs] = width + SHINGLE - 1 - hit[:, ::-1].argmax(axis=1)
        return count, np.where(count, begin, 0), np.where(count, end, 0)

    def lacking_names(self, these: IntArray, others: IntArray) -> _Bools:
        """``(p, 3)``: whether the others lack a name of these: before, in and after the shared part."""
        _, begin, end = self.shared(these, others)
        names, lengths, times = self._names
        these, others = self._row[these], self._row[others]
        found = np.zeros((len(these), 3), dtype=bool)
        for pairs, width in _by_length(lengths[these]):
            column, earlier, place, before, after = names[these[pairs], :, :width].transpose(1, 0, 2)
            # A name that occurs twice must occur twice in the other.
            pair, at = np.nonzero(_look_up(times, others[pairs], column) <= earlier)
            pair, place, before, after = pairs[pair], place[pair, at], before[pair, at], after[pair, at]
            near = (place + before >= begin[pair]) & (place - after < end[pair])
            part = (place >= begin[pair]).astype(np.intp) + (place >= end[pair])
            found[pair[near], part[near]] = True
        return found

    @lazy
    def _names(self) -> tuple[IntArray, IntArray, npt.NDArray[np.uint16]]:
        """The names of each text, how many they are, and how often each text has each of them.

        The names are ``(t, 5, width)``: column in the last table, how often it occurs earlier in the text,
        place in the text, and the words before and after it in which a shared part has to begin or end. A
        word that occurs only once is in no other text: column 0, which no text has.
        """
        pool, starts = self._pool, self._pool.starts[self._texts]
        at, text = _ranges(starts, pool.ends[self._texts] - starts)
        is_name = pool.names[at]
        _, word, times = np.unique(pool.words[at], return_inverse=True, return_counts=True)
        named: _Bools = np.zeros(len(times), dtype=bool)
        named[word[is_name]] = True
        named &= times > 1
        columns = np.where(named, np.cumsum(named), 0)[word]
        owner, place, column = text[is_name], (at - starts[text])[is_name], columns[is_name]
        unclear = (pool.flags[at[is_name]] & _UNCLEAR) > 0
        before, after = np.where(unclear, [[1], [0]], MARGIN)
        keys = owner * len(times) + word[is_name]
        order = np.argsort(keys, kind="stable")
        earlier = np.empty(len(keys), dtype=np.int64)
        earlier[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
        lengths = np.bincount(owner, minlength=len(starts))
        fills = (0, -1, 0, 0, 0)  # no text has a word less than 0 times, so the fill is never lacking
        names = [
            _padded(values, lengths, fill)
            for values, fill in zip((column, earlier, place, before, after), fills, strict=True)
        ]
        table: npt.NDArray[np.uint16] = np.zeros((len(starts), np.count_nonzero(named) + 1), dtype=np.uint16)
        shared = columns > 0
        np.add.at(table, (text[shared], columns[shared]), 1)
        return np.stack(names, axis=1), lengths, table


def _padded(values: IntArray, lengths: IntArray, fill: int) -> IntArray:
    """Concatenated rows of these lengths as a matrix."""
    rows = np.full((len(lengths), lengths.max(initial=0)), fill, dtype=np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = values
    return rows


def _by_length(lengths: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Rows of similar length and the longest length, few enough for the processor's cache."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order) and (width := int(lengths[order[start]])):
        rows = order[start : start + max(1, _CELLS // width)]
        yield rows, width
        start += len(rows)


def _look_up(table: npt.NDArray[Any], rows: IntArray, columns: IntArray) -> npt.NDArray[Any]:
    """``(r, c)``: ``table[rows[i], columns[i, j]]``."""
    found: npt.NDArray[Any] = table.ravel().take(columns + (rows * table.shape[1])[:, None])
    return found


def _close_by(groups: Sequence[IntArray]) -> IntArray:
    """The pairs within groups; in a large group, each member with the next ``_NEIGHBOURS``."""
    pairs = [
        np.stack([group[:-step], group[step:]], axis=1)
        for group in groups
        for step in range(1, min(len(group), _NEIGHBOURS + 1))
    ]
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])


def _ranges(starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """All positions of several ranges, concatenated, and the index of each position's range."""
    owner = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(len(owner)) + (starts - np.cumsum(lengths) + lengths)[owner], owner


def _unique(pairs: IntArray, count: int) -> IntArray:
    """Distinct pairs of different texts, the lower index first, sorted."""
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    return np.stack(np.divmod(np.unique((low * count + high)[low < high]), max(count, 1)), axis=1)


def _positions(pairs: IntArray, count: int) -> IntArray:
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.shape[1:] != (2,) or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= count:
        raise InvalidInputError(f"pairs must be (p, 2) whole numbers, positions in {count} texts")
    return array.astype(np.int64, copy=False)


def _without_markup(text: str) -> str:
    text = html.unescape(text) if "&" in text else text
    text = _TAG.sub(" ", text) if "</" in text or "/>" in text else text  # otherwise <…> may be code
    text = _LINK.sub("] ", text) if "](" in text else text
    text = _HYPHEN.sub("", text) if "-\n" in text else text
    if text.isascii():
        return text
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", text).replace("\u00ad", ""))


class _Codes(dict[str, int]):
    """A cache: words and the signs before them to 30 bits of hash and two flags; 0 if there is no word."""

    def __missing__(self, found: str) -> int:
        start = at.start() if (at := _LETTER.search(found)) else len(found)
        word = found[start:].strip("_.")
        code = crc32(word.lower().encode("utf-8", "surrogatepass")) & 0xFFFFFFFC if word else 0
        capital, begins = word[:1].isupper(), found[:start].translate(_DECORATION) not in _INSIDE
        certain = word[1:] != word[1:].lower() or "_" in word or "." in word or any(map(str.isdigit, word))
        code |= _NAME if certain or (capital and not begins) else _UNCLEAR if capital else 0
        if len(self) >= _CACHED:
            self.clear()
        return self.setdefault(found, code) if len(found) < 64 else code


_CODES = _Codes()


def candidate_groups(
    vectors: npt.ArrayLike,
    texts: Sequence[str] | None = None,
    *,
    read: Callable[[Sequence[int]], Sequence[bytes]] | None = None,
) -> IntArray:
    """Near-duplicate groups among the candidates of one query, ``(n,)``.

    Only pairs with a cosine of at least ``CLOSE`` are compared: near-duplicates have close vectors, and most
    pairs of candidates do not. Give the candidates' ``texts``, or ``read``, which returns the stored
    fingerprints of the compared candidates, by position.
    """
    rows = as_matrix(vectors)
    if read is not None:
        pairs = _close_pairs(rows)
        if not len(pairs):
            return np.arange(len(rows))
        used = np.unique(pairs).tolist()
        fingerprints = [VERSION] * len(rows)
        for at, stored in zip(used, read(used), strict=True):
            fingerprints[at] = stored
        return group_fingerprints(fingerprints, pairs=pairs)
    given = [] if texts is None else list(texts)
    if isinstance(texts, str) or len(given) != len(rows) or not all(isinstance(text, str) for text in given):
        raise InvalidInputError(
            f"texts must be {len(rows)} strings, one per candidate: leave them out if you have none"
        )
    return near_duplicates(given, pairs=_close_pairs(rows))


def _close_pairs(rows: FloatArray) -> IntArray:
    """``(p, 2)``: the pairs of close rows, the lower position first."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        if not (lengths.min() > 1e-12 and lengths.max() < 1e12):  # avoid underflow and overflow
            rows = rows / np.abs(rows).max(axis=1, keepdims=True)
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        unit = (rows / lengths[:, None]).astype(np.float32, copy=False)
        pairs = np.stack(np.divmod(np.flatnonzero(unit @ unit.T >= CLOSE), len(rows)), axis=1)
    return pairs[pairs[:, 0] < pairs[:, 1]]
