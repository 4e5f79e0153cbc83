"""``dartboard demo``: nearest neighbours, MMR and Dartboard on the same question."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Annotated, Any

import typer

from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import demo as demo_corpus
from dartboard.datasets.demo import Question
from dartboard.embeddings import EmbeddingModel
from dartboard.errors import ConfigError
from dartboard.explain.records import pick_records
from dartboard.selection import MMR, Dartboard, Method, TopK
from dartboard.types import Chunk, RetrievalResult
from dartboard.version import __version__

LANGCHAIN_WEIGHT = 0.5
OUR_WEIGHT = MMR().relevance_weight

_OPTIONS = {"top_k": "--k", "sigma": "--sigma", "relevance_weight": "--mmr-relevance-weight"}
"""What the library's knobs are called here; its complaints begin with their names."""


def demo(
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="What to ask, in quotes; by default ready-made question 1."),
    ] = None,
    k: Annotated[
        int, typer.Option("--k", "-k", metavar="N", help="How many passages each method picks, 1 to 20.")
    ] = 5,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", metavar="N", help="Ask ready-made question N, instead of your own."),
    ] = None,
    mmr_relevance_weight: Annotated[
        list[float] | None,
        typer.Option(
            metavar="WEIGHT",
            help="Weight of relevance in MMR, 0 to 1; may be given more than once. "
            f"By default {LANGCHAIN_WEIGHT} (LangChain's default) and {OUR_WEIGHT} (ours).",
        ),
    ] = None,
    sigma: Annotated[
        str,
        typer.Option(
            metavar="auto|NUMBER",
            help="Spread of a question around what it means, 0.00001 to 10; auto is by the candidates.",
        ),
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    list_questions: Annotated[
        bool, typer.Option("--list-questions", help="List the ready-made questions.")
    ] = False,
) -> None:
    """See which passages nearest neighbours, MMR and Dartboard pick for one question.

    The corpus is 150 short passages from the knowledge base of an invented team that runs a message
    queue. As in real ones, the important things are written down many times over. The first run
    encodes them (some seconds, on the CPU, no download) and keeps the vectors; later runs take them from
    the cache. Every number shown is computed in this run.

    \b
    What you see:
      1. the picks side by side, with repeats marked
      2. Dartboard's picks one by one: what each adds, and what it stands for
      3. a summary: themes, facts, similarity, coverage, time

    \b
    Examples:
      dartboard demo
      dartboard demo "Why do messages arrive late?"
      dartboard demo --number 2 --k 8
      dartboard demo --mmr-relevance-weight 0.3 --mmr-relevance-weight 0.9
      dartboard demo --json | python -m json.tool

    \b
    Environment:
      DARTBOARD_CACHE   folder for the vectors, instead of your cache folder
      NO_COLOR          set it for no colours;  COLUMNS  sets the width
    """
    if list_questions:
        for place, one in enumerate(demo_corpus.questions(), start=1):
            print(f"{place}  {one.text}\n   {one.wants}")
        return
    started = time.perf_counter()
    asked = _question(question, number)
    config, methods = _settings(k, sigma, mmr_relevance_weight or [LANGCHAIN_WEIGHT, OUR_WEIGHT])
    _run(asked, config, methods, as_json=as_json, started=started)


def _run(
    asked: Question, config: DartboardConfig, methods: list[Method], *, as_json: bool, started: float
) -> None:
    # What only a run needs is imported here: --help stays quick.
    from dartboard.cli.common_options import load_model
    from dartboard.cli.console import messages, results
    from dartboard.cli.demo_view import draw, encode_passages

    model = load_model(messages())
    vectors, known = encode_passages(model, demo_corpus.texts(), messages())
    comparison = compare(asked.text, demo_corpus.chunks(vectors), methods, config=config, model=model)
    seconds = time.perf_counter() - started
    if as_json:
        summary = {
            "question": comparison.question,
            "sigma": {"value": comparison.sigma, "source": comparison.sigma_source},
            "methods": [outcome.as_dict() for outcome in comparison.outcomes],
            "candidates": comparison.candidates,
            "corpus": {"passages": len(vectors), "from_cache": known},
            "model": model.name,
            "dartboard": __version__,
            "seconds": seconds,
        }
        print(json.dumps(summary, indent=2))
        return
    draw(results(), asked, comparison, passages=len(vectors), known=known, seconds=seconds)


def _question(given: str | None, number: int | None) -> Question:
    ready = demo_corpus.questions()
    if given is not None and number is not None:
        raise typer.BadParameter("a question and --number exclude each other: give one of them")
    if given is not None:
        if not given.strip():
            raise typer.BadParameter(
                'the question is empty: ask something, e.g. dartboard demo "Why is it slow?"'
            )
        return next((one for one in ready if one.text == given.strip()), Question(given.strip()))
    if number is not None and not 1 <= number <= len(ready):
        raise typer.BadParameter(f"--number must be in 1 to {len(ready)}, got {number}: see --list-questions")
    return ready[(number or 1) - 1]


def _settings(k: int, sigma: str, weights: list[float]) -> tuple[DartboardConfig, list[Method]]:
    try:
        config = DartboardConfig(sigma=_sigma(sigma), top_k=k, reranker_type="cosine")  # type: ignore[arg-type]
        mmr = [MMR(relevance_weight=weight) for weight in dict.fromkeys(weights)]
    except ConfigError as error:
        knob, _, complaint = str(error).partition(" ")
        raise typer.BadParameter(f"{_OPTIONS.get(knob, knob)} {complaint}") from error
    return config, [TopK(), *mmr, Dartboard()]


def _sigma(given: str) -> float | str:
    """A number where it is one; what else it is, the configuration judges."""
    try:
        return float(given)
    except ValueError:
        return given


RUNS = 5
"""A selection takes a millisecond or two; the best of so many is what the machine can do."""

_RECORDED = ("rank", "similarity", "gain", "coverage", "stands_for")
_CONFIGURED = frozenset(knob.name for knob in fields(DartboardConfig))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One passage of a set, and what it brought; ``stands_for`` has its own id in it."""

    rank: int
    chunk_id: str
    theme: str
    base: str
    similarity: float
    gain: float
    coverage: float
    stands_for: list[str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one method chose. ``bound``: no set as large covers more than ``coverage / bound``."""

    name: str
    parameters: dict[str, Any]
    picks: list[Pick]
    bound: float
    milliseconds: float

    @property
    def themes(self) -> int:
        """How many subjects the picks touch, by the corpus's own labels."""
        return len({pick.theme for pick in self.picks})

    @property
    def facts(self) -> int:
        """How many picks there are when rewordings of one passage count once."""
        return len({pick.base for pick in self.picks})

    @property
    def similarities(self) -> list[float]:
        """How close each pick is to the question."""
        return [pick.similarity for pick in self.picks]

    @property
    def coverage(self) -> float:
        """The share of what all candidates cover, by Dartboard's objective."""
        return self.picks[-1].coverage

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self) | {
            "themes": self.themes,
            "facts": self.facts,
            "mean_similarity": fmean(self.similarities),
            "weakest_similarity": min(self.similarities),
            "coverage": self.coverage,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question, one pool of candidates and one σ; an outcome a method, in the order given."""

    question: str
    sigma: float
    sigma_source: str
    candidates: int
    outcomes: list[Outcome]


def compare(
    question: str,
    corpus: Sequence[Chunk],
    methods: Sequence[Method],
    *,
    config: DartboardConfig,
    model: EmbeddingModel,
) -> Comparison:
    """Let every method answer the question from the same candidates."""
    retriever = DartboardRetriever(config, model)
    outcomes = []
    for method in methods:
        results = [retriever.search(question, corpus, method=method) for _ in range(RUNS)]
        outcomes.append(_outcome(method, results))
        facts = results[0].metadata
    return Comparison(
        question=question,
        sigma=facts["sigma"],
        sigma_source=facts["sigma_source"],
        candidates=facts["candidates"],
        outcomes=outcomes,
    )


def _outcome(method: Method, results: Sequence[RetrievalResult]) -> Outcome:
    facts = results[0].metadata
    return Outcome(
        name=method.name,
        parameters={key: value for key, value in facts["config"].items() if key not in _CONFIGURED},
        picks=[
            Pick(
                chunk_id=chunk.id,
                theme=chunk.metadata["theme"],
                base=chunk.metadata["base"],
                text=chunk.text,
                **{name: record[name] for name in _RECORDED},
            )
            for chunk, record in zip(results[0].chunks, pick_records(results[0]), strict=True)
        ],
        bound=facts["bound"],
        milliseconds=1000 * min(result.metadata["seconds"]["select"] for result in results),
    )
