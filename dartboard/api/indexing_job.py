"""Index what an upload brought, and say of every file what became of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dartboard.api.jobs import Progress
from dartboard.api.schemas.files import FileResult, IndexingResult
from dartboard.api.service import Service
from dartboard.api.writing import lock, our_turn
from dartboard.engine import IndexReport, index_paths
from dartboard.engine import Progress as Done
from dartboard.ingest import SourceFile, walk

LISTED = 1000
"""Files that a result lists; those with trouble come first."""
_SAID = 3
_IGNORED = "is hidden or named by a .gitignore: upload it by itself to have it read"


def index_files(
    service: Service, collection: str, folder: Path, names: Sequence[str], progress: Progress
) -> IndexingResult:
    """Index the files below ``folder``, each under its name there."""
    engine = service.engines.get(collection)
    places = sorted(folder.iterdir())
    seen = {entry.source for entry in walk(places, root=folder) if isinstance(entry, SourceFile)}

    def listen(now: Done) -> None:
        progress(now.bytes, now.bytes_total, _told(now))

    progress(0, 0, "waiting for its turn to write")
    with our_turn(service):
        lock(engine)
        report = index_paths(engine, places, uploaded_to=folder, listen=listen)
    said = _said(report, set(names), folder)
    results = [
        _result(name, report.files.get(name), said.get(name, []), walked=name in seen) for name in names
    ]
    results.sort(key=lambda one: (one.state != "left_out", not one.message))
    counts = {
        state: sum(one.state == state for one in results) for state in ("indexed", "unchanged", "left_out")
    }
    return IndexingResult(
        collection=collection,
        chunks=report.chunks,
        seconds=round(report.seconds, 3),
        files=results[:LISTED],
        more_files=max(0, len(results) - LISTED),
        **counts,
    )


def _told(now: Done) -> str:
    """How far the job is, in words; before anything is known to be read there is nothing to count."""
    if not now.files_total:
        return "looking for what is new"
    passages = f"{now.chunks:,} passage{'' if now.chunks == 1 else 's'}"
    return f"{now.files:,} of {now.files_total:,} file{'' if now.files_total == 1 else 's'}, {passages}"


def _result(name: str, chunks: int | None, said: list[str], *, walked: bool) -> FileResult:
    """``chunks`` is None for a file that was not read."""
    state: Literal["indexed", "unchanged", "left_out"] = "left_out"
    if chunks:
        state = "indexed"
    elif walked and chunks is None and not said:
        state = "unchanged"
    elif not said:
        said = ["holds no text" if walked else _IGNORED]
    more = f"; and {len(said) - _SAID} more" if len(said) > _SAID else ""
    return FileResult(name=name, state=state, chunks=chunks or 0, message="; ".join(said[:_SAID]) + more)


def _said(report: IndexReport, names: set[str], folder: Path) -> dict[str, list[str]]:
    """What is to be told of each file: what is wrong, then what was guessed; no path of this machine."""
    told: dict[str, list[str]] = {}
    for problem in report.problems:
        told.setdefault(problem.source, []).append(problem.reason.replace(f"{folder}/", ""))
    for note in dict.fromkeys(report.notes):
        ends = (at for at in range(len(note)) if note.startswith(": ", at) and note[:at] in names)
        if (end := next(ends, None)) is not None:
            told.setdefault(note[:end], []).append(note[end + 2 :])
    return told
