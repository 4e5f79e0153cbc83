"""What ``dartboard mine run`` does, while someone is watching."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from dartboard.cli.console import messages, results, warn
from dartboard.cli.mine_view import cost_bar, draw_estimate, draw_outcome
from dartboard.datasets.mined import plain
from dartboard.datasets.preparation import progress_bar
from dartboard.errors import DatasetError
from dartboard.llm.call_limits import CallLimits
from dartboard.llm.chat import MOST_OUTPUT
from dartboard.llm.journal import Journal, check_unused
from dartboard.mining.candidates import extract, head_of, read_candidates
from dartboard.mining.context_pool import PoolSettings
from dartboard.mining.controls import failures
from dartboard.mining.corpora import open_corpus
from dartboard.mining.dataset_writer import check_folder, write_dataset
from dartboard.mining.judges import ChatJudge, CheckJudge, judge_by_name
from dartboard.mining.judges.answer_judge import is_decidable
from dartboard.mining.judges.base import version_of
from dartboard.mining.judges.ensemble import close_judge
from dartboard.mining.judges.partial_solution import PartialSolution
from dartboard.mining.judges.prompts import DEFAULT_PROMPT, UNFENCED
from dartboard.mining.pipeline import MiningSettings, estimate_run, mine, unanswered, unsure_reasons
from dartboard.mining.registry import load_cases
from dartboard.mining.validation import DOUBTFUL

if TYPE_CHECKING:
    from dartboard.cli.mine import Judging
    from dartboard.datasets.mined import Mined
    from dartboard.llm.chat import CompletionModel
    from dartboard.mining.candidates import RawCandidates
    from dartboard.mining.corpora.base import Corpus
    from dartboard.mining.judges.base import Judge

_SHOWN = 3


def run_all(registry: Path, corpus: str, out: Path, settings: PoolSettings, options: "Judging") -> None:
    """Draw and judge; the contexts that were drawn before are taken where nothing has changed."""
    check(out, options)
    with ExitStack() as stack:
        folder = out
        if options.dry_run and not (out / "raw.jsonl").exists():
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="dartboard-mine-")))
        raw, opened = extracted(registry, corpus, folder / "raw.jsonl", settings)
        judged(raw, opened, out, options)


def extracted(
    registry: Path, corpus: str, out: Path, settings: PoolSettings
) -> "tuple[RawCandidates, Corpus]":
    """Raw candidates, which are also written, and the corpus that they are from."""
    cases = load_cases(registry)
    with messages().status(f"Reading {corpus}"):
        opened = open_corpus(corpus)
        head = head_of(cases, opened, settings)
    if out.exists():
        known = read_candidates(out)
        if known.head == head:
            return known, opened
    with progress_bar() as listen:
        raw = extract(
            cases,
            opened,
            out,
            settings=settings,
            listen=lambda done, total: listen("drawing contexts", done, total),
        )
    return raw, opened


def same_corpus(raw: "RawCandidates", spec: str) -> "Corpus":
    """The corpus that the candidates were drawn from; kernels search it."""
    with messages().status(f"Reading {spec}"):
        corpus = open_corpus(spec)
    if corpus.fingerprint != raw.head.fingerprint:
        raise DatasetError(
            f"{corpus.name} is not what the candidates were drawn from, {raw.head.corpus}, or has changed: "
            "extract again"
        )
    return corpus


def check(out: Path, options: "Judging") -> None:
    """Refuse what cannot work before anything is read."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"--out must be a folder, and {out} is a file")
    check_folder(out)
    if not options.resume and not options.dry_run:
        check_unused(out / "journal.jsonl")
    _limits(options)
    for spec in filter(None, (options.judge, options.second_judge)):
        if "check" in [part.strip().partition(":")[0] for part in _members(spec)] and not options.checks:
            raise typer.BadParameter(
                "a judge that runs the registry's code needs --checks: use it where you trust that code"
            )
        close_judge(_judge_named(spec, options, None))


def judged(raw: "RawCandidates", corpus: "Corpus | None", out: Path, options: "Judging") -> None:
    """Judge raw candidates and write the data set, or say what that would take."""
    check(out, options)
    _check_answers(raw, options)
    judge = _judge_named(options.judge, options, corpus)
    if options.checks and not options.judge.strip().startswith("check"):
        judge = CheckJudge(judge, PartialSolution(corpus))
    second = _judge_named(options.second_judge, options, corpus) if options.second_judge else None
    agent = _agent(options)
    if options.prompt == UNFENCED and version_of(judge):
        warn(f"the prompt {UNFENCED} does not fence contexts: an order inside one reaches the judge")
    if agent is not None and options.checks and any(case.check for case in raw.cases):
        warn("checks will run code that the agent wrote: do this where that is safe, such as in a container")
    settings = MiningSettings(kernels=options.kernels, votes=options.votes, seed=options.seed)
    with ExitStack() as stack:
        stack.callback(close_judge, judge)
        if second is not None:
            stack.callback(close_judge, second)
        path = out / "journal.jsonl"
        if options.dry_run:
            journal = None
            if options.resume and path.exists():
                journal = stack.enter_context(Journal.open(path, resume=True))
            steps = estimate_run(raw, judge, corpus=corpus, second=second, journal=journal, settings=settings)
            if options.as_json:
                print(json.dumps({step: asdict(one) for step, one in steps.items()}, indent=2))
            else:
                draw_estimate(results(), steps, options.budget)
            return
        out.mkdir(parents=True, exist_ok=True)
        journal = stack.enter_context(Journal.open(path, resume=options.resume))
        stack.enter_context(_told_on_stop(journal))
        with cost_bar() as listen:
            mined = mine(
                raw,
                judge,
                corpus=corpus,
                second=second,
                agent=agent,
                journal=journal,
                limits=_limits(options),
                settings=settings,
                listen=listen,
                run_code=options.checks,
            )
        _tell(mined, write_dataset(mined, out), journal, options)


def doubts(mined: "Mined") -> list[str]:
    """What speaks against the data set: it measures nothing, or its judge is wrong or was not tested."""
    told = []
    if not mined.positives:
        told.append(
            "no context is positive: nothing can be measured with this data set. Look at the reasons of its "
            "verdicts, then change targets or answers in the registry, or the judge"
        )
    controls = mined.controls
    if controls is None:  # pragma: no cover - every run has them
        return told
    kinds = {"negative": controls.false_positive, "positive": controls.false_negative}
    for kind, rate in kinds.items():
        if not rate.decided + rate.unsure:
            needs = "two cases with different targets" if kind == "negative" else "a target that is enough"
            told.append(f"no {kind} control was asked, which needs {needs}: its error rate is unknown")
        elif rate.rate is not None and rate.rate > DOUBTFUL:
            told.append(
                f"the judge was wrong on {rate.errors} of {rate.decided} {kind} controls ({rate.rate:.0%}): "
                "do not trust these labels; the data set lists them under 'errors'"
            )
    return told


def _tell(mined: "Mined", file: Path, journal: Journal, options: "Judging") -> None:
    if options.as_json:
        controls = None if mined.controls is None else plain(mined)["controls"]
        facts = {
            "file": str(file),
            "pairs": len(mined.pairs),
            "positives": mined.positives,
            "negatives": mined.negatives,
            "unsure": mined.unsure,
            "unsure_reasons": unsure_reasons(mined),
            "unanswered": unanswered(mined),
            "controls": controls,
            "agreement": plain(mined).get("agreement"),
            "kernels": mined.kernel_statuses,
            "usage": asdict(journal.usage),
        }
        print(json.dumps(facts, indent=2))
    else:
        draw_outcome(results(), mined, file, journal.usage)
    for told in doubts(mined):
        warn(told)
    if count := unanswered(mined):
        warn(f"{count} contexts are UNSURE because no readable answer came: --resume asks for them again")
    if failed := failures(mined.controls):
        raise DatasetError(
            f"the judge failed its controls: {'; '.join(failed)}. {file} is marked as not verified, without "
            "exports: look at its errors and reasons, and take another judge"
        )


def _check_answers(raw: "RawCandidates", options: "Judging") -> None:
    """The judge of answer strings needs some: warn of cases that have none, refuse if all have none."""
    specs = [spec for spec in (options.judge, options.second_judge) if spec]
    if not any("answers" in _members(spec) for spec in specs):
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


def _members(spec: str) -> list[str]:
    return [part.strip() for part in spec.strip().removeprefix("ensemble:").split(",")]


def _judge_named(spec: str, options: "Judging", corpus: "Corpus | None") -> "Judge":
    return judge_by_name(
        spec,
        prompt_version=options.prompt or DEFAULT_PROMPT,
        max_output_tokens=options.max_output or MOST_OUTPUT,
        corpus=corpus,
        need_key=not options.dry_run,
    )


def _agent(options: "Judging") -> "CompletionModel | None":
    """The model that solves cases with tools."""
    if options.agent is None:
        return None
    named = _judge_named(options.agent, options, None)
    if not isinstance(named, ChatJudge):
        raise typer.BadParameter(f"--agent must be a chat model, gemini or openai:MODEL, got {options.agent}")
    return named.chat


def _limits(options: "Judging") -> CallLimits:
    return CallLimits(
        concurrency=options.concurrency,
        requests_per_minute=options.rpm,
        budget_tokens=options.budget,
    )


@contextmanager
def _told_on_stop(journal: Journal) -> Iterator[None]:
    """Say what is kept when a run is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        messages().print(
            f"Stopped. {len(journal)} answers are in {journal.path}; with --resume the command goes on.",
            soft_wrap=True,
            markup=False,
        )
        raise
