"""``dartboard search``: the passages of an index that together answer a question."""

from typing import Annotated

import typer

from dartboard.cli.common_options import (
    JsonOption,
    QueryOptions,
    SearchFlags,
    configured,
    in_output,
    opened,
    spelled_out,
)
from dartboard.cli.console import print_json, results
from dartboard.cli.decompose import DecomposeFlags


@spelled_out
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    *,
    flags: SearchFlags,
    parts: DecomposeFlags,
    target: QueryOptions,
    explain: Annotated[
        bool,
        in_output("--explain", "-e", help="Say why: ids, gains, coverage, who found what, time."),
    ] = False,
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
      dartboard search "retention" --token-budget 1500 --json | jq -r '.chunks[].text'
      dartboard search "why 429?" --method top_k          # plain order of the retriever, to compare
      dartboard search "why 429?" --pair-scorer late-interaction
      dartboard search "Which plan is cheaper for us?" --also "price of plan A" --also "price of plan B"
      dartboard search "and on Windows?" --seen install.md#14514af63dd36342     # only what is new
      dartboard search "retention" --k 5 --offset 5       # page 2
      dartboard search "retention" --prefer version --max-per author=2
    """
    found = configured(**target.settings)
    options = parts.options(query, flags.options(found), found.settings, show=not as_json)
    with opened(found, trust=target.trust_model) as engine:
        result = engine.search(query, options)
    if as_json:
        from dartboard.explain.records import as_record

        print_json(as_record(result))
        return
    from dartboard.cli.passages import print_result, version_advice

    print_result(results(), result, explain=explain)
    version_advice(result, f"dartboard search {query!r}")
