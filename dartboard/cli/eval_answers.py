"""``dartboard eval --answers MODEL``: ask a model with what each system picked; say first what it takes."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dartboard.evaluation.experiment import Outcome
    from dartboard.evaluation.runner import Listener
    from dartboard.evaluation.settings import EvaluationConfig
    from dartboard.llm.limits import CallLimits
    from dartboard.llm.streaming import StreamingChat
    from dartboard.mining.calls import Estimate
    from dartboard.types import Dataset

AnswersOption = Annotated[
    str | None,
    typer.Option(
        "--answers",
        metavar="MODEL",
        help="Also give each system's passages to a model and count right answers: openai:MODEL@URL …",
    ),
]
AnswersConcurrencyOption = Annotated[
    int, typer.Option("--answers-concurrency", min=1, max=100, metavar="N", help="Calls at a time.")
]
AnswersBudgetOption = Annotated[
    int | None,
    typer.Option("--answers-budget", min=1, metavar="TOKENS", help="Never use more tokens in this run."),
]
AnswersEstimateOption = Annotated[
    bool, typer.Option("--answers-estimate", help="Say what --answers would take, and ask nobody.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Who is asked, within which limits."""

    spec: str
    limits: "CallLimits"
    only_estimate: bool

    def check(self, dataset: "Dataset") -> None:
        """Complain of a data set without known answers before anything is worked out."""
        from dartboard.answering.accuracy import plan_of

        plan_of(dataset, {}, dataset.query_ids, 1)

    def measured(
        self, outcome: "Outcome", dataset: "Dataset", config: "EvaluationConfig", hear: "Listener"
    ) -> "Outcome":
        """The outcome with the measure; what is paid for stays in the folder of the report."""
        from dartboard.answering.accuracy import measure_answers
        from dartboard.evaluation.journal import file_name

        journal = Path(config.output_dir) / "parts" / f"{file_name(dataset.name)}.answers.jsonl"
        with closing(_chat(self.spec)) as chat:

            def told(found: "Estimate") -> bool:
                _tell(found, dataset, outcome, chat.name)
                return not self.only_estimate

            return measure_answers(
                outcome,
                dataset,
                config,
                chat,
                journal=journal,
                limits=self.limits,
                told=told,
                listener=hear,
            )


def answer_options(
    spec: str | None, concurrency: int, budget: int | None, *, only_estimate: bool
) -> AnswerOptions | None:
    """What the flags ask for; None where no model is named."""
    if spec is None:
        if only_estimate or budget is not None:
            raise typer.BadParameter("--answers-estimate and --answers-budget belong to --answers MODEL")
        return None
    from dartboard.llm.limits import CallLimits

    _chat(spec).close()
    return AnswerOptions(
        spec=spec,
        limits=CallLimits(concurrency=concurrency, budget_tokens=budget),
        only_estimate=only_estimate,
    )


def _chat(spec: str) -> "StreamingChat":
    from dartboard.answering import answer_model
    from dartboard.llm.chat import PATIENCE

    return answer_model(spec, patience=PATIENCE)


def _tell(found: "Estimate", dataset: "Dataset", outcome: "Outcome", name: str) -> None:
    from dartboard.cli.terminal import messages

    usage = found.usage
    systems = len(outcome.runs)
    messages().print(
        f"{dataset.name}: {found.tasks:,} different prompts over {systems} systems, {found.known:,} answered "
        f"before. {name}: about {usage.calls:,} calls, {usage.input_tokens:,} tokens in, "
        f"{usage.output_tokens:,} out.",
        soft_wrap=True,
        markup=False,
        emoji=False,
    )
