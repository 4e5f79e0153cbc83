"""What ``dartboard mine extract``, ``judge`` and ``run`` do, while someone is watching."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dartboard.cli.console import messages, results, warn
from dartboard.cli.mine_judges import JudgeOptions
from dartboard.cli.mine_view import cost_bar, draw_estimate, draw_outcome
from dartboard.datasets.preparation import progress_bar
from dartboard.errors import ConfigError, DartboardError, DatasetError
from dartboard.mining.benchmark_registry import load_cases
from dartboard.mining.context_pool import PoolSettings
from dartboard.mining.controls import failures
from dartboard.mining.corpora import open_corpus
from dartboard.mining.dataset_writer import write_dataset
from dartboard.mining.extractor import extract
from dartboard.mining.judges.answer_judge import is_decidable
from dartboard.mining.judges.composite_judges import close_judge
from dartboard.mining.judges.prompts import UNFENCED
from dartboard.mining.pipeline import estimate_run, mine
from dartboard.mining.validation import DOUBTFUL, validate
from dartboard.mining.verdict_journal import Journal

if TYPE_CHECKING:
    from dartboard.llm.chat import Chat
    from dartboard.mining.corpora.base import Corpus
    from dartboard.mining.dataset import Mined
    from dartboard.mining.judges.base import Judge
    from dartboard.mining.raw_candidates import RawCandidates

_SHOWN = 3


@contextmanager
def raw_file(options: JudgeOptions) -> Iterator[Path]:
    """Where a run keeps its raw candidates; a dry run leaves nothing behind."""
    if not options.dry_run:
        yield options.out / "raw.jsonl"
        return
    with tempfile.TemporaryDirectory(prefix="dartboard-mine-") as folder:
        yield Path(folder) / "raw.jsonl"


def extracted(
    registry: Path, corpus: str, out: Path, settings: PoolSettings
) -> "tuple[RawCandidates, Corpus]":
    """Raw candidates, which are also written, and the corpus that they are from."""
    cases = load_cases(registry)
    opened = _opened(corpus)
    with progress_bar() as listen:
        raw = extract(
            cases,
            opened,
            out,
            settings=settings,
            listen=lambda done, total: listen("drawing contexts", done, total),
        )
    return raw, opened


def judged(raw: "RawCandidates", corpus: "Corpus | str | None", options: JudgeOptions) -> None:
    """Judge raw candidates and write the data set, or say what that would cost.

    ``corpus`` is the one that they were drawn from, or where it is now; the candidates know where it was.
    """
    check_answers(raw, options)
    if options.prompt == UNFENCED and options.asks():
        warn(f"the prompt {UNFENCED} does not fence contexts: an order inside one reaches the judge")
    if options.agent and options.checks and any(case.check for case in raw.cases):
        warn("checks will run code that the agent wrote: do this where that is safe, such as in a container")
    opened: Corpus | None = None
    if options.kernels or options.checks:
        opened = _same_corpus(raw, corpus) if isinstance(corpus, str | None) else corpus
    judge, second = options.judges(opened)
    agent = options.agent_chat()
    with ExitStack() as stack:
        for one in (judge, second, agent):
            stack.callback(close_judge, one)
        if options.dry_run:
            _estimate(raw, judge, second, options)
        else:
            _judge(raw, opened, judge, second, agent, options)


def check_answers(raw: "RawCandidates", options: JudgeOptions) -> None:
    """The judge of answer strings needs some: warn of cases that have none, refuse if all have none."""
    if not options.names("answers"):
        return
    asked = [case for case in raw.cases if not (options.checks and case.check is not None)]
    lacking = [case.id for case in asked if not is_decidable(case)]
    advice = "give 'answer' or 'facets' in the registry, or take a judge that reads (gemini, openai:MODEL)"
    if asked and len(lacking) == len(asked) and options.judge.strip() == "answers":
        raise DatasetError(
            f"none of the {len(asked)} cases has an answer string, which is all that the judge 'answers' "
            f"looks for (a bare yes or no is none): {advice}"
        )
    if lacking:
        more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
        warn(
            f"{len(lacking)} of {len(asked)} cases have no answer string, and all that the judge 'answers' "
            f"says of them will be UNSURE: {', '.join(lacking[:_SHOWN])}{more}; {advice}"
        )


def _judge(
    raw: "RawCandidates",
    opened: "Corpus | None",
    judge: "Judge",
    second: "Judge | None",
    agent: "Chat | None",
    options: JudgeOptions,
) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    with Journal.open(options.journal_path, resume=options.resume) as journal, _told_on_stop(journal):
        if options.retry_unsure:
            again = journal.withdraw_unanswered()
            messages().print(f"{again} calls that got no readable answer are asked again.")
        with cost_bar() as listen:
            mined = mine(
                raw,
                judge,
                corpus=opened,
                second=second,
                agent=agent,
                journal=journal,
                limits=options.limits(),
                settings=options.settings(),
                listen=listen,
                run_code=options.checks,
            )
        spent = journal.usage
    file = write_dataset(mined, options.out, exports=options.exports)
    problems = validate(file)
    if options.as_json:
        from dataclasses import asdict

        print(json.dumps(_facts(mined, file) | {"usage": asdict(spent)}, indent=2))
    else:
        draw_outcome(results(), mined, file, spent)
    for told in doubts(mined):
        warn(told)
    if mined.unanswered:
        warn(
            f"{mined.unanswered} verdicts are UNSURE because no readable answer came: mend what the reasons "
            "say and run again with --resume --retry-unsure"
        )
    if failed := failures(mined.controls):
        raise DatasetError(
            f"the judge failed its controls: {'; '.join(failed)}. {file} is marked as not verified, without "
            "exports: look at its errors and reasons, and take another judge"
        )
    if any(problem.level == "error" for problem in problems):  # pragma: no cover - it was just written
        raise DatasetError(f"{file} does not stand its own check: see dartboard mine validate {file}")


def doubts(mined: "Mined") -> list[str]:
    """What speaks against the data set: it measures nothing, or its judge is wrong or was not tested."""
    told = []
    if not mined.positives:
        told.append(
            "no context is positive: nothing can be measured with this data set, so eval and calibrate are "
            "of no use. Look at the reasons of its verdicts, then change targets or answers in the registry, "
            "or the judge"
        )
    controls, insufficient = mined.controls, mined.controls.get("insufficient_targets", ())
    for name, kind in (("false_positive", "negative"), ("false_negative", "positive")):
        rate = controls[name]
        if not rate["decided"] + rate["unsure"]:
            told.append(_untested(kind, len(insufficient)))
        elif rate["decided"] and rate["rate"] > DOUBTFUL:
            told.append(
                f"the judge was wrong on {rate['errors']} of {rate['decided']} {kind} controls "
                f"({rate['rate']:.0%}): do not trust these labels; the data set lists them under 'errors'"
            )
            if kind == "positive" and not any(pair.kernels for pair in mined.pairs):
                told[-1] += (
                    ". Or targets are not enough for an answer, which only a run with kernels finds out"
                )
    return told


def _untested(kind: str, insufficient: int) -> str:
    if kind == "positive" and insufficient:
        return (
            f"no positive control counts, since the targets of {insufficient} cases are not enough for an "
            "answer: how often the judge misses one is unknown. Name all targets that an answer needs"
        )
    needs = "two cases with different targets" if kind == "negative" else "a target"
    return f"no {kind} control was asked, which needs {needs}: its error rate is unknown"


def _estimate(raw: "RawCandidates", judge: "Judge", second: "Judge | None", options: JudgeOptions) -> None:
    path = options.journal_path
    journal = Journal.open(path, resume=True) if options.resume and path.exists() else None
    try:
        steps = estimate_run(raw, judge, second=second, journal=journal, settings=options.settings())
    finally:
        if journal is not None:
            journal.close()
    if options.as_json:
        from dataclasses import asdict

        print(json.dumps({step: asdict(one) for step, one in steps.items()}, indent=2))
    else:
        draw_estimate(results(), steps, options.budget)


@contextmanager
def _told_on_stop(journal: Journal) -> Iterator[None]:
    """Say what is kept when a run is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        messages().print(
            f"Stopped. {len(journal)} verdicts are in {journal.path}; with --resume the command goes on.",
            soft_wrap=True,
            markup=False,
        )
        raise


def _same_corpus(raw: "RawCandidates", given: str | None) -> "Corpus":
    """The corpus that the candidates were drawn from; kernels search it."""
    spec = given or raw.corpus_spec
    if spec is None:
        raise ConfigError(
            "the raw candidates do not say where their corpus is: give --corpus, or --no-kernels"
        )
    from dartboard.engine.trust import foreign

    kind, _, url = spec.partition(":")
    what = foreign("store", url) if kind == "store" and not given else None
    if what is not None:
        raise ConfigError(
            f"the raw candidates name their corpus themselves: {what}. If that is right, say so by --corpus"
        )
    try:
        corpus = _opened(spec)
    except DartboardError as error:
        if given:
            raise
        raise ConfigError(
            f"the corpus of the raw candidates, {spec}, cannot be opened: {error}. If it has moved, say "
            "where it is by --corpus"
        ) from error
    if corpus.fingerprint != raw.fingerprint:
        raise DatasetError(
            f"{corpus.name} has changed since the candidates were drawn from {raw.corpus_name}: extract again"
        )
    return corpus


def _opened(spec: str) -> "Corpus":
    with messages().status(f"Reading {spec}"):
        return open_corpus(spec)


def _facts(mined: "Mined", file: Path) -> dict[str, Any]:
    return {
        "file": str(file),
        "pairs": len(mined.pairs),
        "positives": mined.positives,
        "negatives": mined.negatives,
        "unsure": mined.unsure,
        "unsure_reasons": dict(mined.unsure_reasons),
        "unanswered": mined.unanswered,
        "controls": mined.controls,
        "agreement": mined.agreement,
        "kernels": mined.kernel_statuses,
    }
