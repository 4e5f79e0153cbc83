"""``dartboard context``: the text that a model reads, from an index and a question."""

from typing import Annotated

import typer

from dartboard.cli.common_options import (
    ContextFlags,
    JsonOption,
    QueryOptions,
    configured,
    in_output,
    opened,
    spelled_out,
)
from dartboard.cli.console import print_json, say


@spelled_out
def context(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to ask, in quotes.")],
    *,
    flags: ContextFlags,
    target: QueryOptions,
    order: Annotated[
        str,
        in_output(
            "--order",
            metavar="NAME",
            help="gain (what adds most comes first), source (in the order of each document), ends (the best"
            " first and last).",
        ),
    ] = "gain",
    format: Annotated[
        str,
        in_output("--format", metavar="NAME", help="markdown, xml (tags) or json."),
    ] = "markdown",
    expand: Annotated[
        bool,
        in_output(
            "--expand/--no-expand",
            help="Whether chunks before and after a pick are added where they add most per token.",
        ),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Print the context that a language model should read for a question.

    Passages are picked as search picks them, within --token-budget (2,000 by default) of the whole text, with
    sources and headings, by the --tokenizer of the model that reads it. Chunks of one document that overlap
    or follow each other are merged, so no text is repeated. An answer can cite the numbers: [1], [2].

    The text goes to stdout, its size to stderr. --json prints the text with its passages and the ids of
    their chunks.

    \b
    Examples:
      dartboard context "How do I rotate the keys?" --token-budget 1500
      dartboard context "retention" --token-budget 4000 --tokenizer gpt-4o --format xml > prompt.txt
      dartboard context "retention" --order source --where 'kind = "markdown"'
      dartboard context "retention" --json | jq '.passages[].chunk_ids'
    """
    from dartboard.context import DEFAULT_BUDGET
    from dartboard.plain_text import counted, plain_text

    found = configured(**target.settings)
    options = flags.options(found, token_budget=DEFAULT_BUDGET)
    with opened(found, trust=target.trust_model) as engine:
        made = engine.context(query, options, expand=expand, order=order, format=format)  # type: ignore[arg-type]
    if as_json:
        print_json(made.to_json())
        return
    from dartboard.cli.passages import version_advice

    print(plain_text(made.text))
    if message := made.result.metadata["relevance"]["message"]:
        say(message)
    for warning in made.result.metadata.get("warnings", []):
        say(warning)
    say(f"{counted(len(made.passages), 'passage')}, {made.tokens:,} of {made.token_budget:,} tokens.")
    version_advice(made.result, f"dartboard context {query!r}")
