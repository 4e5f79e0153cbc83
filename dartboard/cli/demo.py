"""``dartboard demo``: nearest neighbours, MMR and Dartboard on the same question."""

import json
import time
from typing import Annotated

import typer

from dartboard.core import DartboardConfig
from dartboard.datasets import demo as demo_corpus
from dartboard.datasets.demo import Question
from dartboard.errors import ConfigError
from dartboard.selection import MMR, Dartboard, Method, TopK
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
        _list_questions()
        return
    started = time.perf_counter()
    asked = _question(question, number)
    config, methods = _settings(k, sigma, mmr_relevance_weight or [LANGCHAIN_WEIGHT, OUR_WEIGHT])
    _run(asked, config, methods, as_json=as_json, started=started)


def _run(
    asked: Question, config: DartboardConfig, methods: list[Method], *, as_json: bool, started: float
) -> None:
    # What only a run needs is imported here: --help stays quick.
    from dartboard.cli.comparison import compare
    from dartboard.cli.demo_view import draw
    from dartboard.cli.encoding import encode_passages, load_model
    from dartboard.cli.terminal import messages, results

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


def _list_questions() -> None:
    for place, one in enumerate(demo_corpus.questions(), start=1):
        print(f"{place}  {one.text}\n   {one.wants}")
