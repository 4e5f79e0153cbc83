"""Find near-duplicates among texts: copies that were edited, cut at another place, or put inside other text.

Every text becomes a sequence of words (case, punctuation, HTML tags, entities and Markdown links ignored) and
of *shingles*, windows of :data:`SHINGLE` words (Broder 1997). Two texts are *alike* if

- **containment**: at least :data:`CONTAINMENT` of the shingles of the smaller one occur in the other, and
- **resemblance**: at least :data:`RESEMBLANCE` of the shingles of both are shared, so that a sentence is no
  duplicate of the chapter that holds it.

One guard: texts that are alike *conflict*, and are no duplicates, if each has a number, date, version,
identifier or capitalised name that the other lacks in the same place. There are three places: between the
first and the last shared shingle, the few words before, and the few words after. A copy that ends earlier or
has a sentence more lacks something on one side only. A capitalised word at the beginning of a sentence is
a name unless the texts have it in lower case more often than as a name. No word list is used, so a changed
"not", a number in words, a name in lower case or two names that change places go unnoticed.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are compared by characters instead of words. In
scripts without capitals the guard sees numbers only. Texts shorter than a shingle, or longer than
:data:`LONGEST` words, are duplicates only if all words are equal.

Groups are made by leader clustering in the given order, not by transitive closure: the first text that is in
no group yet leads, and those of the rest that are near-duplicates *of it* join, except those that conflict
with another one that would join. So every member is a near-duplicate of the first,
and no two members conflict.

Libraries were considered: datasketch and rensa (MinHash) and text-dedup estimate resemblance only, semhash
compares embeddings; none finds a contained copy, and none keeps texts apart that differ in one number.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.types import IntArray

SHINGLE = 3
"""Words in a shingle."""

CONTAINMENT = 0.6
"""Near-duplicates share this part of the smaller one's shingles, or more."""

RESEMBLANCE = 0.3
"""Near-duplicates share this part of all of their shingles, or more."""

MARGIN = 8
"""Words before and after what is shared in which the guard looks for names."""

LONGEST = 2000
"""Longer texts, in words, are duplicates only of equal ones."""

_VERSION = 1
"""First four bytes of a fingerprint, little-endian; then four bytes a word, 30 bits of hash and two flags."""

_NAME, _AMBIGUOUS = 1, 2
"""Flags of a word: a name or number; a capital at the beginning of a sentence, where anything has one."""

_MARKS = "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u109f"
"""Vowel signs and accents that ``\\w`` leaves out, and that are part of a word."""
_JOINED = r"(?:\.|(?<=\d)[,:/-](?=\d))"
"""What may stand inside a word: a dot anywhere (jest.fn, 1.2), other signs between digits (2024-05-03)."""
_ASCII = re.compile(rf"\W*\w+(?:{_JOINED}\w+)*", re.ASCII)
_UNICODE = re.compile(rf"[^\w{_MARKS}]*[\w{_MARKS}]+(?:{_JOINED}[\w{_MARKS}]+)*")
_LETTER = re.compile(rf"[\w{_MARKS}]")
_UNSPACED = re.compile("([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])")
_TAG = re.compile(r"<[a-zA-Z/!][^<>]*>")
_LINK = re.compile(r"\]\([^()\s]*\)")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n\s*(?=[^\W\d_])")

_DECORATION = str.maketrans("", "", "()[]{}\"'`*_~\u201c\u201d\u2018\u2019\u00ab\u00bb \t\u00a0")
_INSIDE = frozenset(("", ",", "-", "/", "&", "+", "\n", ",\n"))
"""Between two words of one sentence stands one of these; blank lines, bullets and full stops end it."""

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_NEIGHBOURS = 128
"""Without ``pairs``: of the texts that have a shingle, each is compared with the first and so many others."""

_BLOCK = 10_000
"""Pairs whose names are compared at once."""

_MOST_CODES = 1 << 17
"""Words in the cache of codes."""


def near_duplicates(texts: Sequence[str], *, pairs: IntArray | None = None) -> IntArray:
    """Group texts that say the same in nearly the same words.

    Args:
        texts: The texts, the most important first: the first of a group represents it.
        pairs: ``(p, 2)`` positions; only these pairs are compared, and other texts need not be read. By
            default, all pairs that share a shingle.

    Returns:
        ``(n,)`` group numbers: for each text the position of the first text of its group. Texts without
        near-duplicates have their own.

    Raises:
        InvalidInputError: A text is no string, or ``pairs`` are no positions.

    Example:
        >>> near_duplicates(["The bridge opened in 1927.", "<b>The bridge</b> opened in 1927", "It is old."])
        array([0, 0, 2])
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise InvalidInputError("texts must be a sequence of strings, such as a list")
    used = range(len(texts)) if pairs is None else np.unique(_checked(pairs, len(texts))).tolist()
    known: dict[str, bytes] = {}
    fingerprints = [_NOTHING] * len(texts)
    for at in used:
        text = texts[at]
        if text not in known:
            known[text] = fingerprint(text)
        fingerprints[at] = known[text]
    return group_fingerprints(fingerprints, pairs=pairs)


def fingerprint(text: str) -> bytes:
    """Return what :func:`group_fingerprints` needs of a text: its words as numbers, four bytes each."""
    plain = _without_markup(text)
    pattern = _ASCII if plain.isascii() else _UNICODE
    codes = np.array([_CODES[word] for word in pattern.findall("." + plain)], dtype="<u4")
    codes = codes[codes > 0]
    if 0 < len(codes) < SHINGLE:
        codes = np.append(codes, np.zeros(SHINGLE - len(codes), dtype="<u4"))
    if len(codes) > LONGEST:
        return _NOTHING + blake2b((codes >> 2).tobytes(), digest_size=4 * SHINGLE).digest()
    return _NOTHING + codes.tobytes()


_NOTHING = _VERSION.to_bytes(4, "little")
"""The fingerprint of a text without words."""


def group_fingerprints(fingerprints: Sequence[bytes], *, pairs: IntArray | None = None) -> IntArray:
    """Group texts by their fingerprints, as :func:`near_duplicates` does by the texts themselves.

    Raises:
        InvalidInputError: Bytes that no :func:`fingerprint` of this version made.
    """
    known: dict[bytes, int] = {}
    number = np.array([known.setdefault(one, len(known)) for one in fingerprints], dtype=np.int64)
    pool = _Pool(list(known))
    if pairs is None:
        different = pool.sharing()
    else:
        different = _unique(number[_checked(pairs, len(fingerprints))], len(known))
    alike = different[pool.alike(different)]
    leaders = pool.leaders(alike[~pool.conflicting(alike)])
    places = np.arange(len(number))
    first = np.full(len(known), len(number))
    np.minimum.at(first, number, places)
    return np.where(pool.sizes[number] > 0, first[leaders[number]], places)


class _Pool:
    """Different texts: their words in one array, and where in it each starts.

    ``shingles[i]`` begins at word ``i``; of each text, the first ``sizes`` from its start on are in use.
    """

    def __init__(self, fingerprints: Sequence[bytes]) -> None:
        for one in fingerprints:
            if len(one) % 4 or one[:4] != _NOTHING:
                raise InvalidInputError(
                    f"{one[:8]!r} begins no fingerprint of format {_VERSION}: make one with fingerprint()"
                )
        codes = np.frombuffer(b"".join(fingerprints), dtype="<u4")
        lengths = np.array([len(one) // 4 for one in fingerprints], dtype=np.int64)
        self.starts = np.cumsum(lengths) - lengths + 1
        self.ends = self.starts + lengths - 1
        self.sizes = np.maximum(lengths - SHINGLE, 0)
        self.words: npt.NDArray[np.uint32] = codes >> np.uint32(2)
        self.flags: npt.NDArray[np.uint32] = codes & np.uint32(3)
        words = self.words.astype(np.uint64)
        self.shingles = words * _MULTIPLIERS[0]
        for step in range(1, SHINGLE):
            self.shingles[:-step] += words[step:] * _MULTIPLIERS[step]
        at, text = _ranges(self.starts, self.sizes)
        self._bits = np.uint64((32 * len(at)).bit_length() + 1)
        self._filter = np.zeros(1 << int(self._bits), dtype=bool)
        for slots in self._slots(text, at):
            self._filter[slots] = True

    def _slots(self, text: IntArray, at: IntArray) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """Two slots of a Bloom filter for a text that has the shingle at a place."""
        mixed = (self.shingles[at] ^ (text.astype(np.uint64) * _MULTIPLIERS[1])) * _MIX
        return mixed >> (np.uint64(64) - self._bits), (mixed >> np.uint64(8)) & (
            (np.uint64(1) << self._bits) - np.uint64(1)
        )

    def sharing(self) -> IntArray:
        """Return the pairs of texts that have a shingle in common."""
        at, text = _ranges(self.starts, self.sizes)
        order = np.lexsort((text, self.shingles[at]))
        shingle, text = self.shingles[at][order], text[order]
        first = np.searchsorted(shingle, shingle)
        found = [np.stack([text[first], text], axis=1)]
        for step in range(1, min(_NEIGHBOURS, len(shingle))):
            equal = np.flatnonzero(shingle[step:] == shingle[:-step])
            if not len(equal):
                break
            found.append(np.stack([text[equal], text[equal + step]], axis=1))
        return _unique(np.concatenate(found), len(self.starts))

    def alike(self, pairs: IntArray) -> npt.NDArray[np.bool_]:
        """Say which pairs reach both thresholds."""
        first_is_smaller = self.sizes[pairs[:, 0]] <= self.sizes[pairs[:, 1]]
        smaller, larger = np.where(first_is_smaller, pairs.T, pairs.T[::-1])
        few, many = self.sizes[smaller], self.sizes[larger]
        possible = np.flatnonzero((few > 0) & (few >= RESEMBLANCE * many))
        shared = np.zeros(len(pairs), dtype=np.int64)
        shared[possible] = self._shared(smaller[possible], larger[possible])[0]
        found: npt.NDArray[np.bool_] = shared >= np.maximum(
            np.maximum(CONTAINMENT * few, 1), RESEMBLANCE * (few + many - shared)
        )
        return found

    def _shared(self, these: IntArray, others: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Count the shingles of these texts that the others have; the words from the first to the last."""
        at, pair = _ranges(self.starts[these], self.sizes[these])
        one, two = self._slots(others[pair], at)
        hit = np.flatnonzero(self._filter[one])
        hit = hit[self._filter[two[hit]]]
        count = np.bincount(pair[hit], minlength=len(these))
        begin, end = self.starts[these].copy(), self.starts[these].copy()
        some = np.flatnonzero(count)
        last = np.cumsum(count)[some]
        begin[some], end[some] = at[hit[last - count[some]]], at[hit[last - 1]] + SHINGLE
        return count, begin, end

    def conflicting(self, pairs: IntArray) -> npt.NDArray[np.bool_]:
        """Say which pairs have different names in the same place."""
        found = np.zeros(len(pairs), dtype=bool)
        for start in range(0, len(pairs), _BLOCK):
            one, other = pairs[start : start + _BLOCK].T
            both = self._lacking(one, other) & self._lacking(other, one)
            found[start : start + _BLOCK] = both.any(axis=1)
        return found

    def _lacking(self, these: IntArray, others: IntArray) -> npt.NDArray[np.bool_]:
        """``(p, 3)``: names of these texts that the others lack: before, in and after what is shared."""
        _, begin, end = self._shared(these, others)
        names, first = self._names
        last = np.searchsorted(names, self.ends[these])
        at, pair = _ranges(first[these], last - first[these])
        at = names[at]
        near = np.flatnonzero((at >= begin[pair] - MARGIN) & (at < end[pair] + MARGIN))
        at, pair = at[near], pair[near]
        wanted = _keys(others[pair], self.words[at])
        known = self._vocabulary
        lacks = known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] != wanted
        at, pair = at[lacks], pair[lacks]
        found = np.zeros((len(these), 3), dtype=bool)
        found[pair, (at >= begin[pair]).astype(np.intp) + (at >= end[pair])] = True
        return found

    @cached_property
    def _vocabulary(self) -> npt.NDArray[np.uint64]:
        """Which text has which words, in rising order."""
        return np.sort(_keys(np.repeat(np.arange(len(self.starts)), self.ends - self.starts + 1), self.words))

    @cached_property
    def _names(self) -> tuple[IntArray, IntArray]:
        """The places of names and numbers, and for each text the number of its first one."""
        name = (self.flags & _NAME) > 0
        unclear = np.flatnonzero(self.flags & _AMBIGUOUS)
        words = self.words[unclear]
        in_lower_case, as_name = (
            np.searchsorted(some, words, "right") - np.searchsorted(some, words)
            for some in (
                np.sort(self.words[(self.flags & (_NAME | _AMBIGUOUS)) == 0]),
                np.sort(self.words[name]),
            )
        )
        name[unclear] = in_lower_case <= as_name
        places = np.flatnonzero(name)
        return places, np.searchsorted(places, self.starts)

    def leaders(self, pairs: IntArray) -> IntArray:
        """``(m,)`` for each text the one that leads its group, by pairs of near-duplicates."""
        known = set(map(tuple, pairs.tolist()))
        left = sorted(known)
        while True:
            leaders = list(range(len(self.starts)))
            for one, other in left:
                if leaders[one] == one and leaders[other] == other:
                    leaders[other] = one
            members: dict[int, list[int]] = {}
            for at, leader in enumerate(leaders):
                if leader != at:
                    members.setdefault(leader, []).append(at)
            unknown = [
                pair for group in members.values() for pair in combinations(group, 2) if pair not in known
            ]
            apart = self.conflicting(np.array(unknown, dtype=np.int64).reshape(-1, 2))
            out = {at for pair, conflict in zip(unknown, apart, strict=True) if conflict for at in pair}
            if not out:
                return np.array(leaders, dtype=np.int64)
            left = [pair for pair in left if pair[1] not in out or leaders[pair[1]] != pair[0]]


def _keys(text: IntArray, word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    return (text.astype(np.uint64) << np.uint64(30)) | word


def _ranges(starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """All places of several ranges, one range after the other, and the number of the range of each."""
    owner = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(len(owner)) + (starts - np.cumsum(lengths) + lengths)[owner], owner


def _unique(pairs: IntArray, count: int) -> IntArray:
    """Pairs of different texts, each once, the lower number first, in rising order."""
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    return np.stack(np.divmod(np.unique((low * count + high)[low < high]), max(count, 1)), axis=1)


def _checked(pairs: IntArray, count: int) -> IntArray:
    array = np.asarray(pairs)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise InvalidInputError(f"pairs must be whole numbers (p, 2), got {array.dtype} {array.shape}")
    if array.min() < 0 or array.max() >= count:
        raise InvalidInputError(
            f"pairs must be positions from 0 to {count - 1}, got {array.min()} to {array.max()}"
        )
    return array.astype(np.int64, copy=False)


def _without_markup(text: str) -> str:
    if "&" in text:
        text = html.unescape(text)
    if "</" in text or "/>" in text:
        text = _TAG.sub(" ", text)
    if "](" in text:
        text = _LINK.sub("] ", text)
    if "-\n" in text:
        text = _HYPHEN.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u00ad", "")
        text = _UNSPACED.sub(r" \1 ", text)
    return text


class _Codes(dict[str, int]):
    """Words with the signs before them to numbers: hash and flags; 0 where there is no word. A cache."""

    def __missing__(self, found: str) -> int:
        start = at.start() if (at := _LETTER.search(found)) else len(found)
        word = found[start:].strip("_.")
        begins = found[:start].translate(_DECORATION) not in _INSIDE
        certain = word[1:] != word[1:].lower() or "_" in word or "." in word or any(map(str.isdigit, word))
        capital = word[:1].isupper()
        flags = _NAME if certain or (capital and not begins) else _AMBIGUOUS if capital else 0
        code = crc32(word.lower().encode("utf-8", "surrogatepass")) & 0xFFFFFFFC | flags if word else 0
        if len(self) >= _MOST_CODES:
            self.clear()
        self[found] = code
        return code


_CODES = _Codes()


def candidate_groups(vectors, texts):
    """TEMP"""
    import numpy as np

    v = np.asarray(vectors, dtype=np.float32)
    v = v / np.linalg.norm(v, axis=1, keepdims=True)
    i, j = np.nonzero(np.triu(v @ v.T >= 0.8, 1))
    texts = list(texts)
    return near_duplicates(texts, pairs=np.stack([i, j], axis=1))
