"""``dartboard demo``: nearest neighbours, MMR and Dartboard on the same question.

Side by side stand the picks of each method, as many methods as the width has room for; then Dartboard's
picks with what each added; then one line a method.
"""

import textwrap
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.common_options import JsonOption, in_output, load_model
from dartboard.cli.console import messages, print_json, progress, results, say, show
from dartboard.datasets import demo as demo_corpus
from dartboard.datasets.demo import Question

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dartboard.embeddings import EmbeddingModel
    from dartboard.types import RetrievalResult

LANGCHAIN_WEIGHT, OUR_WEIGHT = 0.5, 0.7
_BATCH = 8
"""Small, so that an interruption loses little; larger ones were measured no faster."""


def demo(
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="What to ask, in quotes; by default ready-made question 1."),
    ] = None,
    k: Annotated[
        int,
        typer.Option("--k", "-k", metavar="N", help="How many passages each method picks.", min=1, max=20),
    ] = 5,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", metavar="N", help="Ask ready-made question N, instead of your own."),
    ] = None,
    mmr_relevance_weight: Annotated[
        list[float] | None,
        typer.Option(
            metavar="WEIGHT",
            min=0,
            max=1,
            help="Weight of relevance in MMR; may be given more than once. "
            f"By default {LANGCHAIN_WEIGHT} (LangChain's default) and {OUR_WEIGHT} (ours).",
        ),
    ] = None,
    sigma: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", min=1e-5, max=10, help="Width of P(t|q); by default from the candidates."
        ),
    ] = None,
    list_questions: Annotated[
        bool,
        in_output("--list-questions", help="List the ready-made questions."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """See which passages nearest neighbours, MMR and Dartboard pick for one question.

    The corpus is 150 short passages from the knowledge base of an invented team that runs a message
    queue. As in real ones, the important things are written down many times over. The first run
    encodes them (some seconds, on the CPU, no download) and keeps the vectors; later runs take them from
    the cache. Every number shown is computed in this run.

    \b
    What you see:
      1. the picks side by side, with repeats marked
      2. Dartboard's picks one by one: what each adds, and what it stands for
      3. a summary: themes, facts, similarity, coverage

    \b
    Examples:
      dartboard demo
      dartboard demo "Why do messages arrive late?"
      dartboard demo --number 2 --k 8
      dartboard demo --mmr-relevance-weight 0.3 --mmr-relevance-weight 0.9
      dartboard demo --json | python -m json.tool

    \b
    Environment:
      DARTBOARD_CACHE   folder for the vectors, instead of your cache folder
      NO_COLOR          set it for no colours;  COLUMNS  sets the width
    """
    if list_questions:
        for place, one in enumerate(demo_corpus.questions(), start=1):
            print(f"{place}  {one.text}\n   {one.wants}")
        return
    asked = _question(question, number)
    weights = list(dict.fromkeys(mmr_relevance_weight or [LANGCHAIN_WEIGHT, OUR_WEIGHT]))
    found = _answers(asked.text, load_model(messages()), k, weights, sigma)
    if as_json:
        from dartboard.explain.records import as_record

        print_json({name: as_record(result) for name, result in found.items()})
    else:
        _draw(results(), asked, found)


def _question(given: str | None, number: int | None) -> Question:
    ready = demo_corpus.questions()
    if given is not None and number is not None:
        raise typer.BadParameter("a question and --number exclude each other: give one of them")
    if given is not None:
        if not given.strip():
            raise typer.BadParameter(
                'the question is empty: ask something, e.g. dartboard demo "Why is it slow?"'
            )
        return next((one for one in ready if one.text == given.strip()), Question(given.strip()))
    if number is not None and not 1 <= number <= len(ready):
        raise typer.BadParameter(f"--number must be in 1 to {len(ready)}, got {number}: see --list-questions")
    return ready[(number or 1) - 1]


def _answers(
    question: str, model: "EmbeddingModel", k: int, weights: list[float], sigma: float | None
) -> "dict[str, RetrievalResult]":
    """The result of each method by its name, from the same candidates."""
    from dartboard.core import DartboardConfig, DartboardRetriever
    from dartboard.selection import MMR, Dartboard, Method, TopK

    told = False
    try:
        with progress() as listen:

            def hear(done: int) -> None:
                nonlocal told
                if not told and done < len(demo_corpus.texts()):
                    say("Encoding the passages: some seconds, and only this once.")
                told = True
                listen("Encoding", done, len(demo_corpus.texts()))

            vectors = model.encode_documents(demo_corpus.texts(), batch_size=_BATCH, progress=hear)
    except KeyboardInterrupt:
        say("Stopped. The passages that are encoded are kept, and the same command goes on from there.")
        raise
    config = DartboardConfig(sigma=sigma or "auto", top_k=k, reranker_type="cosine")
    retriever = DartboardRetriever(config, model)
    methods: dict[str, Method] = {"KNN": TopK(), **{f"MMR {weight}": MMR(weight) for weight in weights}}
    methods["Dartboard"] = Dartboard()
    corpus = demo_corpus.chunks(vectors)
    return {name: retriever.search(question, corpus, method=method) for name, method in methods.items()}


def _draw(console: "Console", asked: Question, found: "dict[str, RetrievalResult]") -> None:
    """The whole page."""
    from rich.text import Text

    ours, k = found["Dartboard"], len(found["Dartboard"])
    known = ours.metadata
    show(f"\n{asked.text}", "bold")
    if asked.wants:
        console.print(Text(f"A good set covers: {asked.wants}", style="dim"))
    show(f"{k} of {len(demo_corpus.texts())} passages, from the {known['candidates']} nearest.", "dim")
    if message := known["relevance"]["message"]:
        show(message, "yellow")
    _title("What each method picks", "similarity to the question, theme")
    console.print(_side_by_side(console, found))
    console.print(Text("= the same fact in other words   + another fact on a theme already there", "dim"))
    _title("Dartboard, pick by pick", "what each adds, and which passages it stands for")
    show(
        f"Covered: the share of what the {known['candidates']} nearest passages say about the question.",
        "dim",
    )
    for place in range(k):
        _explain(console, ours, place)
    _title("Summary", "")
    console.print(_numbers(found))
    nearest = found["KNN"]
    show(f"KNN: {k - _facts(nearest)} of {k} picks say again what an earlier pick says.")
    most = min(1.0, known["coverage"][-1] / known["bound"])
    source = "was given" if known["sigma_source"] == "given" else "is taken from the candidates"
    show(f"Dartboard: σ {known['sigma']:.3g} {source}. Proved: no set of {k} covers more than {most:.1%}.")
    console.print(
        Text(
            "Themes and facts are the corpus's own labels. Covered is what Dartboard maximises, so it is "
            "built to lead there. An illustration on invented text, not a benchmark.",
            style="dim",
        )
    )
    _title("Next", "")
    show('  dartboard demo "..."       your own question about running a message queue', "cyan")
    show("  dartboard index FOLDER     your own documents, then dartboard search", "cyan")
    show("In Python:")
    show("  from dartboard import select", "cyan")
    show("  picks = select(embeddings, query, k=5)   # (n, d) and (d,), from any model", "cyan")


def _title(words: str, detail: str) -> None:
    from rich.text import Text

    results().print(Text.assemble("\n", (words, "bold cyan"), (f"  {detail}", "dim")))


def _side_by_side(console: "Console", found: "dict[str, RetrievalResult]") -> "Table":
    """With ids and all methods where they fit; KNN, the last MMR and Dartboard in any case."""
    names = list(found)
    fewest = {name: found[name] for name in (names[0], names[-2], names[-1])}
    tables = [_columns(found, True, 3), _columns(found, False, 3), _columns(fewest, False, 3)]
    tables.append(_columns(fewest, False, 1))
    unlimited = console.options.update(width=1000)
    fitting = (one for one in tables if console.measure(one, options=unlimited).maximum <= console.width)
    return next(fitting, tables[-1])


def _columns(found: "dict[str, RetrievalResult]", with_ids: bool, gap: int) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    table.add_column(justify="right", style="dim", min_width=2)
    for name in found:
        style = "bold green" if name == "Dartboard" else "bold"
        table.add_column(name, header_style=style, no_wrap=True, overflow="ellipsis")
    columns = [list(_cells(result, with_ids=with_ids)) for result in found.values()]
    for rank, row in enumerate(zip(*columns, strict=True), start=1):
        table.add_row(str(rank), *row)
    return table


def _cells(result: "RetrievalResult", *, with_ids: bool) -> "Iterator[Text]":
    """Each pick: ``=`` is an earlier one in other words, ``+`` another fact on its theme."""
    from rich.text import Text

    labels = [chunk.metadata for chunk in result.chunks]
    widest = max(len(chunk.id) for chunk in result.chunks)
    for place, chunk in enumerate(result.chunks):
        before, own = labels[:place], chunk.metadata
        said = Text(own["theme"])
        if same := [at for at, other in enumerate(before, start=1) if other["base"] == own["base"]]:
            said = Text(f"= repeats {same[0]}", style="red")
        elif any(other["theme"] == own["theme"] for other in before):
            said = Text(f"+ {own['theme']}", style="yellow")
        name = f"{chunk.id:{widest}} " if with_ids else ""
        yield Text.assemble((f"{result.metadata['similarity'][place]:.2f} {name}", "dim"), said)


def _explain(console: "Console", result: "RetrievalResult", place: int) -> None:
    """One pick: a bar of what was covered before, what it adds, and what is left; its text."""
    from rich.text import Text

    chunk, known = result.chunks[place], result.metadata
    gain, coverage, width = known["gain"][place], known["coverage"][place], min(40, console.width // 4)
    end = round(width * coverage)
    start = min(round(width * (coverage - gain)), end)
    console.print(
        Text.assemble(
            (f"{place + 1:2} ", "bold"),
            ("▒" * start, "green dim"),
            ("█" * (end - start), "green"),
            ("·" * (width - end), "dim"),
            (f" {gain:+6.1%}", "bold green"),
            f" {coverage:6.1%} covered  ",
            (chunk.metadata["theme"], "bold"),
            (f"  {chunk.id}", "dim"),
        )
    )
    others = [name for name in known["stands_for"][place] if name != chunk.id]
    lines = textwrap.wrap(chunk.text, console.width - 3, max_lines=2, placeholder=" …")
    show(textwrap.indent("\n".join(lines), "   "))
    if others:
        listed = textwrap.wrap(f"stands for {len(others)} more: {', '.join(others)}", console.width - 3)
        show(textwrap.indent("\n".join(listed), "   "), "dim")


def _facts(result: "RetrievalResult") -> int:
    """How many picks there are when rewordings of one passage count once."""
    return len({chunk.metadata["base"] for chunk in result.chunks})


def _numbers(found: "dict[str, RetrievalResult]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in ("themes", "facts", "mean similarity", "weakest", "covered"):
        table.add_column(name, justify="right")
    for name, result in found.items():
        similar: Sequence[Any] = result.metadata["similarity"]
        table.add_row(
            name,
            str(len({chunk.metadata["theme"] for chunk in result.chunks})),
            str(_facts(result)),
            f"{fmean(similar):.2f}",
            f"{min(similar):.2f}",
            f"{result.metadata['coverage'][-1]:.1%}",
            style="bold green" if name == "Dartboard" else "",
        )
    return table
