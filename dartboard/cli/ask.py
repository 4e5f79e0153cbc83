"""``dartboard ask``: an answer with numbered citations, by a language model over the passages picked."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import (
    CollectionOption,
    JsonOption,
    PairScorerOption,
    RetrieverOption,
    SearchFlags,
    StoreOption,
    TrustOption,
    configured,
    in_index,
    in_output,
    opened,
    spelled_out,
)
from dartboard.cli.console import messages, print_json, results, say, show, warn
from dartboard.cli.decompose import DecomposeFlags, answer_writer

if TYPE_CHECKING:
    from dartboard.answering import Answer, AnswerStream

_answer = partial(typer.Option, rich_help_panel="Answer")


@spelled_out
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask, in quotes.")],
    *,
    model: Annotated[
        str | None,
        _answer(
            "--model",
            "-m",
            metavar="SPEC",
            help="Who writes the answer: openai:MODEL@URL or gemini:MODEL[@URL]; by default answer_model.",
        ),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        _answer(metavar="N", help="Longest answer, in tokens; by default 4096.", min=1),
    ] = None,
    answer_timeout: Annotated[
        int | None,
        _answer(metavar="SECONDS", help="Longest time for an answer; by default 600.", min=1),
    ] = None,
    flags: SearchFlags,
    parts: DecomposeFlags,
    store: StoreOption = None,
    collection: CollectionOption = None,
    embedding_model: Annotated[
        str | None,
        in_index(metavar="NAME", help="Embedding model; by default the one the index was made with."),
    ] = None,
    retriever: RetrieverOption = None,
    pair_scorer: PairScorerOption = None,
    trust_model: TrustOption = False,
    stream: Annotated[
        bool,
        in_output("--stream/--no-stream", help="Whether words are shown as they come."),
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Ask an index a question and get an answer with its sources.

    Dartboard picks the passages, and a language model writes an answer over them that cites them by number.
    It is told to say so where the passages do not answer. Ctrl-C keeps what has come.

    \b
    The model is any OpenAI-compatible endpoint, or Gemini:
      openai:llama3.1@http://localhost:11434/v1     Ollama, vLLM, LM Studio ...
      openai:gpt-4.1-mini                           the key is in OPENAI_API_KEY
      gemini:gemini-3-pro-preview                   the key is in GEMINI_API_KEY
    Set it once as DARTBOARD_ANSWER_MODEL, or in dartboard.toml:
      answer_model = "openai:llama3.1@http://localhost:11434/v1"

    \b
    Examples:
      dartboard ask "How do I rotate the keys?"
      dartboard ask "What changed in retention?" --k 8 --where 'kind = "markdown"'
      dartboard ask "Why 429?" --token-budget 3000 --json | jq -r .answer
      dartboard ask "Which of the two plans is cheaper for us?" --decompose
      dartboard ask "And on Windows?" --seen install.md#14514af63dd36342     # only what is new
    """
    found = configured(
        {"model": "--embedding-model", "answer_model": "--model"},
        store=store,
        collection=collection,
        model=embedding_model,
        retriever=retriever,
        pair_scorer=pair_scorer,
        answer_model=model,
        answer_tokens=answer_tokens,
        answer_timeout=answer_timeout,
    )
    from dartboard.answering import AnswerError
    from dartboard.answering import ask as asked

    searched = flags.options(found)
    writer = answer_writer(found.settings)
    with opened(found, trust=trust_model) as engine:
        options = parts.options(question, searched, found.settings, show=not as_json)
        asking = asked(engine, question, writer, options)
    aloud = stream and not as_json
    try:
        _write(asking, writer.name, aloud=aloud)
    except (KeyboardInterrupt, AnswerError) as stop:
        if asking.answer.text:
            _show(asking.answer, as_json=as_json, written=aloud)
        if isinstance(stop, KeyboardInterrupt):
            say("dartboard: stopped: the answer is not complete")
        raise
    _show(asking.answer, as_json=as_json, written=aloud)


def _write(asking: "AnswerStream", name: str, *, aloud: bool) -> None:
    """Read the answer, and write it as it comes where that is wanted."""
    results()  # characters that stdout cannot write are replaced from here on
    begun = False
    with messages().status(f"Asking {name}") as waiting:
        try:
            for piece in filter(None, asking):
                waiting.stop()
                begun = True
                if aloud:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
        finally:
            if begun and aloud:
                sys.stdout.write("\n")
                sys.stdout.flush()


def _show(answer: "Answer", *, as_json: bool, written: bool) -> None:
    """The answer, unless it was written already, and what it rests on."""
    if as_json:
        print_json(answer.to_json())
        return
    if answer.text and not written:
        print(answer.text)
    _print_sources(answer)
    for remark in _remarks(answer):
        warn(remark)


def _print_sources(answer: "Answer") -> None:
    """Cited passages by their numbers, with their first lines; the others by their place alone."""
    from dartboard.answering.answer import NO_PASSAGES
    from dartboard.cli.passages import first_lines, title_line

    if answer.finish_reason == NO_PASSAGES:
        show("Nothing found: the index is empty, or nothing in it matches. Nobody was asked.")
        return
    console = results()
    cited = [passage for passage in answer.passages if passage.number in answer.cited]
    others = [passage for passage in answer.passages if passage.number not in answer.cited]
    not_cited = "\nNot cited" if cited else "\nPassages, none of them cited"
    for title, passages in (("\nSources", cited), (not_cited, others)):
        if passages:
            show(title, "bold")
        for passage in passages:
            console.print(
                title_line(f"[{passage.number}] ", passage.metadata, passage.chunk_id, console.width),
                soft_wrap=True,
            )
            if passages is cited:
                show(first_lines(passage.text, console.width), "dim")


def _remarks(answer: "Answer") -> list[str]:
    """What a reader should know of an answer that is not as it should be."""
    from dartboard.answering.answer import NO_PASSAGES

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
