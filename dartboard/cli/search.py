"""``dartboard search``: the passages of an index that together answer a question."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.common_options import (
    IndexOptions,
    JsonOption,
    SearchFlags,
    configured,
    opened,
    spelled_out,
)

if TYPE_CHECKING:
    from dartboard.types import RetrievalResult


@spelled_out
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    *,
    flags: SearchFlags,
    explain: Annotated[
        bool, typer.Option("--explain", "-e", help="Say why: gains, coverage, who found what, time.")
    ] = False,
    target: IndexOptions,
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
      dartboard search "why 429?" --reranker late-interaction
    """
    found = configured(**target.settings, **flags.settings)
    with opened(found, trust=target.trust_model) as engine:
        result = engine.search(query, flags.options(found))
    if as_json:
        print(json.dumps(as_dict(result), indent=2, ensure_ascii=False))
        return
    from dartboard.cli.terminal import results
    from dartboard.display.terminal import print_result

    print_result(results(), result, explain=explain)


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
