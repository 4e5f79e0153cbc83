"""``dartboard index``: files and folders into an index."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import IndexOptions, JsonOption, configured, opened, spelled_out
from dartboard.cli.ray_cluster import RayOption, encoding_elsewhere

if TYPE_CHECKING:
    from dartboard.engine import Configured, IndexReport
    from dartboard.engine import Progress as Done
    from dartboard.engine.index import Listener
    from dartboard.ingest import ChunkingConfig

_SHOWN_PROBLEMS = 10


@spelled_out
def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files and folders.")],
    *,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", "-x", metavar="PATTERN", help="Leave out, as in .gitignore; may be repeated."
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include", "-i", metavar="PATTERN", help="Take only these, as in .gitignore; may be repeated."
        ),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove from the index files below the paths that are gone, or excluded now."
        ),
    ] = False,
    chunking: Annotated[
        str | None,
        typer.Option("--chunking", metavar="METHOD", help="auto (the default), sentences, tokens."),
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(metavar="N", help="Longest chunk in tokens; by default 256.")
    ] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens that neighbouring chunks share; by default 32.")
    ] = None,
    text_field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Rows: a field with text; may be repeated. Guessed otherwise."),
    ] = None,
    id_field: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rows: the field that names a row.")
    ] = None,
    metadata_field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Rows: a field to keep as metadata; all others by default."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Text files: their encoding, such as cp1251; found otherwise."),
    ] = None,
    target: IndexOptions,
    ray: RayOption = None,
    as_json: JsonOption = False,
) -> None:
    """Index files and folders: text, Markdown, RST, HTML, PDF, DOCX, source code, rows (JSONL, CSV, JSON).

    Files are split into chunks, encoded and kept in the index, with their source, position and section.
    Run it again after changes: unchanged files are skipped, changed ones replaced. Files that cannot be
    read are listed and do not stop the run. Ctrl-C keeps what is finished; the same command goes on.

    With --ray the machines of a Ray cluster encode, and this process alone writes to the index: the
    vectors are the same to the bit. Every machine needs the same dartboard and model. Machines may be
    lost on the way; their work is done again by others.

    \b
    Examples:
      dartboard index docs/
      dartboard index . --exclude 'tests/' --exclude '*.csv' --prune
      dartboard index tickets.jsonl --text-field body --id-field key
      dartboard index docs/ --store postgresql://me@localhost/docs --collection handbook
      dartboard index docs/ --ray auto
    """
    from dartboard.cli.console import messages
    from dartboard.engine import index_paths
    from dartboard.ingest import ReadOptions, RowFields
    from dartboard.ingest.files import check_paths

    found = configured(
        **target.settings,
        chunk_method=chunking,
        chunk_size=chunk_size,
        chunk_overlap=chunk_overlap,
        ray=ray,
    )
    if found.settings.store.startswith("memory:"):
        raise typer.BadParameter("memory:// keeps nothing beyond this command: name a file or a server")
    fields = RowFields(
        text=tuple(text_field or ()),
        id=id_field,
        metadata=tuple(metadata_field) if metadata_field else None,
    )
    reading = ReadOptions(fields=fields, encoding=encoding)
    check_paths(paths)
    splitting = _chunking(found)
    with (
        encoding_elsewhere(found, trust=target.trust_model) as encoder,
        opened(found, read_only=False, create=True, trust=target.trust_model) as engine,
        progress() as listen,
    ):
        try:
            report = index_paths(
                engine,
                paths,
                chunking=splitting,
                reading=reading,
                excludes=exclude or (),
                includes=include or (),
                prune=prune,
                encoder=encoder,
                listen=listen,
            )
        except KeyboardInterrupt:
            messages().print("Stopped. What was finished is kept; the same command goes on from there.")
            raise
    if as_json:
        print(json.dumps(asdict(report), indent=2, ensure_ascii=False))
    else:
        _draw(report, found.settings.store)


def _chunking(found: "Configured") -> "ChunkingConfig | None":
    """The chunking asked for, or None where nobody asked: an index keeps splitting as it did."""
    from dartboard.ingest import ChunkingConfig

    settings = found.settings
    names = ("chunk_method", "chunk_size", "chunk_overlap")
    if all(found.sources[name] == "default" for name in names):
        return None
    overlap = settings.chunk_overlap
    if found.sources["chunk_overlap"] == "default":
        overlap = min(overlap, settings.chunk_size // 8)
    return ChunkingConfig(
        method=settings.chunk_method,  # type: ignore[arg-type]
        size=settings.chunk_size,
        overlap=overlap,
    )


@contextmanager
def progress() -> "Iterator[Listener]":
    """A bar by bytes on a terminal, with the rate in chunks and the time left; elsewhere nothing."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from dartboard.cli.console import messages

    console = messages()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("Indexing", total=None, counts="")

    def listen(now: "Done") -> None:
        elapsed = bar.tasks[0].elapsed or 0.0
        rate = f", {now.chunks / elapsed:.0f} chunks/s" if now.chunks and elapsed > 1 else ""
        bar.update(
            task,
            total=max(now.bytes_total, 1),
            completed=now.bytes,
            counts=f"{now.files}/{now.files_total} files, {now.chunks} chunks{rate}",
        )

    with bar:
        yield listen


def _draw(report: "IndexReport", store: str) -> None:
    from dartboard.cli.console import messages, results
    from dartboard.plain_text import clean, counted
    from dartboard.stores.urls import without_password

    console = results()
    counts = [
        f"{count} {name}"
        for name, count in (
            ("new", report.new),
            ("changed", report.changed),
            ("unchanged", report.unchanged),
            ("emptied", report.emptied),
            ("removed", report.deleted),
        )
        if count
    ]
    read = report.new + report.changed + report.unchanged + report.emptied + report.deleted
    console.print(
        f"{', '.join(counts) or 'no'} {'file' if read == 1 else 'files'}; "
        f"{counted(report.chunks, 'chunk')} written, {report.encoded} encoded, "
        f"in {report.seconds:.1f} s, to {without_password(store)}",
        soft_wrap=True,
        markup=False,
    )
    if report.gone:
        gone = f"{counted(report.gone, 'file')} of the index {'is' if report.gone == 1 else 'are'} gone"
        console.print(f"{gone}: --prune removes {'it' if report.gone == 1 else 'them'}", soft_wrap=True)
    errors = messages()
    for line in report.notes[:_SHOWN_PROBLEMS]:
        errors.print(f"note: {clean(line)}", soft_wrap=True, markup=False)
    for problem in report.problems[:_SHOWN_PROBLEMS]:
        errors.print(clean(f"left out: {problem.source} {problem.reason}"), soft_wrap=True, markup=False)
    if (more := len(report.problems) - _SHOWN_PROBLEMS) > 0:
        errors.print(f"left out: {more} more (--json lists them all)", soft_wrap=True)
    if report.chunks or report.unchanged:
        console.print('Ask it: dartboard search "…"', soft_wrap=True, markup=False)
