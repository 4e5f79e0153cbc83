"""The sources of an answer for people: what is cited first, with where it stands."""

from rich.console import Console
from rich.text import Text

from dartboard.answering import Answer
from dartboard.answering.answer import NO_PASSAGES
from dartboard.cli.search_view import shortened, title_line


def draw(console: Console, answer: Answer) -> None:
    """Cited passages by their numbers, with their first lines; the others by their place alone."""
    if answer.finish_reason == NO_PASSAGES:
        console.print("Nothing found: the index is empty, or nothing in it matches. Nobody was asked.")
        return
    cited = [passage for passage in answer.passages if passage.number in answer.cited]
    others = [passage for passage in answer.passages if passage.number not in answer.cited]
    if cited:
        console.print(Text("\nSources", style="bold"))
    for passage in cited:
        console.print(title_line(f"[{passage.number}] ", passage.metadata, passage.chunk_id, console.width))
        console.print(Text(shortened(passage.text, console.width), style="dim"))
    if others:
        console.print(Text("\nNot cited" if cited else "\nPassages, none of them cited", style="bold"))
    for passage in others:
        console.print(title_line(f"[{passage.number}] ", passage.metadata, passage.chunk_id, console.width))


def remarks(answer: Answer) -> list[str]:
    """What a reader should know of an answer that is not as it should be."""
    said = []
    if answer.passages and answer.relevance is not None and (message := answer.relevance["message"]):
        said.append(message[0].lower() + message[1:])
    if answer.finish_reason == "length":
        said.append("the answer was cut at the limit of tokens: allow more with --answer-tokens")
    elif answer.finish_reason not in ("stop", "interrupted", NO_PASSAGES):
        said.append(f"the answer ended early: {answer.finish_reason}")
    if unknown := sorted({citation.number for citation in answer.unknown}):
        listed = ", ".join(f"[{number}]" for number in unknown)
        said.append(
            f"the answer cites {listed}, and there is no such passage: do not trust what stands there"
        )
    return said
