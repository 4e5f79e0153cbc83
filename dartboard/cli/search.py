"""``dartboard search``: the passages of an index that together answer a question."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.opening import (
    CollectionOption,
    JsonOption,
    ModelOption,
    RetrieverOption,
    StoreOption,
    configured,
    opened,
)

if TYPE_CHECKING:
    from dartboard.types import RetrievalResult


_MOST = 1000
"""Candidates that a selection takes."""


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    k: Annotated[
        int | None, typer.Option("--k", "-k", metavar="N", help="How many passages; by default 5.")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens", "-t", metavar="N", help="As many passages as fit into N tokens, instead of --k."
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--filter", "-f", metavar="FILTER", help="Only chunks whose metadata match, e.g. 'year >= 2020'."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who picks: dartboard (the default), mmr, top_k, near_duplicate_filter."
        ),
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NUMBER", help="Spread of a question around what it means; auto by default."
        ),
    ] = None,
    triage: Annotated[
        int | None, typer.Option(metavar="N", help="How many candidates to pick from; by default 100.")
    ] = None,
    max_per_source: Annotated[
        int | None, typer.Option(metavar="N", help="At most N passages from one document.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", help="Say why: gains, coverage, who found what, time.")
    ] = False,
    store: StoreOption = None,
    collection: CollectionOption = None,
    model: ModelOption = None,
    retriever: RetrieverOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask an index a question.

    The retriever finds candidates; Dartboard picks from them the passages that together say most, each
    for what it adds to those before it.

    \b
    Filters compare metadata: = != < <= > >= in exists, and or not, e.g.
      source = "guide/install.md"      kind in ["markdown", "pdf"] and page <= 3

    \b
    Examples:
      dartboard search "How do I rotate the keys?"
      dartboard search "retention" --k 8 --explain
      dartboard search "retention" --tokens 1500 --json | jq -r '.chunks[].text'
      dartboard search "why 429?" --method top_k          # plain order of the retriever, to compare
    """
    if k is not None and tokens is not None:
        raise typer.BadParameter("--k and --tokens exclude each other: give one of them")
    if k is not None and not 1 <= k <= _MOST:
        raise typer.BadParameter(f"--k must be in 1 to {_MOST}, got {k}")
    if triage is not None and not max(1, k or 0) <= triage <= _MOST:
        raise typer.BadParameter(
            f"--triage must be in {max(1, k or 0)} (as many as --k) to {_MOST}, got {triage}"
        )
    found = configured(
        store=store,
        collection=collection,
        model=model,
        retriever=retriever,
        method=method,
        k=k,
        sigma=sigma,
        triage_k=triage,
    )
    settings = found.settings
    with opened(found) as engine:
        result = engine.search(
            query,
            k=None if tokens is not None else settings.k,
            token_budget=tokens,
            method=settings.method,
            where=where,
            triage_k=settings.triage_k if triage is not None else max(settings.triage_k, settings.k),
            sigma=settings.sigma,
            max_per_source=max_per_source,
        )
    if as_json:
        print(json.dumps(as_dict(result), indent=2, ensure_ascii=False))
        return
    from dartboard.cli.search_view import draw
    from dartboard.cli.terminal import results

    draw(results(), result, explain=explain)


def as_dict(result: "RetrievalResult") -> dict[str, Any]:
    """A result for programs: chunks with what is known of each, then what is known of all."""
    facts = dict(result.metadata)
    each = {
        "gain": facts.pop("gain", []),
        "coverage": facts.pop("coverage", []),
        "similarity": facts.pop("similarity", []),
        "stands_for": facts.pop("stands_for", []),
        "shares": facts.pop("shares", []),
        "retriever_score": facts.pop("retriever_score", []),
    }
    chunks = [
        {
            "rank": place + 1,
            "id": chunk.id,
            "text": chunk.text,
            "metadata": chunk.metadata,
            **{name: values[place] for name, values in each.items() if values},
        }
        for place, chunk in enumerate(result.chunks)
    ]
    return {"query": result.query, "chunks": chunks, **facts}
