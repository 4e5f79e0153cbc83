"""Texts in Dartboard's order, with scores that say how good a pick is and keep that order.

Rerank clients sort by score and cut by score. Dartboard's order is not one of similarity alone, so a pick's
score is its cosine to the question times what of it no earlier pick covers::

    raw_i = max(0, cos(q, i)) · (1 - max_{j before i} exp(-d_ij² / 2σ²))

The first pick scores its cosine, a copy of an earlier one 0. Where that would go up along the order,
neighbours share their mean (pool adjacent violators: the decreasing sequence nearest by least squares). A
thousandth of the score counts positions, so that no two are equal: strictly decreasing, in (0, 1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dartboard.api.errors import TooLarge
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Limits, Selection, from_embeddings
from dartboard.selection.kernel import Auto
from dartboard.selection.select import method_of
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

_LETTERS_A_TOKEN = 64
"""A text is looked at no further than this: the words of all of it would take ten times its size."""
_POSITIONS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The texts that were asked for, best first: index, score and explanation of each."""

    ranks: list[tuple[int, float, dict[str, Any]]]
    tokens: int
    made: dict[str, Any]
    """What made the order, as responses say it."""


def rank_texts(
    model: EmbeddingModel,
    query: str,
    texts: Sequence[str],
    *,
    method: str,
    sigma: float | Auto,
    top_n: int | None = None,
    most_tokens: int | None = None,
    refuse_long: bool = False,
) -> Ranking:
    """Order texts; those without a word come last.

    Args:
        model: encodes the query and the texts.
        query: the question.
        texts: what to order.
        method, sigma: as in ``SearchOptions``.
        top_n: how many are wanted; all where it is None.
        most_tokens: so many tokens of a text are read.
        refuse_long: whether a text that the model would cut is refused.

    Raises:
        TooLarge: a text is longer than the model reads, and ``refuse_long``.
    """
    where = [at for at, text in enumerate(texts) if text.strip()]
    worded, tokens, truncated = _readable(model, [texts[at] for at in where], most_tokens)
    if refuse_long and truncated:
        raise TooLarge("a text has more tokens than the model reads: send shorter texts, or truncate: true")
    wanted = len(texts) if top_n is None else min(top_n, len(texts))
    tokens += count_tokens(model, [query])[0]
    picks, used = [], None
    if where:
        vectors = _encoded(model, worded)
        groups = candidate_groups(vectors, worded)
        pool = from_embeddings(
            model.encode_query(query), vectors, sigma=sigma, model_sigma=model.sigma, groups=groups
        )
        selection = method_of(method).select(pool, Limits(k=min(wanted, len(where))))
        picks, used = _picks(selection, vectors, where), selection.sigma.value
    # What was not picked (texts without a word, near-duplicates that a filter leaves out) follows in order.
    picked = {index for index, _, _ in picks}
    nothing = {"gain": 0.0, "coverage": picks[-1][2]["coverage"] if picks else 0.0, "similarity": 0.0}
    picks += [(at, 0.0, {**nothing, "stands_for": []}) for at in range(len(texts)) if at not in picked]
    picks = picks[:wanted]
    scores = decreasing(np.array([raw for _, raw, _ in picks], dtype=np.float64))
    return Ranking(
        ranks=[(index, score, why) for (index, _, why), score in zip(picks, scores, strict=True)],
        tokens=tokens,
        made={"model": model.name, "method": method, "sigma": used, "truncated": truncated},
    )


def _readable(model: EmbeddingModel, texts: list[str], most_tokens: int | None) -> tuple[list[str], int, int]:
    """The texts, cut where the caller wants it; tokens in all, and how many texts the model cuts."""
    count = partial(count_tokens, model)
    counts = count(texts)
    if most_tokens is not None:
        texts = [
            beginning(text, most_tokens, count) if length > most_tokens else text
            for text, length in zip(texts, counts, strict=True)
        ]
        counts = [min(length, most_tokens) for length in counts]
    reads = getattr(model, "max_tokens", None)
    return texts, sum(counts), 0 if reads is None else sum(length > reads for length in counts)


def beginning(text: str, most: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """As many words of a text as have at most ``most`` tokens; the first word in any case."""
    words = text[: _LETTERS_A_TOKEN * most].split()
    low, high = 1, len(words)
    while low < high:
        check()
        middle = (low + high + 1) // 2
        if count([" ".join(words[:middle])])[0] <= most:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])


def _encoded(model: EmbeddingModel, texts: list[str]) -> FloatArray:
    """One row a text; equal texts are encoded once, and time is looked at between batches."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = model.encode_documents(list(rows), progress=lambda _: check())
    return np.asarray(vectors[[rows[text] for text in texts]])


def _picks(
    selection: Selection, vectors: FloatArray, where: list[int]
) -> list[tuple[int, float, dict[str, Any]]]:
    """Index, score before it is made to decrease, and explanation of each pick."""
    raw = np.maximum(selection.similarity, 0.0)
    if selection.method == "dartboard":
        raw = raw * novelty(vectors[selection.indices], selection.sigma.value)
    return [
        (
            where[at],
            float(raw[rank]),
            {
                "gain": float(selection.gains[rank]),
                "coverage": float(selection.coverage[rank]),
                "similarity": float(selection.similarity[rank]),
                "stands_for": [where[one] for one in selection.stands_for[rank].tolist()],
            },
        )
        for rank, at in enumerate(selection.indices.tolist())
    ]


def novelty(vectors: FloatArray, sigma: float) -> FloatArray:
    """What of each row of ``(k, d)``, in picking order, no earlier row covers: 1 for the first."""
    if not len(vectors):
        return np.empty(0)
    rows = unit_rows(vectors, np.float32)
    distances = (1.0 - np.clip(rows @ rows.T, -1.0, 1.0)).astype(np.float64) / 2.0
    covered = np.tril(np.exp(-np.square(distances / sigma) / 2.0), -1)
    new: FloatArray = 1.0 - covered.max(axis=1)
    return new


def decreasing(raw: FloatArray) -> list[float]:
    """Strictly decreasing numbers in (0, 1), as near to ``raw`` as that goes."""
    clipped = np.clip(raw, 0.0, 1.0)
    levels: list[tuple[float, int]] = []
    for value in clipped.tolist():
        mean, count = float(value), 1
        while levels and levels[-1][0] < mean:
            before, many = levels.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        levels.append((mean, count))
    flat = np.repeat([mean for mean, _ in levels], [count for _, count in levels])
    places = (len(flat) - np.arange(len(flat)) - 0.5) / max(1, len(flat))
    return [float(score) for score in (1.0 - _POSITIONS) * flat + _POSITIONS * places]
