"""What the demo shows: how far the encoding is, and a comparison that reads well from 80 columns on.

Side by side stand the picks of each method, as many methods as the width has room for; then Dartboard's
picks with what each added; then one line a method. Every word about the outcome is derived from it.
"""

import textwrap
from collections.abc import Iterator, Sequence
from statistics import fmean

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from dartboard.cli.demo import Comparison, Outcome, Pick
from dartboard.datasets.demo import Question, questions
from dartboard.embeddings import CachedModel, EmbeddingModel
from dartboard.embeddings.vectors import Vectors

_SIGMA_SOURCES = {
    "candidates": "no weight to set: σ = {:.3f} came from the candidates",
    "given": "σ = {:.3g} was given; auto takes it from the candidates",
    "model": "no weight to set: σ = {:.3f} is known for this model",
    "fallback": "no weight to set: σ = {:.3f} is the one for small pools",
}

_BATCH = 8
"""Small, so that the bar moves and an interruption loses little; larger ones were measured no faster."""


def draw(
    console: Console, asked: Question, comparison: Comparison, *, passages: int, known: int, seconds: float
) -> None:
    """The whole page."""
    sections = [
        _head(asked, comparison, passages),
        _sets(console, comparison.outcomes),
        _explanations(console, comparison),
        _summary(comparison),
        _next(asked, known, passages, seconds),
    ]
    for section in sections:
        console.print()
        console.print(section)


def label(outcome: Outcome) -> str:
    """What people call the method."""
    weight = outcome.parameters.get("relevance_weight")
    return {"top_k": "KNN", "mmr": f"MMR {weight}", "dartboard": "Dartboard"}[outcome.name]


def _head(asked: Question, comparison: Comparison, passages: int) -> Group:
    lines = [Text(asked.text, style="bold")]
    if asked.wants:
        lines.append(Text(f"A good set covers: {asked.wants}", style="dim"))
    k = len(comparison.outcomes[-1].picks)
    lines.append(Text(f"{k} of {passages} passages, from the {comparison.candidates} nearest.", style="dim"))
    return Group(*lines)


def _title(words: str, detail: str = "") -> Text:
    return Text.assemble((words, "bold cyan"), (f"  {detail}" if detail else "", "dim"))


def _sets(console: Console, outcomes: Sequence[Outcome]) -> Group:
    lines = [_title("What each method picks", "similarity to the question, theme")]
    return Group(*lines, _side_by_side(console, outcomes), *_legend(outcomes))


def _side_by_side(console: Console, outcomes: Sequence[Outcome]) -> Table:
    """With ids and all methods where they fit; KNN, the last MMR and Dartboard in any case."""
    fewest = [outcomes[0], *outcomes[1:-1][-1:], outcomes[-1]]
    tables = [
        _columns(outcomes, with_ids=True, gap=3),
        _columns(outcomes, with_ids=False, gap=3),
        _columns(fewest, with_ids=False, gap=3),
        _columns(fewest, with_ids=False, gap=1),
    ]
    unlimited = console.options.update(width=1000)
    fitting = (
        table for table in tables if console.measure(table, options=unlimited).maximum <= console.width
    )
    return next(fitting, tables[-1])


def _columns(outcomes: Sequence[Outcome], *, with_ids: bool, gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    table.add_column(justify="right", style="dim", min_width=len(str(len(outcomes[0].picks))))
    for outcome in outcomes:
        style = "bold green" if outcome.name == "dartboard" else "bold"
        table.add_column(label(outcome), header_style=style, no_wrap=True, overflow="ellipsis")
    columns = [list(_cells(outcome.picks, with_ids=with_ids)) for outcome in outcomes]
    for rank, row in enumerate(zip(*columns, strict=True), start=1):
        table.add_row(str(rank), *row)
    return table


def _cells(picks: Sequence[Pick], *, with_ids: bool) -> Iterator[Text]:
    widest = max(len(pick.chunk_id) for pick in picks)
    for pick in picks:
        name = f"{pick.chunk_id:{widest}} " if with_ids else ""
        yield Text.assemble((f"{pick.similarity:.2f} ", "dim"), (name, "dim"), _what(pick, picks))


def _what(pick: Pick, picks: Sequence[Pick]) -> Text:
    """The theme of a pick; ``=`` for an earlier pick in other words, ``+`` for another fact on its theme."""
    before = picks[: pick.rank - 1]
    if same := [other for other in before if other.base == pick.base]:
        return Text(f"= repeats {same[0].rank}", style="red")
    if any(other.theme == pick.theme for other in before):
        return Text(f"+ {pick.theme}", style="yellow")
    return Text(pick.theme)


def _legend(outcomes: Sequence[Outcome]) -> Iterator[Text]:
    marks = {_what(pick, outcome.picks).plain[:2] for outcome in outcomes for pick in outcome.picks}
    meanings = {"= ": "= the same fact in other words", "+ ": "+ another fact on a theme already there"}
    if words := [meaning for mark, meaning in meanings.items() if mark in marks]:
        yield Text("   ".join(words), style="dim")


def _explanations(console: Console, comparison: Comparison) -> Group:
    title = _title("Dartboard, pick by pick", "what each adds, and which passages it stands for")
    meaning = (
        f"Covered: the share of what the {comparison.candidates} nearest passages say about the question."
    )
    picks = [_explained(console, pick) for pick in comparison.outcomes[-1].picks]
    return Group(title, Text(meaning, style="dim"), *picks)


def _explained(console: Console, pick: Pick) -> Group:
    head = Text.assemble(
        (f"{pick.rank:2} ", "bold"),
        _bar(console, pick, 20 if console.width < 100 else 40),
        (f" {pick.gain:+6.1%}", "bold green"),
        f" {pick.coverage:6.1%} covered  ",
        (pick.theme, "bold"),
        (f"  {pick.chunk_id}", "dim"),
    )
    room = max(20, console.width - 3)
    body = textwrap.wrap(pick.text, room, max_lines=2, placeholder=" …")
    others = [name for name in pick.stands_for if name != pick.chunk_id]
    stands = textwrap.wrap(f"stands for {len(others)} more: {', '.join(others)}", room) if others else []
    return Group(
        head, *(Text(f"   {line}") for line in body), *(Text(f"   {line}", style="dim") for line in stands)
    )


def _bar(console: Console, pick: Pick, width: int) -> Text:
    """What was covered before, what this pick adds, and what is left."""
    before, added, left = "▒█·"
    end = round(width * pick.coverage)
    start = min(round(width * (pick.coverage - pick.gain)), end)
    return Text.assemble(
        (before * start, "green dim"), (added * (end - start), "green"), (left * (width - end), "dim")
    )


def _summary(comparison: Comparison) -> Group:
    return Group(_title("Summary"), _numbers(comparison.outcomes), *_reading(comparison))


def _numbers(outcomes: Sequence[Outcome]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("")
    for name in ("themes", "facts", "mean similarity", "weakest", "covered"):
        table.add_column(name, justify="right")
    for outcome in outcomes:
        table.add_row(
            label(outcome),
            f"{outcome.themes}",
            f"{outcome.facts}",
            f"{fmean(outcome.similarities):.2f}",
            f"{min(outcome.similarities):.2f}",
            f"{outcome.coverage:.1%}",
            style="bold green" if outcome.name == "dartboard" else "",
        )
    return table


def _reading(comparison: Comparison) -> Iterator[Text]:
    nearest, *mmr, dartboard = comparison.outcomes
    k = len(nearest.picks)
    yield _point("KNN", f"{k - nearest.facts} of {k} picks say again what an earlier pick says.")
    if len(mmr) > 1:
        yield _point("MMR", f"depends on a weight that you set. {_spread(mmr)}")
    most = min(1.0, dartboard.coverage / dartboard.bound)
    source = _SIGMA_SOURCES[comparison.sigma_source].format(comparison.sigma)
    yield _point("Dartboard", f"{source}. Proved: no set of {k} covers more than {most:.1%}.")
    yield Text(
        "Themes and facts are the corpus's own labels. Covered is what Dartboard maximises, so it is "
        "built to lead there. An illustration on invented text, not a benchmark.",
        style="dim",
    )


def _spread(mmr: Sequence[Outcome]) -> str:
    """How far the weights differ in what they chose."""
    if len({frozenset(pick.chunk_id for pick in one.picks) for one in mmr}) == 1:
        return "Here the weights shown chose the same passages."
    weakest = [f"{min(one.similarities):.2f} at {one.parameters['relevance_weight']}" for one in mmr]
    return f"Similarity of its weakest pick: {', '.join(weakest)}."


def _point(name: str, words: str) -> Text:
    return Text.assemble((f"{name}: ", "bold"), words)


def _next(asked: Question, known: int, passages: int, seconds: float) -> Group:
    origin = "from the cache" if known == passages else f"{passages - known} encoded now"
    table = Table.grid(padding=(0, 2))
    for typed, meaning in (
        (f"dartboard demo --number {_another(asked)}", "another ready-made question"),
        ('dartboard demo "..."', "your own question about running a message queue"),
        ("dartboard demo --json", "the same as data"),
    ):
        table.add_row(Text(f"  {typed}", style="cyan"), Text(meaning, style="dim"))
    code = """  from dartboard import select
  picks = select(embeddings, query, k=5)   # (n, d) and (d,), from any model
  picks.indices"""
    title = _title("Next", f"({seconds:.1f} s; vectors of {passages} passages: {origin})")
    return Group(title, table, Text("In Python:"), Text(code, style="cyan"))


def _another(asked: Question) -> int:
    """The number of the ready-made question after this one."""
    ready = [one.text for one in questions()]
    return (ready.index(asked.text) + 1) % len(ready) + 1 if asked.text in ready else 1


def encode_passages(model: EmbeddingModel, texts: Sequence[str], console: Console) -> tuple[Vectors, int]:
    """The vectors of passages, ``(n, d)``, and how many of them the cache knew.

    A bar on a terminal, one line elsewhere. A caching model reports first what it knows already.
    """
    total, cached = len(texts), isinstance(model, CachedModel)
    finished: list[int] = []  # how many passages were finished at each report
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("Encoding passages", total=total)

    def hear(done: int) -> None:
        if not finished and not (cached and done == total):
            bar.start()
            if not console.is_terminal:
                left, once = (total - done, ", this once") if cached else (total, "")
                console.print(f"Encoding {left} passages: some seconds{once}", soft_wrap=True)
        finished.append(done)
        bar.update(task, completed=done)

    try:
        vectors = model.encode_documents(texts, batch_size=_BATCH, progress=hear)
    except KeyboardInterrupt:
        bar.stop()
        kept = "they are kept, and the same command goes on from there" if cached else "none is kept"
        done = finished[-1] if finished else 0
        console.print(f"Stopped with {done} of {total} passages encoded: {kept}.", soft_wrap=True)
        raise
    finally:
        bar.stop()
    return vectors, finished[0] if cached and finished else 0
