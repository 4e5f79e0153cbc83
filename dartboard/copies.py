"""Which of several near-duplicates to show, and how the others differ from it.

By default the most relevant copy represents its group. ``prefer`` names a metadata field instead, such as
``version`` or ``modified``: the copy with the largest value does. Copies that differ in a number, a date or a
name are kept apart (:mod:`dartboard.near_duplicates`); the result says in what they differ.
"""

import re
from collections.abc import Sequence
from datetime import date
from difflib import SequenceMatcher
from numbers import Real
from typing import Any

import numpy as np

from dartboard.near_duplicates import CLOSE, are_alike
from dartboard.retrievers.candidates import Candidates
from dartboard.types import FloatArray, IntArray

MOST_DIFFERENCES = 3
"""So many are listed for a copy."""

_PARTS = re.compile(r"\d+|(?!\bv\d)[^\W\d_]+")
_WORDS = re.compile(r"\w+(?:[.,:/_-]\w+)*")
_TEXT, _END, _NUMBER = 0, 1, 2


def preference(values: Sequence[Any]) -> FloatArray:
    """``(n,)`` ranks of metadata values: the larger, the more preferred; a missing value comes last.

    Numbers are compared as numbers. Text is compared part by part, as versions and dates: 29.10 comes after
    29.9, 2025-01-02 after 2024-12-31, and 2.0 after 2.0-beta. So store decimals as numbers, not as text.

    Example:
        >>> preference(["29.9", "29.10", None, "29.10-beta"])
        array([1., 3., 0., 2.])
    """
    keys = [_key(value) for value in values]
    rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([float(rank[key]) for key in keys])


def _key(value: Any) -> tuple[Any, ...]:
    if value is None or value != value:  # NaN is a missing value, too
        return (0,)
    if isinstance(value, Real):
        return (1, (_NUMBER, value, ""))
    text = value.isoformat() if isinstance(value, date) else str(value)
    parts = [
        (_NUMBER, float(part), "") if part.isdecimal() else (_TEXT, 0.0, part.lower())
        for part in _PARTS.findall(text)
    ]
    return (1, *parts, (_END, 0.0, ""))


def differences(one: str, other: str) -> list[tuple[str, str]]:
    """What stands in one text where the other has something else: numbers and dates, else any words.

    Example:
        >>> differences("The fee is 5 € in 2024.", "The fee is 5 € in 2025.")
        [('2024', '2025')]
    """
    left, right = _WORDS.findall(one), _WORDS.findall(other)
    changed = [
        (left[a:b], right[c:d])
        for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    # A number may be taken out in one place and another put in elsewhere: they are paired in order.
    ours, theirs = (
        [word for pair in changed for word in pair[side] if any(map(str.isdigit, word))] for side in (0, 1)
    )
    numbers = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
    words = [(" ".join(old), " ".join(new)) for old, new in changed if old and new]
    return list(dict.fromkeys(numbers or words))[:MOST_DIFFERENCES]


def copies_of(
    picks: Sequence[int],
    candidates: Candidates,
    groups: IntArray | None,
    field: str,
    cosines: FloatArray,
) -> list[list[dict[str, Any]]]:
    """For each pick, the other copies among the candidates: ``id``, the field, and in what they ``differ``.

    Args:
        picks: positions of candidates.
        candidates: with vectors; texts of close ones are read.
        groups: ``(n,)`` near-duplicate groups.
        field: the metadata field that is reported.
        cosines: ``(picks, n)`` of each pick to all candidates.
    """
    if groups is None or not len(picks):
        return [[] for _ in picks]
    found: list[list[dict[str, Any]]] = []
    for pick, near in zip(picks, cosines >= CLOSE, strict=True):
        others = [
            at for at in range(len(candidates)) if at != pick and (near[at] or groups[at] == groups[pick])
        ]
        own, *texts = candidates.chunks([pick, *others])
        copies = []
        for at, chunk in zip(others, texts, strict=True):
            same = groups[at] == groups[pick]
            if not same and not are_alike(own.text, chunk.text):
                continue
            copy = {field: chunk.metadata.get(field)} | {"id": chunk.id}
            if not same:
                copy["differs"] = [list(pair) for pair in differences(own.text, chunk.text)]
            copies.append(copy)
        found.append(copies)
    return found
