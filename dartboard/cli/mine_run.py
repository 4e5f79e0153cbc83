"""What ``dartboard mine extract``, ``judge`` and ``run`` do, while someone is watching."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dartboard.cli.mine_view import cost_bar, draw_estimate, draw_outcome
from dartboard.cli.terminal import messages, results
from dartboard.datasets.progress import progress_bar
from dartboard.errors import ConfigError, DatasetError
from dartboard.mining.budget import CallLimits, Prices
from dartboard.mining.choosing import close_judge, with_checks
from dartboard.mining.corpora import open_corpus
from dartboard.mining.extracting import PoolSettings, extract
from dartboard.mining.journal import Journal
from dartboard.mining.judges import ChatJudge, judge_by_name
from dartboard.mining.mine import MiningSettings, estimate_run, mine
from dartboard.mining.prompts import DEFAULT_PROMPT
from dartboard.mining.registry import load_cases
from dartboard.mining.validating import validate
from dartboard.mining.writing import write_dataset

if TYPE_CHECKING:
    from dartboard.mining.documents import Corpus
    from dartboard.mining.judges.chat import Chat
    from dartboard.mining.raw import RawCandidates
    from dartboard.mining.verdicts import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """How to judge, as the command line was given."""

    out: Path
    judge: str
    checks: bool
    second: str | None
    agent: str | None
    journal: Path | None
    resume: bool
    concurrency: int
    rpm: float | None
    tpm: float | None
    budget: float | None
    budget_tokens: int | None
    prices: str | None
    prompt: str | None
    kernels: bool
    rounds: int | None
    votes: int | None
    seed: int
    exports: bool
    dry_run: bool
    as_json: bool

    def judges(self, corpus: "Corpus | None") -> "tuple[Judge, Judge | None]":
        """The judge and the second one; no code of others is run unless that was asked for."""
        kinds = [one for one in (self.judge, self.second) if one]
        if not self.checks and any(_runs_code(one) for one in kinds):
            raise typer.BadParameter(
                "a judge that runs the registry's code needs --checks: use it where you trust that code"
            )
        first = self._named(self.judge)
        chosen = with_checks(first, corpus) if self.checks and not _runs_code(self.judge) else first
        return chosen, self._named(self.second) if self.second else None

    def agent_chat(self) -> "Chat | None":
        """The model that solves cases with tools."""
        if self.agent is None:
            return None
        named = self._named(self.agent)
        if not isinstance(named, ChatJudge):
            raise typer.BadParameter(
                f"--agent must be a chat model, gemini or openai:MODEL, got {self.agent}"
            )
        return named.chat

    def limits(self) -> CallLimits:
        """Concurrency, rates and budgets."""
        return CallLimits(
            concurrency=self.concurrency,
            requests_per_minute=self.rpm,
            tokens_per_minute=self.tpm,
            budget_cost=self.budget,
            budget_tokens=self.budget_tokens,
        )

    def settings(self) -> MiningSettings:
        """Kernels and seed."""
        more = {} if self.rounds is None else {"most_rounds": self.rounds}
        return MiningSettings(kernels=self.kernels, votes=self.votes, seed=self.seed, **more)

    def _named(self, spec: str) -> "Judge":
        return judge_by_name(spec, prompt_version=self.prompt or DEFAULT_PROMPT, prices=_prices(self.prices))


def extracted(registry: Path, corpus: str, out: Path, settings: PoolSettings) -> "RawCandidates":
    """Raw candidates, written and read back."""
    cases = load_cases(registry)
    opened = _opened(corpus)
    with progress_bar() as listen:
        return extract(
            cases,
            opened,
            out,
            settings=settings,
            more={"corpus": corpus},
            listen=lambda done, total: listen("drawing contexts", done, total),
        )


def judged(raw: "RawCandidates", corpus: str | None, options: JudgeOptions) -> None:
    """Judge raw candidates and write the data set, or say what that would cost."""
    opened = _same_corpus(raw, corpus) if options.kernels or options.checks else None
    judge, second = options.judges(opened)
    agent = options.agent_chat()
    with ExitStack() as stack:
        for one in (judge, second, agent):
            stack.callback(close_judge, one)
        if options.dry_run:
            _estimate(raw, judge, second, options)
        else:
            _judge(raw, opened, judge, second, agent, options)


def _judge(
    raw: "RawCandidates",
    opened: "Corpus | None",
    judge: "Judge",
    second: "Judge | None",
    agent: "Chat | None",
    options: JudgeOptions,
) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.journal or options.out / "journal.jsonl"
    with Journal.open(path, resume=options.resume) as journal, _told_on_stop(journal), cost_bar() as listen:
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
        )
        spent = journal.usage
    file = write_dataset(mined, options.out, exports=options.exports)
    problems = validate(file)
    if options.as_json:
        from dataclasses import asdict

        print(json.dumps(_facts(mined, file) | {"usage": asdict(spent)}, indent=2))
    else:
        draw_outcome(results(), mined, file, spent)
    if any(problem.level == "error" for problem in problems):  # pragma: no cover - it was just written
        raise DatasetError(f"{file} does not stand its own check: see dartboard mine validate {file}")


def _estimate(raw: "RawCandidates", judge: "Judge", second: "Judge | None", options: JudgeOptions) -> None:
    path = options.journal or options.out / "journal.jsonl"
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
    spec = given or raw.settings.get("corpus")
    if not isinstance(spec, str):
        raise ConfigError(
            "the raw candidates do not say where their corpus is: give --corpus, or --no-kernels"
        )
    corpus = _opened(spec)
    if corpus.fingerprint != raw.fingerprint:
        raise DatasetError(
            f"{corpus.name} has changed since the candidates were drawn from {raw.corpus_name}: extract again"
        )
    return corpus


def _opened(spec: str) -> "Corpus":
    with messages().status(f"Reading {spec}"):
        return open_corpus(spec)


def _runs_code(spec: str) -> bool:
    return "check" in [part.strip().partition(":")[0] for part in spec.replace("ensemble:", "").split(",")]


def _prices(given: str | None) -> Prices | None:
    if given is None:
        return None
    try:
        first, second = (float(part) for part in given.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"--prices takes two numbers, for input and output, such as 2,12; got {given!r}"
        ) from None
    return Prices(input_per_million=first, output_per_million=second)


def _facts(mined: Any, file: Path) -> dict[str, Any]:
    return {
        "file": str(file),
        "pairs": len(mined.pairs),
        "positives": sum(len(pair.positives) for pair in mined.pairs),
        "negatives": sum(len(pair.negatives) for pair in mined.pairs),
        "unsure": sum(len(pair.unsure) for pair in mined.pairs),
        "controls": mined.controls,
        "agreement": mined.agreement,
        "kernels": kernel_counts(mined),
    }


def kernel_counts(mined: Any) -> dict[str, int]:
    """How many kernels have each status."""
    from collections import Counter

    counted = Counter(pair.kernel.status for pair in mined.pairs if pair.kernel is not None)
    return dict(sorted(counted.items()))
