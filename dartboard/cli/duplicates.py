"""``dartboard duplicates``: how redundant a corpus is, and how to clean it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import (
    IndexOptions,
    JsonOption,
    configured,
    load_model,
    opened,
    spelled_out,
)
from dartboard.cli.console import Listener, messages, print_json, progress, results, say, show
from dartboard.plain_text import clean, counted, shortened

if TYPE_CHECKING:
    from dartboard.duplicates import Deletion, DuplicateReport
    from dartboard.engine import Configured, Engine
    from dartboard.stores import Collection

_SHOWN = 3
_LONGEST_TEXT = 300


@spelled_out
def duplicates(
    target: IndexOptions,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A folder, JSONL, CSV or other file to look at without indexing it; else the index.",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Typical questions, one a line; by default 100 titles of the corpus."
        ),
    ] = None,
    similarity: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="The smallest cosine of what says nearly the same; by default from sigma."
        ),
    ] = None,
    no_vectors: Annotated[
        bool, typer.Option("--no-vectors", help="Compare texts only: no model, no searches.")
    ] = False,
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="A metadata field that may explain duplicates, beside source and version; may be repeated.",
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Say which chunks would go; with --yes, delete them.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Which one of a group stays: newest, longest or first (default)."),
    ] = None,
    newest_by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="What says which is the newest; by default modified, date or version."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="What is deleted: exact copies; text (default), also nearly the same words; vectors, also "
            "what says nearly the same, which may differ in a number or a name.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Really delete.")] = False,
    undo_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where deleted chunks are kept; by default a new file here."),
    ] = None,
    undo: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Bring back what --delete took, and stop.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how redundant a corpus is: exact copies, near-duplicates, and whether dartboard helps.

    Finds chunks with nearly the same words, and chunks that say nearly the same by their vectors; which files
    or versions they come from; and how many of the first five passages of typical searches are repeats.
    Nothing is deleted without --yes, and what is deleted goes to a file first, from which --undo brings it
    back. A chunk that changes meanwhile stays.

    \b
    Examples:
      dartboard duplicates
      dartboard duplicates tickets.jsonl --no-vectors
      dartboard duplicates --delete --keep newest          (says what would go)
      dartboard duplicates --delete --keep newest --yes
      dartboard duplicates --undo deleted-20260102-030405.snapshot
    """
    from dartboard.duplicates import plan_deletion, undo_deletion

    if (yes or undo_to or keep or by or newest_by) and not delete:
        raise typer.BadParameter("--yes, --undo-to, --keep, --by and --newest-by go with --delete")
    if newest_by and keep != "newest":
        raise typer.BadParameter("--newest-by goes with --keep newest")
    if undo and delete:
        raise typer.BadParameter("--undo brings back and deletes nothing: leave --delete out")
    if path is not None and (yes or undo):
        raise typer.BadParameter("PATH is not an index, so nothing can be deleted from it or brought back")
    if no_vectors and (similarity is not None or queries or by == "vectors"):
        raise typer.BadParameter("--no-vectors excludes --similarity, --queries and --by vectors")
    asked = _lines(queries) if queries else None
    found = configured(**target.settings)
    if undo:
        with opened(found, read_only=False, trust=target.trust_model) as engine:
            back, left = undo_deletion(engine.collection, undo)
        show(f"{counted(back, 'chunk')} back; {left} were there already and were left as they are.")
        return
    fields = [*(field or ()), *([newest_by] if newest_by else ())]
    with (
        progress() as bar,
        _source(found, path, bar, vectors=not no_vectors, write=yes, trust=target.trust_model) as engine,
    ):

        def listen(step: str, done: int, total: int) -> None:
            bar(step.capitalize(), done, total)

        report = engine.duplicates(
            queries=asked, similarity=similarity, vectors=not no_vectors, fields=fields, listen=listen
        )
        plan = None
        if delete:
            plan = plan_deletion(report, keep=keep or "first", by=by or "text", newest_by=newest_by)  # type: ignore[arg-type]
        lost = _lost(plan, engine.collection) if plan else {}
        gone, file = None, undo_to or Path(f"deleted-{datetime.now():%Y%m%d-%H%M%S}.snapshot")
        if plan and yes:
            try:
                gone = plan.delete(engine.collection, file, listen=listen)
            except KeyboardInterrupt:
                if file.exists():
                    say(f"Stopped. Bring back what was deleted: dartboard duplicates --undo {file}")
                raise
    if as_json:
        facts = report.to_json()
        if plan is not None:
            facts["deletion"] = {"planned": dict(plan.kept), "deleted": gone}
            facts["deletion"] |= {"undo": str(file)} if gone else {}
        print_json(facts)
        return
    _draw(report)
    if plan is not None:
        _draw_deletion(plan, gone, file, lost)


def _lost(plan: "Deletion", collection: "Collection") -> dict[str, str]:
    """For the first chunks of a plan, the words that the chunk kept for them does not have there."""
    from dartboard.duplicates.report import word_diff

    found = {}
    for id, kept in list(plan.kept.items())[:_SHOWN]:
        texts = [record.text for record in collection.get([kept, id])]
        if len(texts) == 2:
            words = " … ".join(words for kind, words in word_diff(*texts) if kind == "added")
            found[id] = shortened(words, _LONGEST_TEXT // 3)
    return found


def _lines(path: Path) -> list[str]:
    from dartboard.errors import InvalidInputError

    try:
        found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path} is not UTF-8 text ({error.reason})") from error
    if not found:
        raise InvalidInputError(f"{path} has no line with a question")
    return found


@contextmanager
def _source(
    found: "Configured", path: Path | None, bar: Listener, *, vectors: bool, write: bool, trust: bool
) -> "Iterator[Engine]":
    """The index, or the files at ``path`` as one in memory."""
    if path is None:
        with opened(found, read_only=not write, trust=trust) as engine:
            yield engine
        return
    from dartboard.cli.index import by_bytes, say_left_out
    from dartboard.duplicates.corpus import collect_texts
    from dartboard.engine import Engine, index_paths
    from dartboard.stores.memory import MemoryStore

    store = MemoryStore()
    if vectors:
        chosen = found.chosen("model")
        engine = Engine(store, model=chosen or load_model(messages()), retriever=found.chosen("retriever"))
        say_left_out(index_paths(engine, path, listen=by_bytes(bar)).problems)
    else:
        say_left_out(collect_texts(store, path, listen=bar))
        engine = Engine(store)
    yield engine


def _draw(report: "DuplicateReport") -> None:
    from rich.text import Text

    from dartboard.cli.passages import other_version
    from dartboard.duplicates.report import KINDS

    show(report.answer(), "bold")
    for said in report.counts():
        show(said)
    for name, pairs in report.causes.items():
        for one, other, count in pairs[:_SHOWN]:
            between = f"within {one}" if one == other else f"{one} and {other}"
            show(clean(f"{name}: {between} share {counted(count, 'group')}"))
    sources = report.causes.get("source", ())
    if 2 * sum(count for one, other, count in sources if other_version(one, other)) > len(report.groups):
        show('Most are versions of one document; to see the newest: dartboard search "…" --prefer source')
    for group in report.groups[:_SHOWN]:
        show(f"\n{counted(len(group.ids), 'chunk')}, {KINDS[group.kind]}:")
        first, *others = group.examples
        show(f"  {clean(first['place'])}: {shortened(first['text'], _LONGEST_TEXT)}")
        for example in others[:_SHOWN]:
            line = Text(f"  {clean(example['place'])}: ")
            changes = [part for part in example["diff"] if part[0] != "same"]
            for kind, words in changes[:_SHOWN]:
                style = "red strike" if kind == "removed" else "green"
                line.append(f"{'-' if kind == 'removed' else '+'}{shortened(words, 80)} ", style)
            results().print(line if changes else line.append("the same words", "dim"), soft_wrap=True)


def _draw_deletion(plan: "Deletion", gone: "list[str] | None", file: Path, lost: "Mapping[str, str]") -> None:
    if gone is None and not plan.kept:
        show("\nNo chunk would go.")
    elif gone is None:
        show(f"\n{len(plan.kept):,} of {counted(plan.chunks, 'chunk')} would go:")
        for id, kept in list(plan.kept.items())[:_SHOWN]:
            words = f"; its own words: {lost[id]}" if lost.get(id) else ""
            show("  " + clean(f"{id} ({kept} stays){words}"))
        show("Nothing was deleted; --yes does it (--json lists them all).")
    else:
        show(f"\n{counted(len(gone), 'chunk')} deleted.")
        if left := len(plan.kept) - len(gone):
            show(f"{left:,} stay: they, or what is kept for them, changed meanwhile.")
        show(f"Bring them back: dartboard duplicates --undo {file}")
