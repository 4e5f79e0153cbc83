"""``dartboard eval``: many systems on one or more data sets, with a report to look at."""

from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import DataOption, DownloadOption, load_model, spelled_out
from dartboard.cli.console import messages, progress, results, say, show
from dartboard.errors import MissingExtraError

if TYPE_CHECKING:
    from dartboard.answering.accuracy import Estimate
    from dartboard.evaluation.experiment import Outcome
    from dartboard.evaluation.runner import Listener
    from dartboard.evaluation.settings import EvaluationConfig
    from dartboard.llm.chat import Chat
    from dartboard.types import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Whether a model is asked with what each system picked, and within which limits."""

    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="MODEL",
            help="Also give each system's passages to a model and count right answers: openai:MODEL@URL …",
        ),
    ] = None
    answers_concurrency: Annotated[
        int, typer.Option("--answers-concurrency", min=1, max=100, metavar="N", help="Calls at a time.")
    ] = 4
    answers_budget: Annotated[
        int | None,
        typer.Option("--answers-budget", min=1, metavar="TOKENS", help="Never use more tokens in this run."),
    ] = None
    answers_estimate: Annotated[
        bool, typer.Option("--answers-estimate", help="Say what --answers would take, and ask nobody.")
    ] = False

    def __post_init__(self) -> None:
        if self.answers is None and (self.answers_estimate or self.answers_budget is not None):
            raise typer.BadParameter("--answers-estimate and --answers-budget belong to --answers MODEL")

    def chat(self) -> "Chat":
        """The model, which may be a name that nobody knows: an error before anything is worked out."""
        from dartboard.answering import answer_model
        from dartboard.llm.chat import PATIENCE

        return answer_model(self.answers or "", patience=PATIENCE)

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
        from dartboard.llm.call_limits import CallLimits

        journal = Path(config.output_dir) / "parts" / f"{file_name(dataset.name)}.answers.jsonl"
        with closing(self.chat()) as chat:

            def confirm(found: "Estimate") -> bool:
                _tell(found, dataset, outcome, chat.name)
                return not self.answers_estimate

            return measure_answers(
                outcome,
                dataset,
                config,
                chat,
                journal=journal,
                limits=CallLimits(concurrency=self.answers_concurrency, budget_tokens=self.answers_budget),
                confirm=confirm,
                listener=hear,
            )


@spelled_out
def evaluate(
    *,
    dataset: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A data set by name or path; may be given more than once."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the report; made where needed.")],
    systems: Annotated[
        str, typer.Option(metavar="NAMES", help="Systems or groups (quick, all), with commas between.")
    ] = "all",
    metrics: Annotated[
        str, typer.Option(metavar="NAMES", help="Measures; by default all that the data can answer.")
    ] = "",
    k: Annotated[str, typer.Option("--k", "-k", metavar="NUMBERS", help="Depths.")] = "1,3,5,10",
    reference: Annotated[
        str, typer.Option(metavar="NAME", help="The system that all others are compared with.")
    ] = "dartboard",
    data: DataOption = None,
    download: DownloadOption = False,
    triage_k: Annotated[int, typer.Option(help="Candidates that systems choose from.", min=1)] = 100,
    copies: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Near-copies of each chunk to try with; 0 for none.")
    ] = "0,1,3,5",
    sigma_sweep: Annotated[bool, typer.Option(help="Try Dartboard at many fixed sigma.")] = True,
    resamples: Annotated[int, typer.Option(help="For intervals and permutation tests.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same report.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Questions at a time; by default one a processor.", min=1)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from what --out already holds.")] = False,
    asking: AnswerOptions,
) -> None:
    """Compare systems on data sets whose answers are known.

    Every system chooses from the same candidates, the nearest by cosine; retrievers search the whole
    corpus. The report leads with the measure that suits the judgements of the data set. It has all measures
    with 95 % intervals, paired tests against one system (Holm-corrected), query-by-query wins, a sweep
    over sigma, and the same comparison with near-copies in the corpus.

    With --answers a language model is given the passages of each system, and the report says how often it
    names the known answer. What it wrote is kept in DIR: a run that is stopped never pays twice.

    \b
    Systems:
      cosine            nearest neighbours
      mmr-W             MMR, relevance weight W: mmr-0.3, mmr-0.5, ...
      dedup-T           skip what is within cosine T of a pick: dedup-0.90, ...
      pyversity-dpp     pyversity's DPP; pyversity-cover
      random, oracle    chance (ten seeds) and perfection
      dartboard         sigma from the candidates; dartboard-S fixes sigma = S
      dartboard-hybrid  a pair scorer reads the texts; dartboard-crossencoder
      dense, bm25, colbert, hybrid, hybrid:0.6, rrf
                        retrievers over all passages of the data set
      run:FILE          the TREC run file of any other retriever
      quick             all of these that need no model beside the vectors
      all               with those that read texts: a second or more a question

    \b
    In DIR: report.html (stands alone), report.md, results.json,
    per_query/, runs/ (TREC), timings.json, parts/ (for --resume).

    \b
    Examples:
      dartboard eval --dataset synthetic_clustered --systems quick --out report
      dartboard eval --dataset hotpotqa_dev200 --dataset scifact --out report
      dartboard eval --dataset mine --systems dense,bm25,colbert,hybrid --out r
      dartboard eval --dataset mine --systems quick,run:mine.trec --out report
      dartboard eval --dataset mined/retrieval_dataset.yaml --out report
      dartboard eval --dataset rgb --out report --answers openai:gpt-4.1-mini
    """
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "eval", "dartboard eval")
    from dartboard.evaluation.settings import EvaluationConfig

    config = EvaluationConfig(
        datasets=dataset,
        retrievers=_names(systems),
        metrics=_names(metrics),
        k_values=_numbers("--k", k),
        output_dir=str(out),
        triage_k=triage_k,
        reference=reference,
        seed=seed,
        resamples=resamples,
        workers=workers,
        sigma_sweep=sigma_sweep,
        copies=_numbers("--copies", copies),
    )
    if asking.answers is not None:
        asking.chat().close()
    _run(config, data, asking, download=download, resume=resume)


def _run(
    config: "EvaluationConfig",
    data: Path | None,
    asking: AnswerOptions,
    *,
    download: bool,
    resume: bool,
) -> None:
    # What only a run needs is imported here: --help stays quick.
    from dartboard.datasets import load_dataset
    from dartboard.evaluation.experiment import evaluate_dataset
    from dartboard.evaluation.report import write_report

    finished: dict[str, tuple[int, int]] = {}
    texts: dict[str, dict[str, str]] = {}
    outcomes: list[Outcome] = []
    parts = Path(config.output_dir) / "parts"
    try:
        with progress() as listen:

            def hear(step: str, done: int, total: int) -> None:
                finished[step] = (done, total)
                listen(step, done, total)

            for name in config.datasets:
                model = None if name in _WITHOUT_MODEL else load_model(messages())
                dataset = load_dataset(name, data, model, progress=listen, fetch=download, paths=True)
                texts[dataset.name] = dict(zip(dataset.query_ids, dataset.queries, strict=True))
                if asking.answers is not None:
                    asking.check(dataset)
                outcome = evaluate_dataset(dataset, config, journal_dir=parts, resume=resume, listener=hear)
                if asking.answers is not None:
                    outcome = asking.measured(outcome, dataset, config, hear)
                outcomes.append(outcome)
            page = write_report(outcomes, config, texts)
    except KeyboardInterrupt:
        said = "; ".join(f"{step}: {done} of {total}" for step, (done, total) in finished.items())
        kept = "What is finished is kept, and the same command with --resume goes on."
        say(f"Stopped ({said or 'nothing answered yet'}). {kept}")
        raise
    _show(outcomes, page)


_WITHOUT_MODEL = ("synthetic_clustered", "synthetic_query_focused")
"""Data sets whose vectors are made, not encoded."""


def _show(outcomes: "list[Outcome]", page: Path) -> None:
    from rich.table import Table

    from dartboard.evaluation.summary import headline_measures, rows, sentences, short, signed

    for outcome in outcomes:
        record = outcome.record
        show(f"\n{record['dataset']}", "bold")
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("", no_wrap=True)
        quality = record["measures"][record["headline"]["quality"]]
        more = headline_measures(record) if record["asked"] else []
        asked = [record["measures"][name] for name in more]
        for title in (quality, "95 % interval", *asked, f"against {record['reference']}", "win/tie/loss"):
            table.add_column(title, justify="right", no_wrap=title == "95 % interval")
        for row in rows(record):
            ours = row.verdict == "reference"
            against = "" if ours else f"{signed(row.difference)} {row.said}"
            counts = "" if ours else f"{row.wins}/{row.ties}/{row.losses}"
            interval = f"{short(row.low)} to {short(row.high)}"
            table.add_row(
                row.system,
                short(row.mean),
                interval,
                *(short(row.cells[name]) for name in more),
                against,
                counts,
                style="bold" if ours else "",
            )
        results().print(table)
        for sentence in sentences(record):
            show(f"- {sentence}")
        for name, reason in record["skipped"].items():
            show(f"- {name} was skipped: {reason}.")
    show(f"\nReport: {page}")


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _numbers(option: str, given: str) -> list[int]:
    try:
        return sorted({int(part) for part in _names(given)})
    except ValueError:
        raise typer.BadParameter(f"{option} takes whole numbers with commas between, got {given!r}") from None


def _tell(found: "Estimate", dataset: "Dataset", outcome: "Outcome", name: str) -> None:
    usage = found.usage
    say(
        f"{dataset.name}: {found.tasks:,} different prompts over {len(outcome.runs)} systems, "
        f"{found.known:,} answered before. {name}: about {usage.calls:,} calls, "
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out."
    )
