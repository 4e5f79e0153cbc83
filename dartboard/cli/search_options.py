"""How passages are found: the options that ``dartboard search`` and ``dartboard ask`` share."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dartboard.engine import Configured

MOST = 1000
"""Candidates that a selection takes."""

KOption = Annotated[
    int | None, typer.Option("--k", "-k", metavar="N", help="How many passages; by default 5.")
]
TokensOption = Annotated[
    int | None,
    typer.Option(
        "--tokens", "-t", metavar="N", help="As many passages as fit into N tokens, instead of --k."
    ),
]
FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter", "-f", metavar="FILTER", help="Only chunks whose metadata match, e.g. 'year >= 2020'."
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help="Who picks: dartboard (the default), mmr, top_k, near_duplicate_filter.",
    ),
]
SigmaOption = Annotated[
    str | None,
    typer.Option(
        "--sigma",
        metavar="auto|NUMBER",
        help="Spread of a question around what it means; auto by default.",
    ),
]
TriageOption = Annotated[
    int | None,
    typer.Option("--triage", metavar="N", help="How many candidates to pick from; by default 100."),
]
MaxPerSourceOption = Annotated[
    int | None,
    typer.Option("--max-per-source", metavar="N", help="At most N passages from one document."),
]


def check_sizes(k: int | None, tokens: int | None, triage: int | None) -> None:
    """Numbers that make sense together."""
    if k is not None and tokens is not None:
        raise typer.BadParameter("--k and --tokens exclude each other: give one of them")
    if k is not None and not 1 <= k <= MOST:
        raise typer.BadParameter(f"--k must be in 1 to {MOST}, got {k}")
    if triage is not None and not max(1, k or 0) <= triage <= MOST:
        raise typer.BadParameter(
            f"--triage must be in {max(1, k or 0)} (as many as --k) to {MOST}, got {triage}"
        )


def search_knobs(
    found: "Configured", *, tokens: int | None, where: str | None, max_per_source: int | None
) -> dict[str, Any]:
    """The options of :meth:`dartboard.engine.Engine.search` for settings and flags."""
    settings = found.settings
    chosen = found.sources["triage_k"] == "flag"
    return {
        "k": None if tokens is not None else settings.k,
        "token_budget": tokens,
        "method": settings.method,
        "where": where,
        "triage_k": settings.triage_k if chosen else max(settings.triage_k, settings.k),
        "sigma": settings.sigma,
        "max_per_source": max_per_source,
    }
