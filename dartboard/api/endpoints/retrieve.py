"""``/retrieve``: the passages that together say most about a question; ``/retrieve/batch``: many questions;
``/context``: the text that a language model reads, merged and numbered, within a token budget.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from dartboard.api.authentication import READ
from dartboard.api.errors import ApiError, as_api_error
from dartboard.api.schemas import (
    Listed,
    Passage,
    Query,
    SearchBase,
    SearchRequest,
    at_most,
    check_length,
    json_body,
    not_blank,
    search_request,
)
from dartboard.api.service import Service, ServiceDep, in_thread
from dartboard.api.settings import ServiceSettings
from dartboard.context import DEFAULT_BUDGET, Context, Format, Order
from dartboard.context.formats import Passage as ContextPassage
from dartboard.deadline import check
from dartboard.engine import Engine
from dartboard.errors import DartboardError, DeadlineError
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.types import FloatArray, RetrievalResult


class RetrieveOptions(SearchRequest):
    """What one question and many have in common."""

    return_scores: bool = Field(True, description="Whether results carry `score`.")
    explain: bool = Field(
        False, description="Whether results say why: gains, coverage, who found what, time."
    )


class RetrieveRequest(RetrieveOptions):
    """One question."""

    query: Query


class BatchRequest(RetrieveOptions):
    """Many questions with the same options; one that is empty or too long is an error in its place."""

    queries: Listed[str] = Field(min_length=1)


class Result(Passage):
    """A passage that was picked. Fields from `gain` on come with `explain`."""

    rank: int = Field(description="The order in which it was picked, from 1.")
    score: float | None = Field(
        None, description="What it adds to those before it: a share of what all candidates would cover."
    )
    serves: int | None = Field(None, description="The question that it serves most: a place in `questions`.")
    copies: list[dict[str, Any]] | None = Field(
        None, description="With `prefer`: other copies among the candidates, and in what they differ."
    )
    gain: float | None = Field(None, description="The same as `score`.")
    coverage: float | None = Field(None, description="What is covered after this pick, of 1.")
    similarity: float | None = Field(None, description="Cosine to the question, or the pair scorer's score.")
    stands_for: list[str] | None = Field(None, description="Candidates that this pick covers best.")
    shares: dict[str, dict[str, Any]] | None = Field(
        None, description="Rank and score that each member of the retriever gave it."
    )
    retriever_score: float | None = None


class UsedConfig(BaseModel):
    """What was really used."""

    sigma: float | None
    sigma_source: str | None = Field(description="given, calibration, candidates or model.")
    top_k: int | None
    token_budget: int | None
    triage_k: int = Field(description="Candidates; few where a pair scorer reads them.")
    reranker_type: str
    method: str
    collection: str
    retriever: str
    warnings: list[str] = Field(description="What to know about the options, such as a σ that is too wide.")


class FoundRelevance(BaseModel):
    """Whether anything relevant was found: the best candidate against what the model gives.

    Passages are returned all the same.
    """

    verdict: Literal["relevant", "nothing_relevant", "unknown"]
    message: str = Field(description="A sentence where nothing relevant was found; empty otherwise.")
    best_similarity: float | None
    threshold: float | None = Field(description="Half-way between the two levels.")
    unrelated: float | None = Field(description="Mean cosine of a question and a passage on something else.")
    related: float | None = Field(description="Mean cosine of a question and a passage that answers it.")


class QuestionCoverage(BaseModel):
    """One of several questions: its share in the whole, and how much of it the picks cover."""

    text: str
    weight: float
    coverage: float


class FoundResponse(BaseModel):
    """What every answer to a question says of the search."""

    query: str
    relevance: FoundRelevance
    execution_time_ms: float
    config: UsedConfig
    questions: list[QuestionCoverage] | None = Field(None, description="With `also`: all of them.")
    covered_before: float | None = Field(None, description="With `seen`: the share covered before.")


class RetrieveResponse(FoundResponse):
    """Passages that together say most about a question, in the order in which they were picked."""

    results: list[Result]
    bound: float | None = Field(
        None, description="With `explain`: at least this share of what the best possible set would cover."
    )
    candidates: int | None = None
    near_copies: int | None = Field(None, description="Candidates removed as near-duplicates.")
    seconds: dict[str, float] | None = Field(None, description="Where the time went.")


class Failure(BaseModel):
    """A question of a batch that could not be answered."""

    error: str


class BatchResponse(BaseModel):
    """One answer for each question, in order."""

    results: list[RetrieveResponse | Failure]
    execution_time_ms: float


class ContextResponse(FoundResponse):
    """What a language model reads before it answers a question; empty where nothing matches."""

    text: str
    tokens: int
    token_budget: int
    order: Order
    format: Format
    passages: list[ContextPassage]
    coverage: float = Field(description="What all passages cover together, of 1.")


if TYPE_CHECKING:
    _ContextBase = SearchBase
else:
    _ContextBase = search_request(leave_out="offset")


class ContextRequest(_ContextBase):
    """A question, and how its context is written."""

    query: Query
    expand: bool = Field(
        True, description="Whether chunks before and after a pick may be added where they add most per token."
    )
    order: Order = Field(
        "gain",
        description="`gain` (what adds most comes first), `source` (passages of one document together, in "
        "its order), or `ends` (the best first and last).",
    )
    format: Format = "markdown"

    def keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """Without a budget the default one, never a number of passages alone."""
        options: SearchKeywords = super().keywords(settings)
        options.setdefault("token_budget", min(DEFAULT_BUDGET, settings.token_budget))
        if getattr(self, "k", None) is None:
            options.pop("k", None)
        return options


router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], dependencies=READ)
Found = TypeVar("Found", RetrievalResult, Context)
_TOO_LONG = (
    "the answers to a batch have at most {} bytes here: ask fewer questions at once, or for fewer passages"
)
_EXPLAINED = ("gain", "coverage", "similarity", "stands_for", "shares", "retriever_score")


@router.post("/retrieve", operation_id="retrieve", response_model_exclude_unset=True)
@in_thread
def retrieve(
    service: ServiceDep, body: Annotated[RetrieveRequest, json_body(RetrieveRequest)]
) -> RetrieveResponse:
    """Retrieve the passages that together say most about a question.

    Candidates come from the collection's retriever; Dartboard picks from them, each passage for what it adds
    to those before it.
    """
    started = time.perf_counter()
    engine = service.engines.get(body.collection)
    options = body.options(service, engine, body.query)
    return _retrieved(search(service, engine, body.query, options), engine, body, options, started)


@router.post("/retrieve/batch", operation_id="retrieve_batch", response_model=BatchResponse)
@in_thread
def retrieve_batch(service: ServiceDep, body: Annotated[BatchRequest, json_body(BatchRequest)]) -> Response:
    """Ask many questions at once, with the same options. One that fails does not spoil the others."""
    started = time.perf_counter()
    settings = service.settings
    at_most("queries", len(body.queries), settings.batch)
    engine = service.engines.get(body.collection)
    options = body.options(service, engine)
    unfit = [_unfit(service, engine, query) for query in body.queries]
    fit = [query for query, why in zip(body.queries, unfit, strict=True) if why is None]
    rows = engine.model.encode_queries([*fit, *options.also]) if fit else np.empty((0, 0))
    vectors = {query: np.stack([rows[at], *rows[len(fit) :]]) for at, query in enumerate(fit)}
    results: list[str] = []
    left = settings.answer_bytes
    for query, why in zip(body.queries, unfit, strict=True):
        found: RetrieveResponse | Failure = Failure(error=why or "")
        if why is None:
            check()
            began = time.perf_counter()
            try:
                result = search(service, engine, query, options, vectors[query])
                found = _retrieved(result, engine, body, options, began)
            except DeadlineError:
                raise
            except (ApiError, DartboardError) as error:
                found = Failure(error=as_api_error(error).message)
        written = found.model_dump_json(exclude_unset=True)
        if len(written) > left:
            written = Failure(error=_TOO_LONG.format(settings.answer_bytes)).model_dump_json()
        left -= len(written)
        results.append(written)
    content = f'{{"results":[{",".join(results)}],"execution_time_ms":{elapsed_ms(started)}}}'
    return Response(content, media_type="application/json")


@router.post("/context", operation_id="context", response_model_exclude_unset=True)
@in_thread
def context(
    service: ServiceDep, body: Annotated[ContextRequest, json_body(ContextRequest)]
) -> ContextResponse:
    """Write the text that a language model reads: passages that together say most, within a token budget.

    Neighbours in a document merge into one passage without repeated text; passages are numbered, with source
    and heading.
    """
    started = time.perf_counter()
    engine = service.engines.get(body.collection)
    options = body.options(service, engine, body.query)
    written: dict[str, Any] = {"expand": body.expand, "order": body.order, "format": body.format}
    built = run_search(
        service,
        engine,
        body.query,
        options,
        lambda vector: engine.context(body.query, options, query_vector=vector, **written),
    )
    coverage = built.result.metadata["coverage"][-1] if built.passages else 0.0
    return ContextResponse(
        **_described(built.result, engine, body, options, started),
        text=built.text,
        tokens=built.tokens,
        token_budget=built.token_budget,
        order=built.order,
        format=built.format,
        passages=list(built.passages),
        coverage=coverage,
    )


def elapsed_ms(started: float) -> float:
    """The time since ``started`` (``time.perf_counter()``), as answers say it."""
    return round(1000 * (time.perf_counter() - started), 3)


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
    with service.engines.search_slot(engine, options):
        found = work(vector)
    result = found.result if isinstance(found, Context) else found
    seconds = result.metadata["seconds"]
    for stage in ("encode", "total"):
        seconds[stage] = seconds.get(stage, 0.0) + encoding
    service.metrics.observe_search(result.metadata, len(result.chunks))
    return found


def _unfit(service: Service, engine: Engine, query: str) -> str | None:
    """Why a question of a batch cannot be asked; the others still are."""
    try:
        check_length(engine, [not_blank(query)], service.settings, "query")
    except ApiError as error:
        return error.message
    except ValueError as error:
        return f"query: {error}"
    return None


def _described(
    result: RetrievalResult, engine: Engine, body: Any, options: SearchOptions, started: float
) -> dict[str, Any]:
    """The fields of :class:`FoundResponse`."""
    facts = result.metadata
    config = UsedConfig(
        sigma=facts.get("sigma"),
        sigma_source=facts.get("sigma_source"),
        top_k=options.k,
        token_budget=options.token_budget,
        triage_k=options.triage_k,
        reranker_type=options.reranker,
        method=body.method,
        collection=engine.name,
        retriever=facts["retriever"],
        warnings=facts.get("warnings", []),
    )
    found: dict[str, Any] = {
        "query": result.query,
        "relevance": facts["relevance"],
        "execution_time_ms": elapsed_ms(started),
        "config": config,
    }
    return found | {name: facts[name] for name in ("questions", "covered_before") if name in facts}


def _retrieved(
    result: RetrievalResult, engine: Engine, body: Any, options: SearchOptions, started: float
) -> RetrieveResponse:
    facts = result.metadata
    columns: list[str] = [name for name in ("serves", "copies") if name in facts]
    found = _described(result, engine, body, options, started)
    if body.explain:
        columns += _EXPLAINED
        found["bound"] = facts.get("bound")
        found |= {name: facts[name] for name in ("candidates", "near_copies", "seconds")}
    results = []
    for at, (chunk, score) in enumerate(zip(result.chunks, result.scores, strict=True)):
        entry: dict[str, Any] = {name: facts[name][at] for name in columns}
        if body.return_scores:
            entry["score"] = score
        results.append(
            Result(chunk_id=chunk.id, text=chunk.text, metadata=chunk.metadata, rank=at + 1, **entry)
        )
    return RetrieveResponse(**found, results=results)
