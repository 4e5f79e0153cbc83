"""How passages are found: the options that ``dartboard search`` and ``dartboard ask`` share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.opening import RerankerOption

if TYPE_CHECKING:
    from dartboard.engine import Configured
    from dartboard.options import SearchOptions

MOST = 1000
"""Candidates that a selection takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picking:
    """How many passages, of which candidates, and who picks them; numbers that make sense together."""

    k: Annotated[
        int | None, typer.Option("--k", "-k", metavar="N", help="How many passages; by default 5.")
    ] = None
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens", "-t", metavar="N", help="As many passages as fit into N tokens, instead of --k."
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            "--filter", "-f", metavar="FILTER", help="Only chunks whose metadata match, e.g. 'year >= 2020'."
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Who picks: dartboard (the default), mmr, top_k, near_duplicate_filter.",
        ),
    ] = None
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma",
            metavar="auto|NUMBER",
            help="Spread of a question around what it means, 0.00001 to 10; auto by default.",
        ),
    ] = None
    triage: Annotated[
        int | None,
        typer.Option("--triage", metavar="N", help="How many candidates to pick from; by default 100."),
    ] = None
    reranker: RerankerOption = None
    max_per_source: Annotated[
        int | None,
        typer.Option("--max-per-source", metavar="N", help="At most N passages from one document."),
    ] = None

    def __post_init__(self) -> None:
        if self.k is not None and self.tokens is not None:
            raise typer.BadParameter("--k and --tokens exclude each other: give one of them")
        if self.k is not None and not 1 <= self.k <= MOST:
            raise typer.BadParameter(f"--k must be in 1 to {MOST}, got {self.k}")
        least = max(1, self.k or 0)
        if self.triage is not None and not least <= self.triage <= MOST:
            raise typer.BadParameter(
                f"--triage must be in {least} (as many as --k) to {MOST}, got {self.triage}"
            )

    @property
    def flags(self) -> dict[str, Any]:
        """What the environment and a file may say as well, by the names of settings."""
        return {
            "method": self.method,
            "k": self.k,
            "sigma": self.sigma,
            "triage_k": self.triage,
            "reranker": self.reranker,
        }

    def options(self, found: "Configured") -> "SearchOptions":
        """What to search for, with the settings that were found."""
        from dartboard.options import SearchOptions

        settings = found.settings
        chosen = found.sources["triage_k"] == "flag"
        return SearchOptions(
            k=None if self.tokens is not None else settings.k,
            token_budget=self.tokens,
            method=settings.method,
            where=self.where,
            triage_k=settings.triage_k if chosen else max(settings.triage_k, settings.k),
            sigma=settings.sigma,
            reranker=found.reranker_type,
            max_per_source=self.max_per_source,
        )
