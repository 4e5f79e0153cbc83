"""``POST /retrieve``: the passages that together say most about a question; ``/retrieve/batch``: many."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal, TypeVar

import numpy as np
import orjson
from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.api.errors import ApiError, Invalid, as_api_error
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, dumps, elapsed_ms, json_response
from dartboard.api.schemas import Listed, Passage, ResponseModel, not_blank
from dartboard.api.search_request import Query, SearchRequest, at_most, check_length, check_query
from dartboard.api.service import Service, ServiceDep, in_worker
from dartboard.context import Context
from dartboard.deadline import check
from dartboard.engine import Engine
from dartboard.errors import DartboardError, DeadlineError
from dartboard.search_options import SearchOptions
from dartboard.types import FloatArray, RetrievalResult


class RetrieveOptions(SearchRequest):
    """What one question and many have in common."""

    return_scores: bool = Field(True, description="Whether results carry `score`.", examples=[True])
    explain: bool = Field(
        False, description="Whether results say why: gains, coverage, who found what, time.", examples=[True]
    )


class RetrieveRequest(RetrieveOptions):
    """One question."""

    query: Query


class BatchRequest(RetrieveOptions):
    """Many questions with the same options."""

    queries: Listed[str] = Field(
        min_length=1,
        description="The questions; one that is empty or too long is an error in its place.",
        examples=[["Why are our consumers falling behind?", "How do I replay messages?"]],
    )


class Share(ResponseModel):
    """What one member of the retriever said of a passage."""

    rank: int = Field(description="Its place in the member's list, from 1.", examples=[3])
    score: float = Field(description="The member's own score.", examples=[0.61])


class Result(Passage):
    """A passage that was picked."""

    score: float | None = Field(
        None,
        description="What the passage adds to those before it: a share of what all candidates would cover.",
        examples=[0.41],
    )
    rank: int = Field(description="The order in which it was picked, from 1.", examples=[1])
    gain: float | None = Field(None, description="The same as `score` (explain).", examples=[0.41])
    coverage: float | None = Field(
        None, description="What is covered after this pick, of 1 (explain).", examples=[0.41]
    )
    similarity: float | None = Field(
        None, description="Cosine to the question, or the pair scorer's word (explain).", examples=[0.72]
    )
    stands_for: list[str] | None = Field(
        None,
        description="Candidates that this pick covers best (explain).",
        examples=[["slow-01", "slow-01b"]],
    )
    serves: int | None = Field(
        None, description="The question that this pick serves most: a place in `questions`.", examples=[0]
    )
    copies: list[dict[str, Any]] | None = Field(
        None,
        description="With `prefer`: other copies among the candidates, with the preferred field, and in what "
        "they differ if they do.",
        examples=[[{"id": "slow-01b", "source": "wiki/old.md"}]],
    )
    shares: dict[str, Share] | None = Field(
        None,
        description="What each member of the retriever said (explain).",
        examples=[{"dense": {"rank": 1, "score": 0.72}, "bm25": {"rank": 2, "score": 9.1}}],
    )
    retriever_score: float | None = Field(
        None, description="The retriever's own score (explain).", examples=[0.93]
    )


class UsedConfig(ResponseModel):
    """What was really used."""

    sigma: float | None = Field(
        description="σ as it was used; null where a method has none.", examples=[0.087]
    )
    top_k: int | None = Field(description="The number of passages asked for.", examples=[5])
    reranker_type: str = Field(description="As asked.", examples=["cosine"])
    method: str = Field(description="Who picked.", examples=["dartboard"])
    sigma_source: str | None = Field(
        description="Where σ comes from: given, calibration, candidates, model.", examples=["candidates"]
    )
    triage_k: int = Field(description="The number of candidates asked for.", examples=[100])
    token_budget: int | None = Field(description="The budget asked for.", examples=[None])
    collection: str = Field(description="The collection that was asked.", examples=["demo"])
    retriever: str = Field(description="Who found the candidates.", examples=["hybrid"])
    warnings: list[str] = Field(
        [], description="What to know about the options, such as a σ that is too wide.", examples=[[]]
    )


class FoundRelevance(ResponseModel):
    """Whether anything relevant was found: the best candidate against what the model gives.

    Passages are returned all the same.
    """

    verdict: Literal["relevant", "nothing_relevant", "unknown"] = Field(
        description="`nothing_relevant` where the best candidate is below `threshold`, or there is none; "
        "`unknown` where nobody measured the model.",
        examples=["relevant"],
    )
    message: str = Field(
        description="That nothing relevant was found, in a sentence; empty otherwise.", examples=[""]
    )
    best_similarity: float | None = Field(
        description="The highest cosine of a candidate to the question; null without candidates.",
        examples=[0.72],
    )
    threshold: float | None = Field(
        description="Half-way between the two levels; null where they are not known.", examples=[0.315]
    )
    unrelated: float | None = Field(
        description="Mean cosine that the model gives a question and a passage about something else.",
        examples=[0.02],
    )
    related: float | None = Field(
        description="Mean cosine that it gives a question and a passage that answers it.", examples=[0.61]
    )


class QuestionCoverage(ResponseModel):
    """One of several questions."""

    text: str = Field(description="The question.", examples=["How do I add consumers?"])
    weight: float = Field(description="Its share in the whole, of 1.", examples=[0.5])
    coverage: float = Field(
        description="How much of what it may be after is covered by the picks, of 1.", examples=[0.83]
    )


class FoundResponse(ResponseModel):
    """What every answer to a question says of the search."""

    query: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    relevance: FoundRelevance = Field(description="Whether anything relevant was found.")
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[12.3])
    config: UsedConfig = Field(description="What was used.")
    questions: list[QuestionCoverage] | None = Field(
        None,
        description="With `also`: `query` and the others, and how far each is covered.",
        examples=[
            [
                {"text": "Why are our consumers falling behind?", "weight": 0.5, "coverage": 0.83},
                {"text": "How do I add consumers?", "weight": 0.5, "coverage": 0.71},
            ]
        ],
    )
    covered_before: float | None = Field(
        None, description="With `seen`: the share that was covered before the first pick.", examples=[0.4]
    )


class RetrieveResponse(FoundResponse):
    """Passages that together say most about a question, in the order in which they were picked."""

    results: list[Result] = Field(description="The passages.")
    bound: float | None = Field(
        None,
        description="The set covers at least this share of what the best possible set would (explain).",
        examples=[0.93],
    )
    candidates: int | None = Field(
        None, description="How many candidates there were (explain).", examples=[100]
    )
    near_copies: int | None = Field(
        None,
        description="How many of them were removed as near-duplicates of a more relevant one (explain).",
        examples=[62],
    )
    seconds: dict[str, float] | None = Field(
        None, description="Where the time went (explain).", examples=[{"encode": 0.004, "search": 0.002}]
    )


class Failure(ResponseModel):
    """A question of a batch that could not be answered."""

    error: str = Field(description="What was wrong with this question.", examples=["the query is too long"])


class BatchResponse(ResponseModel):
    """One answer for each question, in order."""

    results: list[RetrieveResponse | Failure] = Field(description="Answers or errors, in order.")
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[40.1])


router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], route_class=JsonRoute, dependencies=READ)

Found = TypeVar("Found", RetrievalResult, Context)
_TOO_LONG = (
    "the answers to a batch have at most {} bytes here: ask fewer questions at once, or for fewer passages"
)
_EXPLAINED = ("gain", "coverage", "similarity", "stands_for", "shares", "retriever_score")


@router.post("/retrieve", operation_id="retrieve", response_model=RetrieveResponse)
@in_worker
def retrieve(body: RetrieveRequest, service: ServiceDep) -> Response:
    """Retrieve the passages that together say most about a question.

    Candidates come from the collection's retriever; Dartboard picks from them, each passage for what it adds
    to those before it.
    """
    started = time.perf_counter()
    options = body.search_options(service.settings)
    engine = service.engines.get(body.collection)
    check_query(engine.model, body.query, service.settings, body.also)
    result = search(service, engine, body.query, options)
    return json_response(_retrieved(result, engine, body, options, started))


@router.post("/retrieve/batch", operation_id="retrieve_batch", response_model=BatchResponse)
@in_worker
def retrieve_batch(body: BatchRequest, service: ServiceDep) -> Response:
    """Ask many questions at once, with the same options. One that fails does not spoil the others."""
    started = time.perf_counter()
    settings = service.settings
    at_most("queries", len(body.queries), settings.batch)
    options = body.search_options(settings)
    engine = service.engines.get(body.collection)
    check_length(engine.model, body.also, settings, "also")
    unfit = [_unfit(service, engine, query) for query in body.queries]
    fit = [query for query, why in zip(body.queries, unfit, strict=True) if why is None]
    rows = engine.model.encode_queries([*fit, *body.also]) if fit else np.empty((0, 0))
    vectors = {query: np.stack([rows[at], *rows[len(fit) :]]) for at, query in enumerate(fit)}
    results: list[orjson.Fragment] = []
    left = settings.answer_bytes
    for query, why in zip(body.queries, unfit, strict=True):
        found: dict[str, Any] = {"error": why}
        if why is None:
            check()
            began = time.perf_counter()
            try:
                result = search(service, engine, query, options, vectors[query])
                found = _retrieved(result, engine, body, options, began)
            except DeadlineError:
                raise
            except (ApiError, DartboardError) as error:
                found = {"error": as_api_error(error, type(body)).message}
        encoded = dumps(found)
        if len(encoded) > left:
            encoded = dumps({"error": _TOO_LONG.format(settings.answer_bytes)})
        left -= len(encoded)
        results.append(orjson.Fragment(encoded))
    return json_response({"results": results, "execution_time_ms": elapsed_ms(started)})


def _unfit(service: Service, engine: Engine, query: str) -> str | None:
    """Why a question of a batch cannot be asked; the others still are."""
    try:
        check_query(engine.model, not_blank(query), service.settings)
    except Invalid as error:
        return error.message
    except ValueError as error:
        return f"query: {error}"
    return None


def search(
    service: Service,
    engine: Engine,
    query: str,
    options: SearchOptions,
    vector: FloatArray | None = None,
) -> RetrievalResult:
    """One search, counted. ``vector`` is the query's, ``(d,)``, or ``(m, d)`` with those of ``also``."""
    return run_search(
        service, engine, query, options, lambda rows: engine.search(query, options, query_vector=rows), vector
    )


def run_search(
    service: Service,
    engine: Engine,
    query: str,
    options: SearchOptions,
    work: Callable[[FloatArray], Found],
    vector: FloatArray | None = None,
) -> Found:
    """Encode the questions, wait for a slot, do the work with their vectors, and count it."""
    began = time.perf_counter()
    # Before the slot: many who wait are encoded as one batch.
    if vector is None:
        vector = engine.model.encode_query(query)
    if options.also and vector.ndim == 1:
        vector = np.stack([vector, *engine.model.encode_queries(list(options.also))])
    encoding = time.perf_counter() - began
    # Pairs of texts take long to score, so such a search keeps nobody else waiting.
    quick = options.reranker == "cosine"
    with service.engines.search_slot(engine) if quick else nullcontext():
        found = work(vector)
    facts = (found.result if isinstance(found, Context) else found).metadata
    seconds = facts["seconds"]
    for stage in ("encode", "total"):
        seconds[stage] = seconds.get(stage, 0.0) + encoding
    service.metrics.observe_search(facts)
    return found


def described(
    result: RetrievalResult, engine: Engine, body: SearchRequest, options: SearchOptions, started: float
) -> dict[str, Any]:
    """The fields of :class:`FoundResponse`."""
    facts = result.metadata
    found: dict[str, Any] = {
        "query": result.query,
        "relevance": facts["relevance"],
        "execution_time_ms": elapsed_ms(started),
        "config": {
            "sigma": facts.get("sigma"),
            "top_k": options.k,
            "reranker_type": body.reranker,
            "method": body.method,
            "sigma_source": facts.get("sigma_source"),
            "triage_k": options.triage_k,
            "token_budget": options.token_budget,
            "collection": engine.name,
            "retriever": facts["retriever"],
            "warnings": facts.get("warnings", []),
        },
    }
    return found | {name: facts[name] for name in ("questions", "covered_before") if name in facts}


def _retrieved(
    result: RetrievalResult, engine: Engine, body: RetrieveOptions, options: SearchOptions, started: float
) -> dict[str, Any]:
    facts = result.metadata
    found = described(result, engine, body, options, started) | {"results": []}
    if body.explain:
        found["bound"] = facts.get("bound")
        found |= {name: facts[name] for name in ("candidates", "near_copies", "seconds")}
    for at, (chunk, score) in enumerate(zip(result.chunks, result.scores, strict=True)):
        entry = {"chunk_id": chunk.id, "text": chunk.text, "rank": at + 1, "metadata": chunk.metadata}
        if body.return_scores:
            entry["score"] = score
        entry |= {name: facts[name][at] for name in ("serves", "copies") if name in facts}
        if body.explain:
            entry |= {name: facts[name][at] for name in _EXPLAINED}
        found["results"].append(entry)
    return found
