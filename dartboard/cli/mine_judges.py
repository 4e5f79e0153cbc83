"""How ``dartboard mine`` was asked to judge: options, checked before any file is touched."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dartboard.cli.mine_options import Judges, Judging, Written
from dartboard.http_client import Patience
from dartboard.llm.call_limits import CallLimits
from dartboard.llm.chat import MOST_OUTPUT, PATIENCE
from dartboard.llm.usage import Prices
from dartboard.mining.dataset_writer import check_folder
from dartboard.mining.judges import ChatJudge, judge_by_name
from dartboard.mining.judges.base import version_of
from dartboard.mining.judges.composite_judges import close_judge, with_checks
from dartboard.mining.judges.prompts import DEFAULT_PROMPT
from dartboard.mining.pipeline import MiningSettings
from dartboard.mining.verdict_journal import check_unused

if TYPE_CHECKING:
    from dartboard.llm.chat import Chat
    from dartboard.mining.corpora.base import Corpus
    from dartboard.mining.judges.base import Judge


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(Judges, Judging, Written):
    """How to judge, as the command line was given."""

    out: Path

    @property
    def journal_path(self) -> Path:
        """Where every verdict is kept."""
        return self.journal or self.out / "journal.jsonl"

    def check(self) -> None:
        """Refuse what cannot work."""
        self.limits()
        self.settings()
        asks = self.asks()
        if self.budget is not None and self.prices is None and asks:
            raise typer.BadParameter(
                "--budget is money, which needs --prices IN,OUT for a million tokens (--budget-tokens not)"
            )
        if self.retry_unsure and not self.resume:
            raise typer.BadParameter("--retry-unsure asks again what a journal holds: give --resume, too")
        if self.out.exists() and not self.out.is_dir():
            raise typer.BadParameter(f"--out must be a folder, and {self.out} is a file")
        check_folder(self.out)
        if not self.resume and not self.dry_run:
            check_unused(self.journal_path)

    def asks(self) -> bool:
        """Whether any model is asked."""
        named = (*self.judges(None), self.agent_chat())
        for one in named:
            close_judge(one)
        return self.agent is not None or any(one is not None and version_of(one) for one in named[:2])

    def judges(self, corpus: "Corpus | None") -> "tuple[Judge, Judge | None]":
        """The judge and the second one; no code of others is run unless that was asked for."""
        kinds = [one for one in (self.judge, self.second_judge) if one]
        if not self.checks and any(_runs_code(one) for one in kinds):
            raise typer.BadParameter(
                "a judge that runs the registry's code needs --checks: use it where you trust that code"
            )
        first = self._named(self.judge, corpus)
        chosen = with_checks(first, corpus) if self.checks and not _runs_code(self.judge) else first
        return chosen, self._named(self.second_judge, corpus) if self.second_judge else None

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
        """Concurrency, rates, budgets, and when to give up."""
        return CallLimits(
            concurrency=self.concurrency,
            requests_per_minute=self.rpm,
            tokens_per_minute=self.tpm,
            budget_cost=self.budget,
            budget_tokens=self.budget_tokens,
            give_up_after=self.give_up_after,
        )

    def settings(self) -> MiningSettings:
        """Kernels and seed."""
        more = {} if self.rounds is None else {"most_rounds": self.rounds}
        return MiningSettings(kernels=self.kernels, votes=self.votes, seed=self.seed, **more)

    def names(self, judge: str) -> bool:
        """Whether a judge is asked for its own verdict: as the judge, the second one, or in an ensemble."""
        return any(judge in _members(one) for one in (self.judge, self.second_judge) if one)

    def _named(self, spec: str, corpus: "Corpus | None" = None) -> "Judge":
        patience = Patience(
            timeout=PATIENCE.timeout if self.timeout is None else self.timeout,
            longest_asked=PATIENCE.longest_asked if self.max_wait is None else self.max_wait,
        )
        return judge_by_name(
            spec,
            prompt_version=self.prompt or DEFAULT_PROMPT,
            prices=_prices(self.prices),
            patience=patience,
            max_output_tokens=self.max_output or MOST_OUTPUT,
            corpus=corpus,
            need_key=not self.dry_run,
        )


def _members(spec: str) -> list[str]:
    return [part.strip() for part in spec.strip().removeprefix("ensemble:").split(",")]


def _runs_code(spec: str) -> bool:
    return "check" in [part.partition(":")[0] for part in _members(spec)]


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
