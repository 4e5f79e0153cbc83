"""``dartboard context``: the text that a model reads, from an index and a question."""

import json
from dataclasses import replace
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


@spelled_out
def context(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    *,
    flags: SearchFlags,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="NAME",
            help="gain (what adds most comes first), source (in the order of each document), ends (the best "
            "first and last).",
        ),
    ] = "gain",
    format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="markdown, xml (tags) or json.")
    ] = "markdown",
    expand: Annotated[
        bool,
        typer.Option(
            "--expand/--no-expand",
            help="Whether chunks before and after a pick are added where they add most per token.",
        ),
    ] = True,
    target: IndexOptions,
    as_json: JsonOption = False,
) -> None:
    """Print the context that a language model should read for a question.

    Passages are picked as search picks them, within --tokens (2,000 by default) of the whole text, with
    sources and headings, by the --tokenizer of the model that reads it. Chunks of one document that overlap
    or follow each other are merged, so no text is repeated. An answer can cite the numbers: [1], [2].

    The text goes to stdout, its size to stderr. --json prints the text with its passages and the ids of
    their chunks.

    \b
    Examples:
      dartboard context "How do I rotate the keys?" --tokens 1500
      dartboard context "retention" --tokens 4000 --tokenizer gpt-4o --format xml > prompt.txt
      dartboard context "retention" --order source --filter 'kind = "markdown"'
      dartboard context "retention" --json | jq '.passages[].chunk_ids'
    """
    from dartboard.cli.console import messages
    from dartboard.context import DEFAULT_BUDGET
    from dartboard.plain_text import counted, plain_text

    if flags.k is not None:
        raise typer.BadParameter("--tokens bounds a context, not --k: leave --k out")
    if flags.token_budget is None:
        flags = replace(flags, token_budget=DEFAULT_BUDGET)
    found = configured(**target.settings, **flags.settings)
    options = flags.options(found)
    with opened(found, trust=target.trust_model) as engine, naming_flags():
        made = engine.context(query, options, expand=expand, order=order, format=format)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps(made.to_json(), indent=2, ensure_ascii=False))
        return
    print(plain_text(made.text))
    told = made.result.metadata["relevance"]["message"]
    said = f"{counted(len(made.passages), 'passage')}, {made.tokens:,} of {made.token_budget:,} tokens"
    messages().print(" ".join(filter(None, (told, f"{said}."))), markup=False, soft_wrap=True)
