"""The options of ``dartboard mine``; those of several commands in groups."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import JsonOption

if TYPE_CHECKING:
    from dartboard.mining.context_pool import PoolSettings

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
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same data set.")]
OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the data set.")]
FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A retrieval_dataset.yaml, under any name, or its folder.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How many contexts are drawn for a case, beside its targets."""

    random: Annotated[int, typer.Option("--random", min=0, help="Contexts drawn at random, a case.")] = 5
    hard: Annotated[
        int, typer.Option("--hard", min=0, help="Hard negatives: the best by BM25 that are no target.")
    ] = 5
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, help="Nearest by meaning, and as many by Dartboard.")
    ] = 5

    def settings(self, seed: int) -> "PoolSettings":
        """The same for the library."""
        from dartboard.mining.context_pool import PoolSettings

        return PoolSettings(
            random_negatives=self.random, hard_negatives=self.hard, neighbours=self.neighbours, seed=seed
        )


@dataclass(frozen=True, kw_only=True)
class Judges:
    """Who is asked."""

    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            metavar="SPEC",
            help="answers (offline), gemini[:MODEL[@URL]], openai:MODEL[@URL], check[:SCREEN] or "
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


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How they are asked: what is kept, how fast, for how much, and what is looked for."""

    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="Every verdict; by default journal.jsonl in DIR."),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on from what the journal holds.")] = False
    retry_unsure: Annotated[
        bool,
        typer.Option(
            "--retry-unsure", help="Ask again what got no readable answer: refused, empty, cut short."
        ),
    ] = False
    concurrency: Annotated[int, typer.Option(min=1, max=100, help="Calls at a time.")] = 8
    rpm: Annotated[float | None, typer.Option("--rpm", metavar="N", help="Most requests a minute.")] = None
    tpm: Annotated[float | None, typer.Option("--tpm", metavar="N", help="Most tokens a minute.")] = None
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="MONEY", help="Never spend more, in the currency of the prices."),
    ] = None
    budget_tokens: Annotated[
        int | None, typer.Option("--budget-tokens", metavar="N", help="Never use more tokens.")
    ] = None
    prices: Annotated[
        str | None,
        typer.Option(
            "--prices", metavar="IN,OUT", help="For a million tokens, as your provider charges them."
        ),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            metavar="VERSION",
            help="The prompt's version: evidence-2, or seed-1, which does NOT fence contexts off: "
            "orders inside one reach the judge.",
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
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="Longest wait for one answer; 300 by default."),
    ] = None
    max_wait: Annotated[
        float | None,
        typer.Option(
            "--max-wait",
            metavar="SECONDS",
            help="Longest pause that an endpoint may ask for (Retry-After); 600 by default, then the run "
            "stops.",
        ),
    ] = None
    give_up_after: Annotated[
        int | None,
        typer.Option(
            "--give-up-after",
            metavar="N",
            min=1,
            help="Stop after so many calls in a row without a readable answer; by default 10, or twice the "
            "concurrency.",
        ),
    ] = None
    kernels: Annotated[bool, typer.Option(help="Find the sets of contexts that answer together.")] = True
    rounds: Annotated[int | None, typer.Option("--rounds", min=0, help="Most expansions of a kernel.")] = None
    votes: Annotated[
        int | None,
        typer.Option("--votes", min=1, help="Most votes on a set; by default 1 offline and 7 for models."),
    ] = None
    seed: SeedOption = 0


@dataclass(frozen=True, kw_only=True)
class Written:
    """What comes out of it."""

    exports: Annotated[bool, typer.Option(help="Also write the BEIR folder and TREC's qrels.")] = True
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate calls, tokens and money; ask nobody.")
    ] = False
    as_json: JsonOption = False
