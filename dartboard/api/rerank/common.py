"""What all rerank doors do: embed what was sent with the service's own model, let Dartboard order it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from dartboard.api.errors import TooLarge
from dartboard.api.limits import at_most, check_query
from dartboard.api.rerank.lengths import beginning
from dartboard.api.rerank.scores import decreasing, novelty
from dartboard.api.schemas.common import Answer, Model, Sigma, Words
from dartboard.api.schemas.retrieve import MethodName
from dartboard.api.service import Service
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Limits, Selection, from_embeddings
from dartboard.selection.methods import method_of
from dartboard.types import FloatArray

MOST_TEXTS = 500
"""Texts are encoded while the client waits, so fewer than ``/select`` takes as vectors. Measured: 60 ms of
processor time for 120 words with the default model."""


class RerankOptions(Model):
    """What every door takes: the question, and how Dartboard selects."""

    query: Words = Field(description="The question.", examples=["Why do consumers fall behind?"])
    method: MethodName = Field(
        "dartboard",
        description="Who orders the texts; the others are there to compare.",
        examples=["dartboard"],
    )
    sigma: Sigma = Field(
        "auto",
        description="Spread of a question around what it means; `auto` takes it from the texts.",
        examples=["auto"],
    )


class Explained(Answer):
    """Why a text stands where it does."""

    gain: float = Field(
        description="What it adds to those before it: a share of what all texts cover.", examples=[0.62]
    )
    coverage: float = Field(description="What is covered up to here.", examples=[0.62])
    similarity: float = Field(description="Cosine to the question.", examples=[0.71])
    stands_for: list[int] = Field(
        description="The texts that it covers best, itself among them.", examples=[[0, 2]]
    )


class Made(Answer):
    """What made the order."""

    model: str = Field(
        description="The model that was used; a request cannot choose it.", examples=["all-MiniLM-L6-v2"]
    )
    method: str = Field(description="Who picked.", examples=["dartboard"])
    sigma: float | None = Field(description="σ as it was used; null where there was none.", examples=[0.09])
    truncated: int = Field(
        description="Texts that are longer than the model reads; the rest of them did not count.",
        examples=[0],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One text in its place."""

    index: int
    score: float
    explained: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The texts that were asked for, best first, and what made the order."""

    ranks: list[Rank]
    tokens: int
    made: dict[str, Any]


def rerank(
    service: Service,
    options: RerankOptions,
    texts: Sequence[str],
    *,
    field: str,
    top_n: int | None = None,
    most_tokens: int | None = None,
    refuse_long: bool = False,
) -> Ranking:
    """Order texts; those without a word come last. ``field`` is what a request calls the texts."""
    at_most(field, len(texts), min(MOST_TEXTS, service.settings.vectors), " texts")
    model = service.engines.model
    check_query(model, options.query, service.settings)
    where = [at for at, text in enumerate(texts) if text.strip()]
    worded, tokens, truncated = _readable(model, [texts[at] for at in where], most_tokens)
    if refuse_long and truncated:
        raise TooLarge(
            f"a text has more tokens than the model reads: send shorter {field}, or truncate: true"
        )
    wanted = len(texts) if top_n is None else min(top_n, len(texts))
    asked = model.encode_query(options.query)
    tokens += count_tokens(model, [options.query])[0]
    made: dict[str, Any] = {
        "model": model.name,
        "method": options.method,
        "sigma": None,
        "truncated": truncated,
    }
    places: list[_Place] = []
    if where:
        vectors = _encoded(model, worded)
        groups = candidate_groups(vectors, worded)
        pool = from_embeddings(asked, vectors, sigma=options.sigma, model_sigma=model.sigma, groups=groups)
        picked = method_of(options.method).select(pool, Limits(k=min(wanted, len(where))))
        made["sigma"] = picked.sigma.value
        places = _picks(picked, vectors, where)
    places += _rest(places, len(texts))
    return Ranking(ranks=_ranks(places[:wanted]), tokens=tokens, made=made)


@dataclass(frozen=True, slots=True)
class _Place:
    """A text in its place, before its score is made to decrease."""

    index: int
    raw: float
    explained: dict[str, Any]


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


def _encoded(model: EmbeddingModel, texts: list[str]) -> FloatArray:
    """One row a text; equal texts are encoded once, and time is looked at between batches."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = model.encode_documents(list(rows), progress=lambda _: check())
    return np.asarray(vectors[[rows[text] for text in texts]])


def _picks(picked: Selection, vectors: FloatArray, where: list[int]) -> list[_Place]:
    similarity = picked.similarity
    raw = np.maximum(similarity, 0.0)
    if picked.method == "dartboard":
        raw = raw * novelty(vectors[picked.indices], picked.sigma.value)
    return [
        _Place(
            where[at],
            float(raw[rank]),
            {
                "gain": float(picked.gains[rank]),
                "coverage": float(picked.coverage[rank]),
                "similarity": float(similarity[rank]),
                "stands_for": [where[one] for one in stands_for.tolist()],
            },
        )
        for rank, (at, stands_for) in enumerate(zip(picked.indices.tolist(), picked.stands_for, strict=True))
    ]


def _rest(places: list[_Place], count: int) -> list[_Place]:
    """What was not picked (texts without a word, near-duplicates that a filter leaves out), in its order."""
    there = {place.index for place in places}
    covered = places[-1].explained["coverage"] if places else 0.0
    nothing: dict[str, Any] = {"gain": 0.0, "coverage": covered, "similarity": 0.0, "stands_for": []}
    return [_Place(index, 0.0, nothing) for index in range(count) if index not in there]


def _ranks(places: list[_Place]) -> list[Rank]:
    scores = decreasing(np.array([place.raw for place in places], dtype=np.float64))
    return [
        Rank(index=place.index, score=score, explained=place.explained)
        for place, score in zip(places, scores, strict=True)
    ]
