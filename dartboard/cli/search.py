"""``dartboard search``: the passages of an index that together answer a question."""

import json
from typing import Annotated

import typer

from dartboard.cli.common_options import (
    IndexOptions,
    JsonOption,
    SearchFlags,
    configured,
    naming_flags,
    opened,
    spelled_out,
)
from dartboard.cli.decompose import DecomposeFlags


@spelled_out
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    *,
    flags: SearchFlags,
    parts: DecomposeFlags,
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
      dartboard search "Which plan is cheaper for us?" --also "price of plan A" --also "price of plan B"
      dartboard search "and on Windows?" --seen install.md#14514af63dd36342     # only what is new
      dartboard search "retention" --k 5 --offset 5       # page 2
      dartboard search "retention" --prefer version --max-per author=2
    """
    found = configured(**target.settings, **flags.settings)
    options = flags.options(found)
    if parts.decompose:
        from dartboard.answering import answer_model

        settings = found.settings
        if not settings.answer_model:
            raise typer.BadParameter(
                "--decompose needs a language model: set DARTBOARD_ANSWER_MODEL, or answer_model in "
                "dartboard.toml, to openai:MODEL@URL or gemini:MODEL"
            )
        writer = answer_model(
            settings.answer_model,
            max_output_tokens=settings.answer_tokens,
            timeout=settings.answer_timeout,
        )
        options = parts.options(query, options, writer, show=not as_json)
    with opened(found, trust=target.trust_model) as engine, naming_flags():
        result = engine.search(query, options)
    if as_json:
        from dartboard.explain.records import as_record

        print(json.dumps(as_record(result), indent=2, ensure_ascii=False))
        return
    from dartboard.cli.console import results
    from dartboard.cli.passages import print_result

    print_result(results(), result, explain=explain)
