"""The options of ``dartboard mine``."""

from pathlib import Path
from typing import Annotated

import typer

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
RandomOption = Annotated[int, typer.Option("--random", min=0, help="Contexts drawn at random, a case.")]
HardOption = Annotated[
    int, typer.Option("--hard", min=0, help="Hard negatives: the best by BM25 that are no target.")
]
NeighboursOption = Annotated[
    int, typer.Option("--neighbours", min=0, help="Nearest by meaning, and as many by Dartboard.")
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same data set.")]
JudgeOption = Annotated[
    str,
    typer.Option(
        "--judge",
        metavar="SPEC",
        help="answers (offline), gemini[:MODEL], openai:MODEL[@URL], check[:SCREEN] or ensemble:A,B,C.",
    ),
]
ChecksOption = Annotated[
    bool,
    typer.Option(
        "--checks",
        help="Let a case's executable check decide, after the judge. RUNS CODE of the registry, and "
        "with --agent what the agent wrote.",
    ),
]
SecondOption = Annotated[
    str | None,
    typer.Option("--second-judge", metavar="SPEC", help="Asked as well, for the two judges' agreement."),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="SPEC", help="A chat model that solves each case, for its kernel."),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the data set.")]
JournalOption = Annotated[
    Path | None,
    typer.Option("--journal", metavar="FILE", help="Every verdict; by default journal.jsonl in DIR."),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on from what the journal holds.")]
RetryOption = Annotated[
    bool,
    typer.Option("--retry-unsure", help="Ask again what got no readable answer: refused, empty, cut short."),
]
ConcurrencyOption = Annotated[int, typer.Option(min=1, max=100, help="Calls at a time.")]
RpmOption = Annotated[float | None, typer.Option("--rpm", metavar="N", help="Most requests a minute.")]
TpmOption = Annotated[float | None, typer.Option("--tpm", metavar="N", help="Most tokens a minute.")]
BudgetOption = Annotated[
    float | None,
    typer.Option("--budget", metavar="MONEY", help="Never spend more, in the currency of the prices."),
]
BudgetTokensOption = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", help="Never use more tokens.")
]
MaxOutputOption = Annotated[
    int | None,
    typer.Option(
        "--max-output",
        metavar="N",
        min=1,
        help="Most tokens of an answer, thoughts included; 8192 by default.",
    ),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="Longest wait for one answer; 300 by default."),
]
MaxWaitOption = Annotated[
    float | None,
    typer.Option(
        "--max-wait",
        metavar="SECONDS",
        help="Longest pause that an endpoint may ask for (Retry-After); 600 by default, then the run stops.",
    ),
]
GiveUpOption = Annotated[
    int | None,
    typer.Option(
        "--give-up-after",
        metavar="N",
        min=1,
        help="Stop after so many calls in a row without a readable answer; by default 10, or twice the "
        "concurrency.",
    ),
]
PriceOption = Annotated[
    str | None,
    typer.Option("--prices", metavar="IN,OUT", help="For a million tokens, as your provider charges them."),
]
PromptOption = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        metavar="VERSION",
        help="The prompt's version: evidence-2, or seed-1, which does NOT fence contexts off: "
        "orders inside one reach the judge.",
    ),
]
KernelsOption = Annotated[bool, typer.Option(help="Find the sets of contexts that answer together.")]
RoundsOption = Annotated[int | None, typer.Option("--rounds", min=0, help="Most expansions of a kernel.")]
VotesOption = Annotated[
    int | None,
    typer.Option("--votes", min=1, help="Most votes on a set; by default 1 offline and 7 for models."),
]
ExportsOption = Annotated[bool, typer.Option(help="Also write the BEIR folder and TREC's qrels.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Estimate calls, tokens and money; ask nobody.")
]
FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A retrieval_dataset.yaml, under any name, or its folder.")
]
