"""``dartboard mine``: from a benchmark and a corpus to a data set whose labels were proved."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import JsonOption, spelled_out

if TYPE_CHECKING:
    from dartboard.mining.context_pool import PoolSettings

mine = typer.Typer(name="mine", rich_markup_mode=None)

RegistryArgument = Annotated[
    Path, typer.Argument(metavar="REGISTRY", help="registry.yaml (or .json), or the folder that holds it.")
]
CorpusOption = Annotated[
    str,
    typer.Option(
        "--corpus",
        metavar="SPEC",
        help="package:NAME[@FOLDER], folder:PATH, store:URL[#COLLECTION] or dataset:NAME.",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the data set.")]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same data set.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How many contexts are drawn for a case, beside its targets."""

    random: Annotated[int, typer.Option("--random", min=0, help="Contexts drawn at random, a case.")] = 5
    hard: Annotated[
        int, typer.Option("--hard", min=0, help="Hard negatives: the best by BM25 that are no target.")
    ] = 5
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="Nearest by meaning, and as many by Dartboard.")
    ] = 2

    def settings(self, seed: int) -> "PoolSettings":
        """The same for the library."""
        from dartboard.mining.context_pool import PoolSettings

        return PoolSettings(
            random_negatives=self.random, hard_negatives=self.hard, neighbours=self.neighbours, seed=seed
        )


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Who is asked, how fast, for how much, and what is looked for."""

    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            metavar="SPEC",
            help="answers (offline), gemini[:MODEL[@URL]], openai:MODEL[@URL], check[:JUDGE] or "
            "ensemble:A,B,C.",
        ),
    ] = "gemini"
    checks: Annotated[
        bool,
        typer.Option(
            "--checks",
            help="Let a case's executable check decide, after the judge. RUNS CODE of the registry, and "
            "with --agent what the agent wrote.",
        ),
    ] = False
    second_judge: Annotated[
        str | None,
        typer.Option("--second-judge", metavar="SPEC", help="Asked as well, for the two judges' agreement."),
    ] = None
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="SPEC", help="A chat model that solves each case, for its kernel."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on from what DIR/journal.jsonl holds.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Estimate calls and tokens; ask nobody.")] = False
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="TOKENS", min=0, help="Never use more tokens.")
    ] = None
    concurrency: Annotated[int, typer.Option(min=1, max=100, help="Calls at a time.")] = 8
    rpm: Annotated[float | None, typer.Option("--rpm", metavar="N", help="Most requests a minute.")] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="VERSION",
            help="The prompt's version: evidence-3, or seed-1, which asks for YES or NO alone and does NOT "
            "fence contexts off: orders inside one reach the judge.",
        ),
    ] = None
    max_output: Annotated[
        int | None,
        typer.Option(
            "--max-output",
            metavar="N",
            min=1,
            help="Most tokens of an answer, thoughts included; 8192 by default.",
        ),
    ] = None
    kernels: Annotated[bool, typer.Option(help="Find the sets of contexts that answer together.")] = True
    votes: Annotated[
        int | None,
        typer.Option("--votes", min=1, help="Most votes on a set; by default 1 offline and 7 for models."),
    ] = None
    seed: SeedOption = 0
    as_json: JsonOption = False


@mine.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Make a data set to measure retrieval with, from questions and your own corpus.

    Nobody's word is taken for what is relevant: a judge is shown each question with each context and says
    whether it can be answered from that alone, quoting where. The judge is judged, too: on questions whose
    right verdict is known, in every run, and its error rates stand in the data set.

    \b
    A registry is a file such as this:
      cases:
        - id: "01"
          question: "Which setting stores an agent's reply?"
          target: "google.adk.agents.LlmAgent"     # believed, not proved
          answer: "output_key"                     # for the offline judge

    \b
    Offline and free:
      pip install --no-deps google-adk==1.20.0     # what the example reads
      dartboard mine run examples/adk --corpus package:google.adk --judge answers --out mined

    \b
    With a model, and never more than two million tokens:
      dartboard mine run examples/adk --corpus package:google.adk --out mined --dry-run
      dartboard mine run examples/adk --corpus package:google.adk --out mined --budget 2000000
      dartboard mine run examples/adk --corpus package:google.adk --out mined --budget 4000000 --resume
      dartboard mine validate mined

    \b
    What it is good for:
      dartboard eval --dataset mined/retrieval_dataset.yaml --systems quick --out report
      dartboard calibrate --dataset mined/retrieval_dataset.yaml

    Every answer of a model is on disk before it is used. Press Ctrl-C, pull the plug: --resume goes on from
    there and ends with the same bytes. A model that gives no readable answer several times in a row ends the
    run with an error; those calls are no verdicts, and --resume asks them again.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@mine.command(short_help="Draw contexts, judge them, find kernels, and write the data set.")
@spelled_out
def run(
    registry: RegistryArgument,
    corpus: CorpusOption,
    out: OutOption,
    *,
    drawing: Drawing,
    judging: Judging,
) -> None:
    """Show a judge each question with contexts of a corpus, find kernels, and write the data set.

    Drawn are a question's targets, random contexts, and near misses. Then come controls: no context at all,
    planted answers, strangers' texts, texts stuffed with the question's words, texts that claim to be the
    answer. Then every context alone, then sets of contexts: what is missing is searched for and added until
    the judge can answer, and what is not needed is left out. A package is read and never imported.

    \b
    In DIR:
      retrieval_dataset.yaml   pairs with verdicts and evidence, kernels, error rates
      beir/, qrels.txt         the same for other tools, with facets
      raw.jsonl                the contexts that were drawn; kept while registry and corpus stay as they are
      journal.jsonl            every answer of a model

    \b
    Examples:
      dartboard mine run examples/adk --corpus package:google.adk --judge answers --checks --out mined
      dartboard mine run cases.yaml --corpus folder:docs --out mined --dry-run
      dartboard mine run cases.yaml --corpus folder:docs --budget 2000000 --rpm 60 --out mined
      dartboard mine run cases.yaml --corpus folder:docs --out mined --resume \\
          --judge openai:qwen3@http://localhost:11434/v1

    \b
    Environment:
      GEMINI_API_KEY, OPENAI_API_KEY    for the endpoints that want one; --dry-run needs none
    """
    from dartboard.cli.mine_run import run_all

    run_all(registry, corpus, out, drawing.settings(judging.seed), judging)


@mine.command(hidden=True)
@spelled_out
def extract(
    registry: RegistryArgument,
    corpus: CorpusOption,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the raw candidates.")
    ] = Path("raw.jsonl"),
    drawing: Drawing,
    seed: SeedOption = 0,
) -> None:
    """Draw contexts for every question; label nothing (tools/extract_retrieval_data.py)."""
    from dartboard.cli.console import results
    from dartboard.cli.mine_run import extracted

    raw, _ = extracted(registry, corpus, out, drawing.settings(seed))
    contexts = sum(len(pool.contexts) for pool in raw.pools)
    results().print(
        f"{len(raw.pools)} questions with {contexts} contexts of {raw.head.corpus} are in {out}.",
        soft_wrap=True,
        markup=False,
    )


@mine.command(hidden=True)
@spelled_out
def judge(
    raw: Annotated[Path, typer.Argument(metavar="RAW", help="Raw candidates.")],
    out: OutOption,
    *,
    corpus: Annotated[
        str | None, typer.Option("--corpus", metavar="SPEC", help="Where they were drawn from, for kernels.")
    ] = None,
    judging: Judging,
) -> None:
    """Label raw candidates and find kernels (tools/validate_retrieval_data.py)."""
    from dartboard.cli.mine_run import judged, same_corpus
    from dartboard.mining.candidates import read_candidates

    found = read_candidates(raw)
    judged(found, same_corpus(found, corpus) if corpus else None, out, judging)


@mine.command(short_help="Check a mined data set, and list all that is wrong with it.")
def validate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A retrieval_dataset.yaml, under any name, or its folder.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check a mined data set, and list all that is wrong with it, by line.

    Its schema, what occurs twice, whether the evidence really stands in its context, whether kernels are
    among the positives, whether the judge failed its controls. Exit code 1 on errors; warnings are worth a
    look and stop nothing.

    \b
    Examples:
      dartboard mine validate mined
      dartboard mine validate mined/retrieval_dataset.yaml --json
    """
    from dataclasses import asdict

    from dartboard.cli.console import results
    from dartboard.cli.mine_view import draw_problems
    from dartboard.mining.dataset_writer import FILE
    from dartboard.mining.validation import validate as check

    path = file / FILE if file.is_dir() else file
    problems = check(path)
    errors = sum(problem.level == "error" for problem in problems)
    if as_json:
        listed = [asdict(problem) for problem in problems]
        print(json.dumps({"file": str(path), "errors": errors, "problems": listed}, indent=2))
    else:
        draw_problems(results(), path, problems)
    if errors:
        raise typer.Exit(1)
