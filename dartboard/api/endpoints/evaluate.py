"""``POST /evaluate``: how good is a configuration on a data set whose answers are known; ``/datasets``: what
there is to measure with; ``/questions``: what to ask the demo corpus.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import AliasChoices, BaseModel, Field

from dartboard.api.authentication import READ
from dartboard.api.endpoints.admin import TAKES_LONGER, JobOrAnswer
from dartboard.api.endpoints.retrieve import elapsed_ms
from dartboard.api.errors import Invalid, NotFound
from dartboard.api.jobs import Progress
from dartboard.api.schemas import Count, Listed, RequestModel, Sigma, at_most, json_body
from dartboard.api.service import Service, ServiceDep, in_thread
from dartboard.config import RerankerType
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import demo, load_dataset
from dartboard.datasets.catalogue import ALIASES, data_root, find_datasets, list_datasets
from dartboard.embeddings.base import PairScorer
from dartboard.evaluation import Content, Judgements, Measure, Scores, System
from dartboard.evaluation.baselines import KnownVector, SelectionSystem
from dartboard.evaluation.measures import MEASURES, NEEDS_A_MODEL, available, headline_measure, with_distinct
from dartboard.evaluation.measures import evaluate as measured
from dartboard.evaluation.questions import Question, Triage
from dartboard.evaluation.registry import check_names, choose
from dartboard.evaluation.runner import answer as answered
from dartboard.selection import Dartboard
from dartboard.selection.kernel import Auto

_SYSTEM = (
    r"^(quick|cosine|random|oracle|dense|bm25|colbert|hybrid|rrf"
    r"|pyversity-(dpp|cover)|(mmr|dedup)-[0-9]*\.?[0-9]+"
    r"|dartboard(-hybrid|-crossencoder|-[0-9]*\.?[0-9]+)?)$"
)
"""No request names a file or a model: of all systems, those with a path are left out."""
ShortName = Annotated[str, Field(min_length=1, max_length=40)]
SystemName = Annotated[str, Field(max_length=40, pattern=_SYSTEM)]


class EvaluateConfig(RequestModel):
    """What is evaluated."""

    sigma: Sigma = "auto"
    k: Count = Field(5, validation_alias=AliasChoices("top_k", "k"), serialization_alias="top_k")
    triage_k: Count = 100
    reranker: RerankerType = Field(
        "cosine",
        validation_alias=AliasChoices("reranker_type", "reranker"),
        serialization_alias="reranker_type",
    )


class EvaluateRequest(RequestModel):
    """A data set, a configuration, and what to measure."""

    dataset_name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A name that `GET /datasets` lists."
    )
    config: EvaluateConfig = Field(default_factory=lambda: EvaluateConfig.model_validate({}))
    metrics: Listed[ShortName] = Field(
        ["headline", "ndcg", "precision", "recall", "diversity"],
        min_length=1,
        max_length=30,
        description=f"Measures, at `k` unless they say so (`ndcg@10`): {', '.join(MEASURES)}; `headline` "
        "is the one that suits the judgements of the data set. Where passages are copies of one another, the "
        "answer also has `distinct_precision` …, which count copies once.",
    )
    systems: Listed[SystemName] = Field(
        [],
        max_length=20,
        description="Others to compare with: cosine, mmr-0.7, dedup-0.90, random, oracle, dartboard-0.09 …; "
        "over the whole corpus dense, bm25, colbert, hybrid, rrf.",
    )
    background: bool = Field(False, description="Whether to answer at once with a job.")


class EvaluateResponse(BaseModel):
    """What was measured."""

    dataset: str
    metrics: dict[str, float] = Field(description="The mean of each measure over the queries.")
    headline: str = Field(description="The measure that suits the judgements of the data set.")
    num_queries: int
    execution_time_ms: float
    config: dict[str, Any]
    systems: dict[str, dict[str, float]] = Field(description="The same of the systems to compare with.")
    skipped: dict[str, str] = Field(description="Systems that cannot be run on this data set, and why.")


class DatasetEntry(BaseModel):
    """A data set that is there."""

    name: str
    num_chunks: int
    num_queries: int
    type: Literal["synthetic", "real"]
    format: str
    splits: list[str]
    usable: bool


class DatasetList(BaseModel):
    """The data sets that are there, synthetic ones first."""

    datasets: list[DatasetEntry]


class DemoQuestion(BaseModel):
    """A question to the demo corpus, and what a good set of passages covers."""

    text: str
    wants: str


class DemoQuestions(BaseModel):
    """Questions to begin with, the main one first."""

    questions: list[DemoQuestion]


router = APIRouter(prefix="/api/dartboard", tags=["evaluate"], dependencies=READ)
_OWN = "configured"
_HEADLINE = "headline"
_SET_MEASURES = frozenset(
    name for name, kind in MEASURES.items() if kind.needs in ("vectors", "clusters")
) | {"distinct_share"}
"""Measures of a whole answer, which the specification names without a depth."""


@router.post("/evaluate", operation_id="evaluate", response_model=EvaluateResponse, responses=TAKES_LONGER)
async def evaluate(
    service: ServiceDep,
    job: Annotated[JobOrAnswer, Depends()],
    body: Annotated[EvaluateRequest, json_body(EvaluateRequest)],
) -> Any:
    """Measure a configuration on a data set; where that takes longer than a request may, by a job."""
    await service.searches.run(_check, service, body)
    return await job.run("evaluate", partial(_evaluate, service, body), body.background)


@router.get("/datasets", operation_id="list_datasets")
@in_thread
def datasets(service: ServiceDep) -> DatasetList:
    """List the data sets that can be evaluated on, with their sizes; saved cases are among them."""
    roots = roots_by_name(service)
    cases = service.settings.home / "cases"
    saved = [one for one in _sizes(cases) if one.type == "real" and roots.get(one.name) == cases]
    return DatasetList(datasets=[*_sizes(data_root()), *saved])


@router.get("/questions", operation_id="demo_questions")
async def questions() -> DemoQuestions:
    """Questions that the demo corpus was made for."""
    return DemoQuestions(questions=[DemoQuestion(text=one.text, wants=one.wants) for one in demo.questions()])


def roots_by_name(service: Service) -> dict[str, Path]:
    """The folder of every data set that is there: that of data sets, then that of saved cases."""
    found: dict[str, Path] = {}
    for root in (data_root(), service.settings.home / "cases"):
        for entry in find_datasets(root):
            found.setdefault(entry.name, root)
    return found


def _sizes(root: Path) -> tuple[DatasetEntry, ...]:
    changed = tuple((str(entry.path), entry.path.stat().st_mtime_ns) for entry in find_datasets(root))
    return _counted(root, changed)


@lru_cache(maxsize=8)
def _counted(root: Path, changed: object) -> tuple[DatasetEntry, ...]:
    """Sizes are counted once: a corpus may have millions of lines. Where files lie is not told."""
    return tuple(
        DatasetEntry(
            name=info.name,
            num_chunks=info.num_chunks,
            num_queries=info.num_queries,
            type=info.type,
            format=info.format,
            splits=list(info.splits),
            usable=info.problem is None,
        )
        for info in list_datasets(root)
    )


def _check(service: Service, body: EvaluateRequest) -> None:
    """What can be wrong is said before anything is begun."""
    config = body.config
    at_most("config.k", config.k, service.settings.k)
    at_most("config.triage_k", config.triage_k, service.settings.triage_k)
    if config.triage_k < config.k:
        raise Invalid("triage_k must be at least k", field="config.triage_k")
    synthetic = {info.name for info in list_datasets("\0") if info.type == "synthetic"}
    known = synthetic | set(roots_by_name(service))
    if body.dataset_name not in known and ALIASES.get(body.dataset_name, ("",))[0] not in known:
        raise NotFound("there is no such data set: GET /api/dartboard/datasets lists them")
    for at, name in enumerate(body.metrics):
        if name != _HEADLINE and (_measure(name, config.k)[1].k or 0) > config.triage_k:
            raise Invalid("a measure looks deeper than triage_k", field=f"metrics.{at}")
    check_names(body.systems)


def _measure(name: str, k: int) -> tuple[str, Measure]:
    """What the answer calls a measure, and the measure.

    ``ndcg`` → ``ndcg@5``; measures of a whole set keep their name unless a depth was asked for.
    """
    given = Measure.parse(name)
    measure = Measure(given.name, given.k or k)
    return given.name if given.k is None and given.name in _SET_MEASURES else str(measure), measure


def _evaluate(service: Service, body: EvaluateRequest, progress: Progress) -> dict[str, Any]:
    """The job's task: load the data set, let the systems answer, measure."""
    started = time.perf_counter()
    config = body.config

    def listen(step: str, done: int, total: int | None) -> None:
        progress(done, total or 0, step)

    roots = roots_by_name(service)
    dataset = load_dataset(
        body.dataset_name,
        roots.get(body.dataset_name) or roots.get(ALIASES.get(body.dataset_name, ("",))[0]),
        model=service.engines.model,
        progress=listen,
        fetch=False,
    )
    judgements, content = Judgements.of(dataset), Content.of(dataset)
    headline = headline_measure(judgements, config.k)
    measures = _measures(body, judgements, headline)
    asked = [one.name for one in measures.values()]
    if "answer" in asked:
        raise Invalid(NEEDS_A_MODEL, field="metrics")
    if lacking := set(asked) - set(available(judgements, content, asked)):
        raise Invalid(f"this data set cannot answer {', '.join(sorted(lacking))}", field="metrics")
    own: System = (
        SelectionSystem(_OWN, Dartboard(), config.sigma)
        if config.reranker == "cosine"
        else _ReadingTexts(config.reranker, config.sigma, service.engines.pair_scorer())
    )
    others = choose(
        list(body.systems),
        dataset,
        judgements,
        scorer=service.engines.pair_scorer,
        model=lambda: service.engines.model,
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
        "config": config.model_dump(by_alias=True),
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
        name, measure = _measure(metric, body.config.k)
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
