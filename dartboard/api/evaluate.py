"""``POST /evaluate``: how good is a configuration on a data set whose answers are known.

It always runs as a job. The request waits for it almost as long as a request may take, and then hands over
to the job's address.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.datasets import roots_by_name
from dartboard.api.errors import ApiError, Invalid, NotFound
from dartboard.api.jobs import Job, Progress
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.keys import Key
from dartboard.api.limits import check_sizes
from dartboard.api.schemas.evaluate import EvaluateRequest, EvaluateResponse
from dartboard.api.schemas.jobs import JobStarted
from dartboard.api.service import Service, service_of
from dartboard.config import RerankerType
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import load_dataset
from dartboard.datasets.catalogue import list_datasets
from dartboard.embeddings.pairs import PairScorer
from dartboard.errors import ConfigError
from dartboard.evaluation import Content, Judgements, Measure, Scores, System
from dartboard.evaluation.baselines import KnownVector, SelectionSystem
from dartboard.evaluation.measures import MEASURES, available, headline_measure, with_distinct
from dartboard.evaluation.measures import evaluate as measured
from dartboard.evaluation.questions import Question, Triage
from dartboard.evaluation.registry import check_names, choose
from dartboard.evaluation.runner import answer as answered
from dartboard.selection import Dartboard
from dartboard.selection.kernels import Auto
from dartboard.types import Dataset

router = APIRouter(prefix="/api/dartboard", tags=["evaluate"], route_class=JsonRoute)

_SPARE = 2.0
"""Seconds of a request's time that are kept for the answer."""
_GLANCE = 0.05
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
    service: Annotated[Service, Depends(service_of)],
    key: Annotated[Key | None, Depends(reader)],
) -> Response:
    """Measure a configuration on a data set; where that takes longer than a request may, by a job."""
    await service.run(_check, service, body)
    job = service.jobs.start("evaluate", _Evaluation(service, body), key.id if key else None)
    if not body.background and await _ended(job, request, service.settings.timeout - _SPARE):
        if job.problem is not None:
            raise job.problem
        if job.result is not None:
            return answer(job.result)
        raise ApiError(503, "cancelled", "the evaluation was cancelled")
    return answer({"job_id": job.id, "status_url": f"/api/dartboard/jobs/{job.id}"}, 202)


async def _ended(job: Job, request: Request, seconds: float) -> bool:
    """Wait for the job as long as there is time and somebody to wait; whether it has ended."""
    end = time.monotonic() + seconds
    while not job.ended.is_set():
        if time.monotonic() >= end:
            return False
        if await request.is_disconnected():
            job.stop.set()
            return False
        await asyncio.sleep(_GLANCE)
    return True


def _check(service: Service, body: EvaluateRequest) -> None:
    """What can be wrong is said before anything is begun."""
    config = body.config
    check_sizes(service.settings, k=config.top_k, triage_k=config.triage_k)
    if config.triage_k < config.top_k:
        raise Invalid("triage_k must be at least top_k", field="config.triage_k")
    known = {info.name for info in _synthetic()} | set(roots_by_name(service))
    if body.dataset_name not in known:
        raise NotFound("there is no such data set: GET /api/dartboard/datasets lists them")
    for at, name in enumerate(body.metrics):
        if name == _HEADLINE:
            continue
        measure = _measure(name, config.top_k, f"metrics.{at}")
        if (measure.k or 0) > config.triage_k:
            raise Invalid("a measure looks deeper than triage_k", field=f"metrics.{at}")
    try:
        check_names(body.systems)
    except ConfigError:
        raise Invalid("systems: see the names that are allowed in /openapi.json", field="systems") from None


def _synthetic() -> list[Any]:
    return [info for info in list_datasets("\0") if info.type == "synthetic"]


def _measure(name: str, top_k: int, field: str) -> Measure:
    try:
        given = Measure.parse(name)
    except ConfigError:
        known = ", ".join((_HEADLINE, *MEASURES))
        raise Invalid(f"unknown measure: choose from {known}", field=field) from None
    return Measure(given.name, given.k or top_k)


class _Evaluation:
    """The job's task."""

    def __init__(self, service: Service, body: EvaluateRequest) -> None:
        self._service = service
        self._body = body

    def __call__(self, progress: Progress) -> dict[str, Any]:
        """Load the data set, let the systems answer, measure."""
        started = time.perf_counter()
        body, config = self._body, self._body.config

        def hear(step: str, done: int, total: int) -> None:
            progress(done, total, step)

        dataset = self._dataset(hear)
        judgements, content = Judgements.of(dataset), Content.of(dataset)
        headline = headline_measure(judgements, config.top_k)
        measures = self._measures(judgements, headline)
        asked = [one.name for one in measures.values()]
        if lacking := set(asked) - set(available(judgements, content, asked)):
            raise Invalid(f"this data set cannot answer {', '.join(sorted(lacking))}", field="metrics")
        own = self._own()
        others = choose(
            list(body.systems),
            dataset,
            judgements,
            scorer=self._scorer,
            model=lambda: self._service.engines.model,
        )
        runs, _ = answered(
            Triage(dataset, config.triage_k),
            judgements.query_ids,
            [own, *(system for system in others.systems if system.name != own.name)],
            depth=max(measure.k or 1 for measure in measures.values()),
            workers=1,
            listener=hear,
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
            "execution_time_ms": round(1000 * (time.perf_counter() - started), 3),
            "config": config.model_dump(),
            "systems": found,
            "skipped": others.skipped,
        }

    def _dataset(self, hear: Any) -> Dataset:
        return load_dataset(
            self._body.dataset_name,
            roots_by_name(self._service).get(self._body.dataset_name),
            model=self._service.engines.model,
            progress=hear,
            fetch=False,
        )

    def _own(self) -> System:
        """The configuration that was asked for, as a system."""
        config = self._body.config
        if config.reranker_type == "cosine":
            return SelectionSystem(_OWN, Dartboard(), config.sigma)
        return _ReadingTexts(config.reranker_type, config.sigma, self._scorer())

    def _scorer(self) -> PairScorer:
        try:
            return self._service.engines.pair_scorer()
        except ConfigError:
            raise Invalid(
                "the model has no token vectors: choose cosine", field="config.reranker_type"
            ) from None

    def _measures(self, judgements: Judgements, headline: Measure) -> dict[str, Measure]:
        """What is measured, by the names of the answer, in the order asked.

        Where chunks are copies of one another, a measure of relevance comes with the one that counts
        copies once.
        """
        wanted: dict[str, Measure] = {}
        for name in self._body.metrics:
            if name == _HEADLINE:
                wanted[str(headline)] = headline
                continue
            own, *distinct = with_distinct([_measure(name, self._body.config.top_k, "metrics")], judgements)
            wanted[self._name(name)] = own
            wanted.update((str(one), one) for one in distinct)
        return wanted

    def _name(self, metric: str) -> str:
        """``ndcg`` → ``ndcg@5``; measures of a whole set keep their name unless a depth was asked for."""
        given = Measure.parse(metric)
        if given.k is None and given.name in _SET_MEASURES:
            return given.name
        return str(Measure(given.name, given.k or self._body.config.top_k))


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
