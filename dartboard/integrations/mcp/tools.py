"""The three tools: arguments in, data and the same in words out. They read, and raise what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dartboard.config import RerankerType
from dartboard.display.plain_text import heading_of
from dartboard.display.records import pick_records
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.inspection import explore
from dartboard.integrations.mcp import limits
from dartboard.integrations.mcp.answers import (
    ExplainAnswer,
    FoundRelevance,
    Passage,
    Pick,
    SearchAnswer,
    SelectAnswer,
)
from dartboard.integrations.mcp.arguments import ExplainArguments, SearchArguments, SelectArguments
from dartboard.integrations.mcp.explanation import explained, left_out, source_of
from dartboard.integrations.mcp.index import OpenIndex
from dartboard.near_duplicates import candidate_groups
from dartboard.plugins import names
from dartboard.search_options import DEFAULT_K, TRIAGE
from dartboard.selection import Limits, from_embeddings
from dartboard.selection.kernels import Auto
from dartboard.selection.methods import method_of
from dartboard.stores import parse_filter
from dartboard.types import Chunk, FloatArray, check_matrix, check_vector

OWN_METHODS = ("dartboard", "top_k", "mmr", "near_duplicate_filter")


def methods() -> tuple[str, ...]:
    """Who may pick: our own, and the selectors of plug-ins."""
    return (*OWN_METHODS, *(name for name in names("selector") if name not in OWN_METHODS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What holds where a call says nothing."""

    k: int = DEFAULT_K
    method: str = "dartboard"
    sigma: float | Auto = "auto"
    triage_k: int = TRIAGE
    reranker: RerankerType = "cosine"

    def count(self, k: int | None, token_budget: int | None) -> int | None:
        """How many, unless a budget alone decides."""
        return min(self.k, limits.K) if k is None and token_budget is None else k

    def who(self, method: str | None) -> str:
        """Who picks."""
        wanted = method or self.method
        if wanted not in methods():
            raise ConfigError(f"unknown method {wanted!r}: use one of {', '.join(methods())}")
        return wanted


def search(index: OpenIndex, defaults: Defaults, asked: SearchArguments) -> SearchAnswer:
    """The passages of the index that together say most about a question."""
    engine = index.engine()
    _check_query(engine.model, asked.query)
    k = defaults.count(asked.k, asked.token_budget)
    result = engine.search(
        asked.query,
        k=k,
        token_budget=asked.token_budget,
        method=defaults.who(asked.method),
        where=asked.filter or None,
        triage_k=max(defaults.triage_k, k or 1),
        sigma=defaults.sigma,
        reranker=defaults.reranker,
        exclude=asked.exclude,
        max_per_source=asked.max_per_source,
    )
    facts = result.metadata
    return SearchAnswer(
        query=asked.query,
        collection=engine.name,
        retriever=str(facts["retriever"]),
        method=str(facts.get("method", defaults.who(asked.method))),
        candidates=int(facts["candidates"]),
        relevance=FoundRelevance(**facts["relevance"]),
        coverage=float(facts["coverage"][-1]) if result.chunks else 0.0,
        passages=[
            _passage(chunk, record) for chunk, record in zip(result.chunks, pick_records(result), strict=True)
        ],
    )


def select(index: OpenIndex, defaults: Defaults, asked: SelectArguments) -> SelectAnswer:
    """The candidates of the caller that together say most; nothing of them is kept."""
    who = method_of(defaults.who(asked.method))
    reads = asked.query is not None or asked.vectors is None or asked.token_budget is not None
    model = index.model() if reads else None
    vectors = _candidates(model, asked)
    query = _asked(model, asked, vectors.shape[1])
    selection = who.select(
        from_embeddings(
            query,
            vectors,
            sigma=defaults.sigma,
            model_sigma=model.sigma if model is not None else None,
            groups=None if asked.texts is None else candidate_groups(vectors, asked.texts),
        ),
        Limits(
            k=defaults.count(asked.k, asked.token_budget),
            token_budget=asked.token_budget,
            costs=None if asked.token_budget is None else count_tokens(model, asked.texts or ()),
        ),
    )
    picks = [
        Pick(
            rank=place + 1,
            position=int(selection.indices[place]),
            gain=float(selection.gains[place]),
            coverage=float(selection.coverage[place]),
            similarity=float(selection.similarity[place]),
            stands_for=[int(one) for one in stands],
        )
        for place, stands in enumerate(selection.stands_for)
    ]
    return SelectAnswer(
        method=selection.method,
        candidates=len(vectors),
        coverage=picks[-1].coverage if picks else 0.0,
        sigma=selection.sigma.value,
        picks=picks,
    )


def explain(index: OpenIndex, defaults: Defaults, asked: ExplainArguments) -> ExplainAnswer:
    """Why a passage is among the picks of a search, or is not."""
    engine = index.engine()
    _check_query(engine.model, asked.query)
    k = defaults.count(asked.k, asked.token_budget)
    records = engine.collection.get([asked.id])
    if not records:
        raise InvalidInputError(f"no passage {asked.id!r} in the index: take an id from a search")
    found = explore(
        engine,
        asked.query,
        k=k,
        token_budget=asked.token_budget,
        sigma=defaults.sigma,
        triage_k=max(defaults.triage_k, k or 1),
        where=asked.filter or None,
        reranker=defaults.reranker,
        layout=False,
        sweep=False,
    )
    place = next((at for at, each in enumerate(found.candidates) if each.id == asked.id), None)
    if place is not None:
        return explained(found, place)
    condition = parse_filter(asked.filter) if asked.filter else None
    return left_out(found, records[0].chunk, engine, condition)


def _passage(chunk: Chunk, record: Mapping[str, Any]) -> Passage:
    described = chunk.metadata
    where = next(
        (f"{name} {described[key]}" for key, name in _PLACES.items() if type(described.get(key)) is int), None
    )
    return Passage(
        rank=record["rank"],
        id=chunk.id,
        source=source_of(chunk),
        place=where,
        heading=heading_of(described) or None,
        text=chunk.text[: limits.SHOWN_CHARACTERS],
        cut=len(chunk.text) > limits.SHOWN_CHARACTERS,
        gain=record["gain"],
        coverage=record["coverage"],
        similarity=record["similarity"],
        stands_for=[str(one) for one in record["stands_for"][: limits.SHOWN_IDS]],
        stands_for_count=len(record["stands_for"]),
        found_by={name: share["rank"] for name, share in record["shares"].items()},
    )


_PLACES = {"page": "page", "start_line": "line"}


def _check_query(model: EmbeddingModel, query: str) -> None:
    if count_tokens(model, [query])[0] > limits.QUERY_TOKENS:
        raise InvalidInputError(f"query is limited to {limits.QUERY_TOKENS} tokens: shorten it")


def _candidates(model: EmbeddingModel | None, asked: SelectArguments) -> FloatArray:
    if asked.vectors is None and model is not None:
        return model.encode_documents(asked.texts or [])
    return check_matrix(np.array(asked.vectors, dtype=np.float64), name="vectors")


def _asked(model: EmbeddingModel | None, asked: SelectArguments, dim: int) -> FloatArray:
    if asked.query_vector is not None:
        return check_vector(asked.query_vector, name="query_vector", dim=dim)
    made = 0 if model is None else model.embedding_dim
    if model is None or made != dim:
        raise InvalidInputError(
            f"vectors have {dim} dimensions where the index's model makes {made}: "
            "give a query_vector of the same model as the vectors"
        )
    _check_query(model, asked.query or "")
    return model.encode_query(asked.query or "")
