"""``POST /retrieve``: the passages that together say most about a question; ``/retrieve/batch``: many."""

import time
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.responses import Response

from dartboard.api.endpoints.retrieve_schemas import (
    BatchRequest,
    BatchResponse,
    RetrieveOptions,
    RetrieveRequest,
    RetrieveResponse,
    SearchRequest,
)
from dartboard.api.errors import ApiError, Invalid, as_api_error
from dartboard.api.filters import condition_of
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, answer, dumps, milliseconds
from dartboard.api.limits import check_query, check_sizes
from dartboard.api.schemas import not_blank
from dartboard.api.service import Service, TheService, in_worker
from dartboard.deadline import check
from dartboard.engine import Engine
from dartboard.errors import DartboardError, DeadlineError
from dartboard.search_options import TRIAGE, SearchOptions
from dartboard.types import FloatArray, RetrievalResult

router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], route_class=JsonRoute, dependencies=READ)

TOP_K = 5
_TOO_LONG = (
    "the answers to a batch have at most {} bytes here: ask fewer questions at once, or for fewer passages"
)
_EXPLAINED = ("gain", "coverage", "similarity", "stands_for", "shares", "retriever_score")


@router.post("/retrieve", operation_id="retrieve", response_model=RetrieveResponse)
@in_worker
def retrieve(body: RetrieveRequest, service: TheService) -> Response:
    """Retrieve the passages that together say most about a question.

    Candidates come from the collection's retriever; Dartboard picks from them, each passage for what it adds
    to those before it.
    """
    started = time.perf_counter()
    engine = engine_of(service, body)
    check_query(engine.model, body.query, service.settings)
    return answer(_found(service, engine, body.query, body, started))


@router.post("/retrieve/batch", operation_id="retrieve_batch", response_model=BatchResponse)
@in_worker
def retrieve_batch(body: BatchRequest, service: TheService) -> Response:
    """Ask many questions at once, with the same options. One that fails does not spoil the others."""
    started = time.perf_counter()
    check_sizes(service.settings, batch=body.queries)
    engine = engine_of(service, body)
    unfit = [_unfit(service, engine, query) for query in body.queries]
    fit = [query for query, why in zip(body.queries, unfit, strict=True) if why is None]
    vectors = dict(zip(fit, engine.model.encode_queries(fit), strict=True)) if fit else {}
    results: list[orjson.Fragment] = []
    left = service.settings.answer_bytes
    for query, why in zip(body.queries, unfit, strict=True):
        found = (
            {"error": why} if why is not None else _one_of_many(service, engine, query, body, vectors[query])
        )
        encoded = dumps(found)
        if len(encoded) > left:
            encoded = dumps({"error": _TOO_LONG.format(service.settings.answer_bytes)})
        left -= len(encoded)
        results.append(orjson.Fragment(encoded))
    return answer({"results": results, "execution_time_ms": milliseconds(started)})


def _unfit(service: Service, engine: Engine, query: str) -> str | None:
    """Why a question of a batch cannot be asked; the others still are."""
    try:
        check_query(engine.model, not_blank(query), service.settings)
    except Invalid as error:
        return error.message
    except ValueError as error:
        return f"query: {error}"
    return None


def _one_of_many(
    service: Service, engine: Engine, query: str, body: BatchRequest, vector: FloatArray
) -> dict[str, Any]:
    check()
    try:
        return _found(service, engine, query, body, time.perf_counter(), vector)
    except DeadlineError:
        raise
    except (ApiError, DartboardError) as error:
        return {"error": as_api_error(error).message}


def engine_of(service: Service, body: SearchRequest) -> Engine:
    """The engine that a body is about, once its numbers are within the limits."""
    settings = service.settings
    check_sizes(settings, k=body.top_k, triage_k=body.triage_k, token_budget=body.token_budget)
    return service.engines.get(body.collection)


def options_of(service: Service, body: SearchRequest) -> SearchOptions:
    """What a body asks for, in the engine's terms; the usual numbers where it says none."""
    k = TOP_K if body.top_k is None and body.token_budget is None else body.top_k
    return SearchOptions(
        k=k,
        token_budget=body.token_budget,
        method=body.method,
        where=condition_of(body.filter, body.corpus_ids),
        triage_k=body.triage_k or min(service.settings.triage_k, max(TRIAGE, k or 0)),
        sigma=body.sigma,
        reranker=body.reranker_type,
        must_include=body.must_include,
        exclude=body.exclude,
        max_per_source=body.max_per_source,
        min_gain_share=body.min_gain_share,
        min_similarity=body.min_similarity,
    )


def searched(
    service: Service,
    engine: Engine,
    query: str,
    options: SearchOptions,
    vector: FloatArray | None = None,
) -> RetrievalResult:
    """The search, counted. Its query is encoded with those of others; then it waits for its turn.

    Pairs of texts take long to score, so such a search keeps nobody else waiting.
    """
    if options.reranker != "cosine":
        result = engine.search(query, options)
    else:
        began = time.perf_counter()
        if vector is None:
            vector = engine.model.encode_query(query)
        encoding = time.perf_counter() - began
        with service.engines.search_slot(engine):
            result = engine.search(query, options, query_vector=vector)
        seconds = result.metadata["seconds"]
        for stage in ("encode", "total"):
            seconds[stage] = seconds.get(stage, 0.0) + encoding
    service.metrics.observe_search(result.metadata)
    return result


def _found(
    service: Service,
    engine: Engine,
    query: str,
    body: RetrieveOptions,
    started: float,
    vector: FloatArray | None = None,
) -> dict[str, Any]:
    options = options_of(service, body)
    result = searched(service, engine, query, options, vector)
    facts = result.metadata
    found: dict[str, Any] = {
        "query": query,
        "results": _results(result, body),
        "relevance": facts["relevance"],
        "execution_time_ms": milliseconds(started),
        "config": {
            "sigma": facts.get("sigma"),
            "top_k": options.k,
            "reranker_type": body.reranker_type,
            "method": body.method,
            "sigma_source": facts.get("sigma_source"),
            "triage_k": options.triage_k,
            "token_budget": body.token_budget,
            "collection": engine.name,
            "retriever": facts["retriever"],
        },
    }
    if body.explain:
        found["bound"] = facts.get("bound")
        found["candidates"] = facts["candidates"]
        found["near_copies"] = facts["near_copies"]
        found["seconds"] = facts["seconds"]
    return found


def _results(result: RetrievalResult, body: RetrieveOptions) -> list[dict[str, Any]]:
    results = []
    for at, (chunk, score) in enumerate(zip(result.chunks, result.scores, strict=True)):
        entry = {"chunk_id": chunk.id, "text": chunk.text, "rank": at + 1, "metadata": chunk.metadata}
        if body.return_scores:
            entry["score"] = score
        if body.explain:
            entry |= {name: result.metadata[name][at] for name in _EXPLAINED}
        results.append(entry)
    return results
