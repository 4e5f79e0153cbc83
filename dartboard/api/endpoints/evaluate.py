"""``POST /evaluate``: how good is a configuration on a data set whose answers are known.

It always runs as a job. The request waits for it almost as long as a request may take, and then hands over
to the job's address.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from dartboard.api.endpoints.admin import JobStarted
from dartboard.api.endpoints.datasets import roots_by_name
from dartboard.api.errors import Invalid, NotFound, Unavailable
from dartboard.api.guards.authentication import reader
from dartboard.api.job_queue import Job, Progress
from dartboard.api.json_body import JsonRoute, elapsed_ms, json_response
from dartboard.api.keys import Key
from dartboard.api.schemas import Listed, RequestModel, ResponseModel, Sigma, TextPattern
from dartboard.api.search_request import Count, Reranker, at_most
from dartboard.api.service import Service, ServiceDep
from dartboard.config import RerankerType
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import load_dataset
from dartboard.datasets.catalogue import ALIASES, list_datasets
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError
from dartboard.evaluation import Content, Judgements, Measure, Scores, System
from dartboard.evaluation.baselines import KnownVector, SelectionSystem
from dartboard.evaluation.measures import MEASURES, NEEDS_A_MODEL, available, headline_measure, with_distinct
from dartboard.evaluation.measures import evaluate as measured
from dartboard.evaluation.questions import Question, Triage
from dartboard.evaluation.registry import check_names, choose
from dartboard.evaluation.runner import answer as answered
from dartboard.selection import Dartboard
from dartboard.selection.kernel import Auto

_METRIC = r"^[a-z_0-9]+(@[1-9][0-9]{0,2})?$"
_SYSTEM = (
    r"^(quick|cosine|random|oracle|dense|bm25|colbert|hybrid|rrf"
    r"|pyversity-(dpp|cover)|(mmr|dedup)-[0-9]*\.?[0-9]+"
    r"|dartboard(-hybrid|-crossencoder|-[0-9]*\.?[0-9]+)?)$"
)
MetricName = Annotated[
    str,
    Field(max_length=40),
    TextPattern(_METRIC, "should be a measure such as ndcg or ndcg@10"),
]
SystemName = Annotated[
    str,
    Field(max_length=40),
    TextPattern(
        _SYSTEM,
        "should be a system such as cosine, mmr-0.7, dedup-0.90, dartboard, dartboard-0.09, dense, bm25, "
        "colbert, hybrid, rrf, random or oracle",
    ),
]


class EvaluateConfig(RequestModel):
    """What is evaluated."""

    sigma: Sigma = "auto"
    top_k: Count = Field(5, description="How many passages an answer has.", examples=[5])
    triage_k: Count = Field(100, description="How many candidates to pick from.", examples=[100])
    reranker_type: Reranker = "cosine"


class EvaluateRequest(RequestModel):
    """A data set, a configuration, and what to measure."""

    dataset_name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A name that `GET /datasets` lists.", examples=["synthetic_clustered"]
    )
    config: EvaluateConfig = Field(
        default_factory=lambda: EvaluateConfig.model_validate({}),
        description="What is evaluated.",
        examples=[{"sigma": "auto", "top_k": 5}],
    )
    metrics: Listed[MetricName] = Field(
        ["headline", "ndcg", "precision", "recall", "diversity"],
        min_length=1,
        max_length=30,
        description="Measures by name, at `top_k` unless they say otherwise (`ndcg@10`): precision, recall, "
        "hit_rate, mrr, map, ndcg, set_recall, success, jaccard, subtopic_recall, alpha_ndcg, diversity, "
        "intra_list_distance, cluster_coverage, distinct_share, f1_diversity; `headline` is the one that "
        "suits the judgements of the data set. Where passages are copies of one another, precision, recall, "
        "map and ndcg count each copy, and the answer also has `distinct_precision` …, which count "
        "copies once.",
        examples=[["ndcg", "precision", "diversity"]],
    )
    systems: Listed[SystemName] = Field(
        [],
        max_length=20,
        description="Others to compare with: cosine, mmr-0.7, dedup-0.90, random, oracle, dartboard-0.09 …; "
        "over the whole corpus dense, bm25, colbert, hybrid, rrf.",
        examples=[["cosine", "mmr-0.7"]],
    )
    background: bool = Field(False, description="Whether to answer at once with a job.", examples=[False])


class EvaluateResponse(ResponseModel):
    """What was measured."""

    dataset: str = Field(description="The data set.", examples=["synthetic_clustered"])
    metrics: dict[str, float] = Field(
        description="The mean of each measure over the queries.",
        examples=[{"ndcg@5": 0.763, "precision@5": 0.842, "diversity": 0.671}],
    )
    headline: str = Field(
        description="The measure that suits the judgements of the data set; reports of `dartboard eval` lead "
        "with it, too.",
        examples=["ndcg@5"],
    )
    num_queries: int = Field(description="Queries that are judged.", examples=[100])
    execution_time_ms: float = Field(description="Milliseconds of work.", examples=[1230.0])
    config: dict[str, Any] = Field(
        description="What was evaluated.", examples=[{"sigma": "auto", "top_k": 5, "reranker_type": "cosine"}]
    )
    systems: dict[str, dict[str, float]] = Field(
        description="The same measures of the systems to compare with.",
        examples=[{"cosine": {"ndcg@5": 0.74, "precision@5": 0.83, "diversity": 0.41}}],
    )
    skipped: dict[str, str] = Field(
        description="Systems that cannot be run on this data set, and why.", examples=[{}]
    )


router = APIRouter(prefix="/api/dartboard", tags=["evaluate"], route_class=JsonRoute)

SPARE = 2.0
"""Seconds of a request's time that are kept for the answer."""
_POLL_SECONDS = 0.05
_OWN = "configured"
_HEADLINE = "headline"
"""Among the measures asked for: the one that suits the judgements of the data set."""
_SET_MEASURES = frozenset(
    name for name, kind in MEASURES.items() if kind.needs in ("vectors", "clusters")
) | {"distinct_share"}
"""Measures of a whole answer, which the specification names without a depth."""


@router.post(
    "/evaluate",
    operation_id="evaluate",
    response_model=EvaluateResponse,
    responses={202: {"model": JobStarted, "description": "It takes longer: a job goes on with it."}},
)
async def evaluate(
    body: EvaluateRequest,
    request: Request,
    service: ServiceDep,
    key: Annotated[Key | None, Depends(reader)],
) -> Response:
    """Measure a configuration on a data set; where that takes longer than a request may, by a job."""
    await service.workers.run(_check, service, body)
    job = service.jobs.start("evaluate", partial(_evaluate, service, body), key.id if key else None)
    if not body.background and await ended(job, request, service.settings.timeout - SPARE):
        if job.problem is not None:
            raise job.problem
        if job.result is not None:
            return json_response(job.result)
        raise Unavailable("the evaluation was cancelled", code="cancelled")
    return json_response({"job_id": job.id, "status_url": f"/api/dartboard/jobs/{job.id}"}, 202)


async def ended(job: Job, request: Request, seconds: float) -> bool:
    """Wait for the job as long as there is time and somebody to wait; whether it has ended."""
    end = time.monotonic() + seconds
    while not job.ended.is_set():
        if time.monotonic() >= end:
            return False
        if await request.is_disconnected():
            job.stop.set()
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _check(service: Service, body: EvaluateRequest) -> None:
    """What can be wrong is said before anything is begun."""
    config = body.config
    at_most("top_k", config.top_k, service.settings.k)
    at_most("triage_k", config.triage_k, service.settings.triage_k)
    if config.triage_k < config.top_k:
        raise Invalid("triage_k must be at least top_k", field="config.triage_k")
    synthetic = {info.name for info in list_datasets("\0") if info.type == "synthetic"}
    known = synthetic | set(roots_by_name(service))
    if body.dataset_name not in known and ALIASES.get(body.dataset_name, ("",))[0] not in known:
        raise NotFound("there is no such data set: GET /api/dartboard/datasets lists them")
    for at, name in enumerate(body.metrics):
        if name == _HEADLINE:
            continue
        _, measure = _measure(name, config.top_k, f"metrics.{at}")
        if (measure.k or 0) > config.triage_k:
            raise Invalid("a measure looks deeper than triage_k", field=f"metrics.{at}")
    try:
        check_names(body.systems)
    except ConfigError:
        raise Invalid("systems: see the names that are allowed in /openapi.json", field="systems") from None


def _measure(name: str, top_k: int, field: str) -> tuple[str, Measure]:
    """What the answer calls a measure, and the measure.

    ``ndcg`` → ``ndcg@5``; measures of a whole set keep their name unless a depth was asked for.
    """
    try:
        given = Measure.parse(name)
    except ConfigError:
        known = ", ".join((_HEADLINE, *MEASURES))
        raise Invalid(f"unknown measure: choose from {known}", field=field) from None
    measure = Measure(given.name, given.k or top_k)
    return given.name if given.k is None and given.name in _SET_MEASURES else str(measure), measure


def _evaluate(service: Service, body: EvaluateRequest, progress: Progress) -> dict[str, Any]:
    """The job's task: load the data set, let the systems answer, measure."""
    started = time.perf_counter()
    config = body.config

    def listen(step: str, done: int, total: int | None) -> None:
        progress(done, total or 0, step)

    def scorer() -> PairScorer:
        try:
            return service.engines.pair_scorer()
        except ConfigError:
            raise Invalid(
                "the model has no token vectors: choose cosine", field="config.reranker_type"
            ) from None

    roots = roots_by_name(service)
    dataset = load_dataset(
        body.dataset_name,
        roots.get(body.dataset_name) or roots.get(ALIASES.get(body.dataset_name, ("",))[0]),
        model=service.engines.model,
        progress=listen,
        fetch=False,
    )
    judgements, content = Judgements.of(dataset), Content.of(dataset)
    headline = headline_measure(judgements, config.top_k)
    measures = _measures(body, judgements, headline)
    asked = [one.name for one in measures.values()]
    if "answer" in asked:
        raise Invalid(NEEDS_A_MODEL, field="metrics")
    if lacking := set(asked) - set(available(judgements, content, asked)):
        raise Invalid(f"this data set cannot answer {', '.join(sorted(lacking))}", field="metrics")
    own: System = (
        SelectionSystem(_OWN, Dartboard(), config.sigma)
        if config.reranker_type == "cosine"
        else _ReadingTexts(config.reranker_type, config.sigma, scorer())
    )
    others = choose(
        list(body.systems), dataset, judgements, scorer=scorer, model=lambda: service.engines.model
    )
    runs, _ = answered(
        Triage(dataset, config.triage_k),
        judgements.query_ids,
        [own, *(system for system in others.systems if system.name != own.name)],
        depth=max(measure.k or 1 for measure in measures.values()),
        workers=1,
        listener=listen,
    )
    found = {}
    for system, seeded in runs.items():
        scores = Scores.mean_of(
            [measured(run, judgements, list(measures.values()), content=content) for run in seeded]
        ).means
        found[system] = {name: round(scores[str(measure)], 6) for name, measure in measures.items()}
    return {
        "dataset": body.dataset_name,
        "metrics": found.pop(own.name),
        "headline": str(headline),
        "num_queries": len(judgements.query_ids),
        "execution_time_ms": elapsed_ms(started),
        "config": config.model_dump(),
        "systems": found,
        "skipped": others.skipped,
    }


def _measures(body: EvaluateRequest, judgements: Judgements, headline: Measure) -> dict[str, Measure]:
    """What is measured, by the names of the answer, in the order asked.

    Where chunks are copies of one another, a measure of relevance comes with the one that counts copies once.
    """
    wanted: dict[str, Measure] = {}
    for metric in body.metrics:
        if metric == _HEADLINE:
            wanted[str(headline)] = headline
            continue
        name, measure = _measure(metric, body.config.top_k, "metrics")
        wanted[name], *distinct = with_distinct([measure], judgements)
        wanted.update((str(one), one) for one in distinct)
    return wanted


@dataclass(frozen=True)
class _ReadingTexts:
    """A variant that reads texts, with the σ that was asked for."""

    variant: RerankerType
    sigma: float | Auto
    scorer: PairScorer
    name: str = _OWN
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        config = DartboardConfig(sigma=self.sigma, top_k=1, triage_k=1000, reranker_type=self.variant)
        retriever = DartboardRetriever(config, KnownVector(question.vector), cross_encoder=self.scorer)
        return [chunk.id for chunk in retriever.search(question.text, question.candidates, k=k).chunks]
