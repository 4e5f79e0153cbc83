"""The four tools: arguments in, data and the same in words out. They read, and raise what is wrong."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.explain.exploration import explore
from dartboard.explain.records import pick_records
from dartboard.integrations.mcp import limits
from dartboard.integrations.mcp.answers import (
    ContextAnswer,
    Copy,
    ExplainAnswer,
    FoundRelevance,
    NumberedPassage,
    Passage,
    Pick,
    QuestionCoverage,
    SearchAnswer,
    SelectAnswer,
)
from dartboard.integrations.mcp.arguments import (
    ContextArguments,
    ExplainArguments,
    QuestionArguments,
    SearchArguments,
    SelectArguments,
)
from dartboard.integrations.mcp.explanation import explained, left_out, source_of
from dartboard.integrations.mcp.index import OpenIndex
from dartboard.near_duplicates import candidate_groups
from dartboard.plain_text import heading_of, shortened
from dartboard.plugins import names
from dartboard.search_options import DEFAULT_K, SearchOptions, as_filter
from dartboard.selection import Limits, from_embeddings
from dartboard.selection.methods import method_of
from dartboard.types import Chunk, FloatArray, RetrievalResult, check_matrix, check_vector

OWN_METHODS = ("dartboard", "top_k", "mmr", "near_duplicate_filter")


def methods() -> tuple[str, ...]:
    """Who may pick: our own, and the selectors of plug-ins."""
    return (*OWN_METHODS, *(name for name in names("selector") if name not in OWN_METHODS))


def check_method(name: str) -> str:
    """The name, if it is one of :func:`methods`."""
    if name not in methods():
        raise ConfigError(f"unknown method {name!r}: use one of {', '.join(methods())}")
    return name


def options_of(defaults: SearchOptions, asked: QuestionArguments | ExplainArguments) -> SearchOptions:
    """What a call asks for: arguments that are called like options change the defaults."""
    known = {field.name for field in fields(SearchOptions)}
    changes = {name: value for name, value in asked if name in known and value is not None}
    if "method" in changes:
        check_method(changes["method"])
    changes |= {"k": (k := count(defaults, asked)), "triage_k": max(defaults.triage_k, k or 1)}
    return replace(defaults, **changes, where=asked.filter or None)


def count(
    defaults: SearchOptions, asked: QuestionArguments | SelectArguments | ExplainArguments
) -> int | None:
    """How many to pick, unless a budget alone decides."""
    if asked.k is None and asked.token_budget is None:
        return min(defaults.k or DEFAULT_K, limits.K)
    return asked.k


def search(index: OpenIndex, defaults: SearchOptions, asked: SearchArguments) -> SearchAnswer:
    """The passages of the index that together say most about a question."""
    engine = index.engine()
    _check_query(engine.model, asked.query, *asked.also)
    options = options_of(defaults, asked)
    result = engine.search(asked.query, options)
    return SearchAnswer(
        **_found(engine, asked, options, result),
        passages=[
            _passage(chunk, record) for chunk, record in zip(result.chunks, pick_records(result), strict=True)
        ],
    )


def context(index: OpenIndex, defaults: SearchOptions, asked: ContextArguments) -> ContextAnswer:
    """The same as one text within a budget. In XML no passage can pretend to be the end of itself."""
    engine = index.engine()
    _check_query(engine.model, asked.query, *asked.also)
    options = options_of(defaults, asked)
    built = engine.context(asked.query, options, expand=asked.expand, order=asked.order, format="xml")
    return ContextAnswer(
        **_found(engine, asked, options, built.result),
        text=built.text,
        tokens=built.tokens,
        token_budget=built.token_budget,
        passages=[
            NumberedPassage(
                number=one.number,
                ids=list(one.chunk_ids),
                source=one.source,
                heading=one.heading or None,
                gain=one.gain,
            )
            for one in built.passages
        ],
    )


def _found(
    engine: Engine, asked: QuestionArguments, options: SearchOptions, result: RetrievalResult
) -> dict[str, Any]:
    """The fields of :class:`~dartboard.integrations.mcp.answers.Found`."""
    facts = result.metadata
    return {
        "query": asked.query,
        "collection": engine.name,
        "retriever": str(facts["retriever"]),
        "method": str(facts.get("method", method_of(options.method).name)),
        "candidates": int(facts["candidates"]),
        "relevance": FoundRelevance(**facts["relevance"]),
        "coverage": float(facts["coverage"][-1]) if result.chunks else 0.0,
        "questions": [QuestionCoverage(**one) for one in facts.get("questions", ())],
        "seen": len(asked.seen),
        "covered_before": facts.get("covered_before"),
    }


def select(index: OpenIndex, defaults: SearchOptions, asked: SelectArguments) -> SelectAnswer:
    """The candidates of the caller that together say most; nothing of them is kept."""
    method = method_of(check_method(asked.method) if asked.method else defaults.method)
    reads = asked.query is not None or asked.vectors is None or asked.token_budget is not None
    model = index.model() if reads else None
    vectors = _candidates(model, asked)
    query = _asked(model, asked, vectors.shape[1])
    selection = method.select(
        from_embeddings(
            query,
            vectors,
            sigma=defaults.sigma,
            model_sigma=model.sigma if model is not None else None,
            groups=None if asked.texts is None else candidate_groups(vectors, asked.texts),
        ),
        Limits(
            k=count(defaults, asked),
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


def explain(index: OpenIndex, defaults: SearchOptions, asked: ExplainArguments) -> ExplainAnswer:
    """Why a passage is among the picks of a search, or is not."""
    engine = index.engine()
    _check_query(engine.model, asked.query)
    records = engine.collection.get([asked.id])
    if not records:
        raise InvalidInputError(f"no passage {asked.id!r} in the index: take an id from a search")
    options = options_of(defaults, asked)
    found = explore(engine, asked.query, options, layout=False, sweep=False)
    place = next((at for at, each in enumerate(found.candidates) if each.id == asked.id), None)
    if place is not None:
        return explained(found, place)
    return left_out(found, records[0].chunk, engine, as_filter(options.where))


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
        serves=record.get("serves"),
        copies=[_copy(copy) for copy in record.get("copies", ())[: limits.SHOWN_COPIES]],
    )


def _copy(copy: Mapping[str, Any]) -> Copy:
    """A copy with the value of the preferred field, whatever that is called."""
    values = [value for name, value in copy.items() if name not in ("id", "differs") and value is not None]
    most = limits.SHOWN_DIFFERENCE
    return Copy(
        id=copy["id"],
        value=shortened(values[0], most) if values else None,
        differs=[(shortened(own, most), shortened(other, most)) for own, other in copy.get("differs", ())],
    )


_PLACES = {"page": "page", "start_line": "line"}


def _check_query(model: EmbeddingModel, query: str, *also: str) -> None:
    for place, tokens in enumerate(count_tokens(model, [query, *also])):
        if tokens > limits.QUERY_TOKENS:
            name = "a question in also" if place else "query"
            raise InvalidInputError(f"{name} is limited to {limits.QUERY_TOKENS} tokens: shorten it")


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
