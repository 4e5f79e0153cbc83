"""Files into a collection: they are received whole, then a job indexes them.

What was received lies in a folder of its own below ``home/uploads`` until the job has ended, however it ends,
and is removed then: passages carry their text, and a file that is uploaded again under its name replaces what
is known of it. Cancelling the job keeps the passages of what was finished. A dropped folder is read as
``dartboard index`` reads one: hidden files and what its ``.gitignore`` names are left out.
"""

import secrets
import shutil
import time
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from dartboard.api.authentication import WRITE_INDEX
from dartboard.api.endpoints.admin import JobStarted, started
from dartboard.api.endpoints.collections import Name
from dartboard.api.errors import Busy
from dartboard.api.jobs import Progress
from dartboard.api.multipart import receive_files
from dartboard.api.service import Service, ServiceDep
from dartboard.engine import IndexReport, index_paths
from dartboard.engine import Progress as Done
from dartboard.ingest import SourceFile, walk


class UploadAccepted(JobStarted):
    """The files have arrived; a job reads, splits, encodes and keeps them."""

    collection: str
    files: int
    bytes: int


router = APIRouter(prefix="/api/dartboard", tags=["documents"])
LISTED = 1000
"""Files that a result lists; those with trouble come first."""
_SHOWN = 3
_IGNORED = "is hidden or named by a .gitignore: upload it by itself to have it read"
_OLD = 24 * 3600.0
"""Seconds after which a folder that nobody removed was left behind by a crash."""
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "One part a file; its file name, which may hold folders, "
                            "becomes the source of its passages.",
                        }
                    },
                }
            }
        },
    }
}


@router.post(
    "/collections/{name}/files",
    status_code=202,
    dependencies=WRITE_INDEX,
    operation_id="upload_files",
    openapi_extra=_FORM,
)
async def upload(name: Name, request: Request, service: ServiceDep) -> UploadAccepted:
    """Receive files (text, Markdown, RST, HTML, PDF, DOCX, code, JSONL, CSV) and start a job for them."""
    await service.writes.run(service.engines.writable, name, step=True)
    upload = _Upload(service, name)
    try:
        upload.files, size = await receive_files(request, upload.content)
        key = getattr(request.state, "key", None)
        job = service.jobs.start("index", upload, key.id if key else None)
    except BaseException:
        upload.remove()
        raise
    return UploadAccepted(**started(job).model_dump(), collection=name, files=len(upload.files), bytes=size)


class _Upload:
    """A folder that was made for one upload, and the task that indexes what lies in it.

    The folder goes when the task has run, and when nobody holds the task any more: a job that is cancelled
    before its turn is dropped without being run.
    """

    def __init__(self, service: Service, collection: str) -> None:
        above = service.settings.home.absolute() / "uploads"
        above.mkdir(parents=True, exist_ok=True)
        for left in above.iterdir():
            if not left.name.startswith(_run()) and time.time() - left.stat().st_mtime > _OLD:
                shutil.rmtree(left, ignore_errors=True)
        if len(list(above.glob(f"{_run()}-*"))) >= service.settings.jobs:
            raise Busy("too many uploads are waiting: try again when one has been indexed", retry_after=10)
        folder = above / f"{_run()}-{secrets.token_hex(8)}"
        self.content = folder / "content"
        self.content.mkdir(parents=True)
        (folder / ".git").touch()  # rules of .gitignore files above are not about these files
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.files: list[str] = []
        self._service = service
        self._collection = collection

    def __call__(self, progress: Progress) -> dict[str, Any]:
        """Index what was received; the job's result."""
        try:
            return _index(self._service, self._collection, self.content, self.files, progress)
        finally:
            self.remove()


@cache
def _run() -> str:
    """Tells the folders of this process from those that others left behind."""
    return secrets.token_hex(4)


def _index(
    service: Service, collection: str, folder: Path, names: Sequence[str], progress: Progress
) -> dict[str, Any]:
    """Index the files below ``folder``, each under its name there; what became of each, trouble first.

    A file is ``indexed`` (its passages are in the collection now), ``unchanged`` (they were there already) or
    ``left_out`` (nothing of it can be used); its message says what is wrong, or what had to be guessed.
    """
    engine = service.engines.get(collection)
    places = sorted(folder.iterdir())
    walked = {entry.source for entry in walk(places, root=folder) if isinstance(entry, SourceFile)}

    def listen(now: Done) -> None:
        files = f"{now.files:,} of {now.files_total:,} files, {now.chunks:,} passages"
        progress(now.bytes, now.bytes_total, files if now.files_total else "looking for what is new")

    report = index_paths(engine, places, uploaded_to=folder, listen=listen)
    messages = _messages(report, set(names), folder)
    files = [
        _file_result(name, report.files.get(name), messages.get(name, []), walked=name in walked)
        for name in names
    ]
    files.sort(key=lambda one: (one["state"] != "left_out", not one["message"]))
    states = ("indexed", "unchanged", "left_out")
    return {
        "collection": collection,
        **{state: sum(one["state"] == state for one in files) for state in states},
        "chunks": report.chunks,
        "seconds": round(report.seconds, 3),
        "files": files[:LISTED],
        "more_files": max(0, len(files) - LISTED),
    }


def _file_result(name: str, chunks: int | None, messages: list[str], *, walked: bool) -> dict[str, Any]:
    """``chunks`` is None for a file that was not read."""
    state = "left_out"
    if chunks:
        state = "indexed"
    elif walked and chunks is None and not messages:
        state = "unchanged"
    elif not messages:
        messages = ["holds no text" if walked else _IGNORED]
    more = f"; and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
    return {
        "name": name,
        "state": state,
        "chunks": chunks or 0,
        "message": "; ".join(messages[:_SHOWN]) + more,
    }


def _messages(report: IndexReport, names: set[str], folder: Path) -> dict[str, list[str]]:
    """What there is to say of each file: what is wrong, then what was guessed; no path of this machine."""
    found: dict[str, list[str]] = {}
    for problem in report.problems:
        found.setdefault(problem.source, []).append(problem.reason.replace(f"{folder}/", ""))
    for note in dict.fromkeys(report.notes):
        ends = (at for at in range(len(note)) if note.startswith(": ", at) and note[:at] in names)
        if (end := next(ends, None)) is not None:
            found.setdefault(note[:end], []).append(note[end + 2 :])
    return found
