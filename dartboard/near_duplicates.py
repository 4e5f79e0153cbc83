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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.lazy import lazy
from dartboard.types import FloatArray, IntArray, as_matrix
from dartboard.utils import unit_rows

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
_MATRIX_TEXTS = 512  # of more, shingles are looked up pair by pair
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


class _Text:
    """A text as its words and shingles, for comparisons with few others."""

    __slots__ = ("array", "flagged", "has", "shingles", "times")

    def __init__(self, fingerprint: bytes) -> None:
        codes = np.frombuffer(fingerprint, dtype="<u4")[1:]
        words = (codes >> np.uint32(2)).tolist()
        self.times = Counter(words)
        self.flagged = [(at, words[at], int(codes[at]) & 3) for at in np.flatnonzero(codes & 3).tolist()]
        self.array = _shingles(codes >> np.uint32(2))
        self.shingles: list[int] = self.array.tolist()
        self.has = frozenset(self.shingles)

    def shared(self, other: "_Text") -> list[bool]:
        """Which shingles the other text has."""
        return list(map(other.has.__contains__, self.shingles))


_text = lru_cache(maxsize=4096)(_Text)  # the same chunks are candidates of many questions


class _Pool:
    """Distinct texts. ``sizes`` are their numbers of shingles."""

    def __init__(self, fingerprints: Sequence[bytes]) -> None:
        for one in fingerprints:
            if len(one) % 4 or one[:4] != VERSION:
                raise InvalidInputError(f"{one[:8]!r} begins no fingerprint: make one with fingerprint()")
        self._fingerprints = fingerprints
        self._lengths = np.array([len(one) // 4 for one in fingerprints], dtype=np.int64)
        self.sizes: IntArray = np.maximum(self._lengths - SHINGLE, 0)
        self._is_name: dict[int, bool] = {}

    @lazy
    def _codes(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(b"".join(self._fingerprints), dtype="<u4")

    def candidates(self) -> IntArray:
        """The pairs that share one of the rarest 30 % of shingles of either text: no other pair is alike."""
        starts = np.cumsum(self._lengths) - self._lengths + 1
        at, text = _ranges(starts, self.sizes)
        shingles = _shingles(self._codes >> np.uint32(2))[at]
        order = np.lexsort((text, shingles))
        shingle, text = shingles[order], text[order]
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
                found, collected = [_unique(np.concatenate(found), len(starts))], 0
        return _unique(np.concatenate(found), len(starts))

    def alike(self, pairs: IntArray) -> _Bools:
        """Which pairs reach both thresholds."""
        in_order = self.sizes[pairs[:, 0]] <= self.sizes[pairs[:, 1]]
        smaller, larger = np.where(in_order, pairs.T, pairs.T[::-1])
        few, many = self.sizes[smaller], self.sizes[larger]
        possible = np.flatnonzero((few > 0) & (few >= RESEMBLANCE * many))
        shared = np.zeros(len(pairs), dtype=np.int64)
        shared[possible] = self._shared(smaller[possible], larger[possible])
        contained: _Bools = shared >= np.where(few < SHORT, 1, CONTAINMENT) * few
        resembling: _Bools = shared >= np.where(few < SHORT, 0.5, RESEMBLANCE) * (few + many - shared)
        return contained & resembling & (shared > 0)

    def _shared(self, these: IntArray, others: IntArray) -> IntArray:
        """How many shingles of these texts the others have.

        With C, how often each text has each shingle that occurs twice, that is ``C @ (C > 0).T``. A matrix
        that would be too large is not made: shingles are then looked up pair by pair.
        """
        texts, place = np.unique(np.append(these, others), return_inverse=True)
        if not 0 < len(texts) <= _MATRIX_TEXTS:
            found = (sum(self._text(a).shared(self._text(b))) for a, b in zip(these, others, strict=True))
            return np.fromiter(found, dtype=np.int64, count=len(these))
        owner = np.repeat(np.arange(len(texts)), self.sizes[texts])
        flat = np.concatenate([self._text(at).array for at in texts.tolist()])
        _, column, times = np.unique(flat, return_inverse=True, return_counts=True)
        twice = times > 1
        owner, column = owner[twice[column]], (np.cumsum(twice) - 1)[column[twice[column]]]
        width = int(np.count_nonzero(twice))
        counts = np.bincount(owner * width + column, minlength=len(texts) * width)
        matrix = counts.reshape(len(texts), width).astype(np.float32)
        both = matrix @ (matrix > 0).astype(np.float32).T
        return both[place[: len(these)], place[len(these) :]].astype(np.int64)

    def conflict(self, one: int, other: int) -> bool:
        """Whether two texts have different names in the same place."""
        lacking = self._lacking_names(self._text(one), self._text(other))
        return bool(lacking) and bool(lacking & self._lacking_names(self._text(other), self._text(one)))

    def _lacking_names(self, this: _Text, other: _Text) -> set[int]:
        """Where the other lacks a name of this: 0 before, 1 in and 2 after the shared part."""
        shared = this.shared(other)
        begin, end = 0, 0
        if True in shared:
            begin, end = shared.index(True), len(shared) - shared[::-1].index(True) + SHINGLE - 1
        earlier: Counter[int] = Counter()
        found = set()
        for place, word, flag in this.flagged:
            if not flag & _NAME and not self._reads_as_name(word):
                continue
            earlier[word] += 1
            if other.times[word] >= earlier[word]:  # a name that occurs twice must occur twice in the other
                continue
            before, after = (1, 0) if flag & _UNCLEAR else (MARGIN, MARGIN)
            if place + before >= begin and place - after < end:
                found.add((place >= begin) + (place >= end))
        return found

    def _reads_as_name(self, word: int) -> bool:
        """Whether a word that begins sentences is a name: the texts have it no more often in lower case."""
        if word not in self._is_name:
            flags = self._codes[(self._codes >> np.uint32(2)) == word] & np.uint32(3)
            self._is_name[word] = bool((flags == 0).sum() <= (flags & _NAME > 0).sum())
        return self._is_name[word]

    def _text(self, at: int) -> _Text:
        return _text(self._fingerprints[at])

    def leaders(self, pairs: IntArray) -> IntArray:
        """``(m,)``: for each text the leader of its group, given these pairs."""
        left = [tuple(pair) for pair in pairs[self.alike(pairs)].tolist() if not self.conflict(*pair)]
        together = set(left)
        while True:
            leaders = list(range(len(self.sizes)))
            members: dict[int, list[int]] = {}
            for one, other in left:
                if leaders[one] == one and leaders[other] == other:
                    leaders[other] = one
                    members.setdefault(one, []).append(other)
            out: set[int] = set()
            for pair in _close_by(members.values()):
                if pair not in together:
                    if self.conflict(*pair):
                        out |= set(pair)
                    else:
                        together.add(pair)
            if not out:
                return np.array(leaders, dtype=np.int64)
            left = [(one, other) for one, other in left if not (other in out and leaders[other] == one)]


def _shingles(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """The hash of each three words in a row."""
    wide = words.astype(np.uint64)
    one, two, three = _MULTIPLIERS
    hashes: npt.NDArray[np.uint64] = wide[:-2] * one + wide[1:-1] * two + wide[2:] * three
    return hashes


def _close_by(groups: Iterable[list[int]]) -> Iterator[tuple[int, int]]:
    """The pairs within groups; in a large group, each member with the next ``_NEIGHBOURS``."""
    for group in groups:
        for at, one in enumerate(group):
            for other in group[at + 1 : at + 1 + _NEIGHBOURS]:
                yield one, other


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
    unit = unit_rows(as_matrix(vectors), np.float64)
    return groups_of_close(unit @ unit.T, texts, read=read)


def groups_of_close(
    cosines: FloatArray,
    texts: Sequence[str] | None = None,
    *,
    read: Callable[[Sequence[int]], Sequence[bytes]] | None = None,
) -> IntArray:
    """:func:`candidate_groups` of candidates whose cosines to one another, ``(n, n)``, are known."""
    pairs = np.stack(np.divmod(np.flatnonzero(cosines >= CLOSE), len(cosines)), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    given = [] if texts is None else list(texts)
    if read is None:
        if (
            isinstance(texts, str)
            or len(given) != len(cosines)
            or not all(isinstance(one, str) for one in given)
        ):
            raise InvalidInputError(
                f"texts must be {len(cosines)} strings, one per candidate: leave them out if you have none"
            )
        return near_duplicates(given, pairs=pairs)
    if not len(pairs):
        return np.arange(len(cosines))
    used = np.unique(pairs).tolist()
    fingerprints = [VERSION] * len(cosines)
    for at, stored in zip(used, read(used), strict=True):
        fingerprints[at] = stored
    return group_fingerprints(fingerprints, pairs=pairs)
