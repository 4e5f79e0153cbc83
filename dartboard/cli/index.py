"""``dartboard index``: files and folders into an index."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import IndexOptions, JsonOption, configured, opened, spelled_out
from dartboard.cli.console import Listener, print_json, progress, say, show

if TYPE_CHECKING:
    from dartboard.engine import Configured, IndexReport
    from dartboard.engine import Progress as Done
    from dartboard.engine.index import Listener as IndexListener
    from dartboard.ingest import ChunkingConfig, Problem

_SHOWN_PROBLEMS = 10
_reading = partial(typer.Option, rich_help_panel="Reading")
_rows = partial(typer.Option, rich_help_panel="Rows")

RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Let a Ray cluster encode: auto, local, HOST:PORT or ray://HOST:PORT; by default off, or what "
        "DARTBOARD_RAY says.",
    ),
]


@spelled_out
def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="Files and folders.")],
    *,
    exclude: Annotated[
        list[str] | None,
        _reading("--exclude", "-x", metavar="PATTERN", help="Leave out, as in .gitignore; may be repeated."),
    ] = None,
    include: Annotated[
        list[str] | None,
        _reading(
            "--include", "-i", metavar="PATTERN", help="Take only these, as in .gitignore; may be repeated."
        ),
    ] = None,
    prune: Annotated[
        bool,
        _reading(
            "--prune", help="Remove from the index files below the paths that are gone, or excluded now."
        ),
    ] = False,
    chunking: Annotated[
        str | None,
        _reading("--chunking", metavar="METHOD", help="auto (the default), sentences, tokens."),
    ] = None,
    chunk_size: Annotated[
        int | None,
        _reading(metavar="N", help="Longest chunk in tokens; by default 256.", min=1),
    ] = None,
    chunk_overlap: Annotated[
        int | None,
        _reading(metavar="N", help="Tokens that neighbouring chunks share; by default 32.", min=0),
    ] = None,
    text_field: Annotated[
        list[str] | None,
        _rows(metavar="NAME", help="Rows: a field with text; may be repeated. Guessed otherwise."),
    ] = None,
    id_field: Annotated[
        str | None,
        _rows(metavar="NAME", help="Rows: the field that names a row."),
    ] = None,
    metadata_field: Annotated[
        list[str] | None,
        _rows(metavar="NAME", help="Rows: a field to keep as metadata; all others by default."),
    ] = None,
    encoding: Annotated[
        str | None,
        _reading(metavar="NAME", help="Text files: their encoding, such as cp1251; found otherwise."),
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
    from dartboard.cluster import encoding_on
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
        encoding_on(found.settings.ray, lambda: _model_name(found, target.trust_model)) as encoder,
        opened(found, read_only=False, create=True, trust=target.trust_model) as engine,
        progress() as listen,
    ):
        if encoder is not None:
            say(encoder.summary)
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
                listen=by_bytes(listen),
            )
        except KeyboardInterrupt:
            say("Stopped. What was finished is kept; the same command goes on from there.")
            raise
    if as_json:
        print_json(asdict(report))
    else:
        _draw(report, found)


def _model_name(found: "Configured", trust: bool) -> str:
    """The model as the engine will choose it; looking makes no store."""
    from dartboard.stores.urls import is_there

    settings = found.settings
    if found.sources["model"] != "default" or not is_there(settings.store):
        return settings.model
    with opened(found, trust=trust) as engine:
        return str(engine.model_wanted)


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


def by_bytes(listen: Listener) -> "IndexListener":
    """The progress of indexing by bytes, with files and chunks as the note."""

    def told(now: "Done") -> None:
        note = f"{now.files:,} of {now.files_total:,} files, {now.chunks:,} chunks"
        listen("Indexing", now.bytes, max(now.bytes_total, 1), note)

    return told


def _draw(report: "IndexReport", found: "Configured") -> None:
    from dartboard.plain_text import clean, counted
    from dartboard.stores.urls import without_password

    counts = {
        "new": report.new,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "emptied": report.emptied,
        "removed": report.deleted,
    }
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    show(
        f"{listed or 'no'} {'file' if sum(counts.values()) == 1 else 'files'}; "
        f"{counted(report.chunks, 'chunk')} written, {report.encoded} encoded, "
        f"in {report.seconds:.1f} s, to {without_password(found.settings.store)}"
    )
    if report.gone:
        show(f"{counted(report.gone, 'file')} of the index no longer there: --prune removes what is gone")
    for line in report.notes[:_SHOWN_PROBLEMS]:
        say(f"note: {clean(line)}")
    say_left_out(report.problems)
    if report.chunks or report.unchanged:
        place = "" if found.sources["store"] != "flag" else f" --store {shlex.quote(found.settings.store)}"
        name = "" if found.sources["collection"] != "flag" else f" --collection {found.settings.collection}"
        show(f'Ask it: dartboard search "…"{place}{name}')


def say_left_out(problems: "Sequence[Problem]") -> None:
    """The files that were left out, one by one; those that are no text, such as pictures, by their number."""
    from dartboard.plain_text import clean, counted

    binary = sum(problem.code == "binary" for problem in problems)
    others = [problem for problem in problems if problem.code != "binary"]
    for problem in others[:_SHOWN_PROBLEMS]:
        say(clean(f"left out: {problem.source} {problem.reason}"))
    if (more := len(others) - _SHOWN_PROBLEMS) > 0:
        say(f"left out: {more} more (--json lists them all)")
    if binary:
        say(f"left out: {counted(binary, 'file')} without text, such as pictures (--json lists them)")
