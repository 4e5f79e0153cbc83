"""Files into a collection: they are received whole, then a job indexes them.

What was received lies in a folder of its own below ``home/uploads`` until the job has ended, however it ends,
and is removed then: passages carry their text, and a file that is uploaded again under its name replaces what
is known of it, so nobody needs the originals a second time. Cancelling the job keeps the passages of what was
finished. A dropped folder is read as ``dartboard index`` reads one: hidden files and what its ``.gitignore``
names are left out.
"""

import secrets
import shutil
import time
import weakref
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from dartboard.api.auth import writer
from dartboard.api.collections import Name
from dartboard.api.errors import Busy
from dartboard.api.indexing_job import index_files
from dartboard.api.jobs import Progress
from dartboard.api.memory import release_memory
from dartboard.api.schemas.files import UploadAccepted
from dartboard.api.service import Service, service_of
from dartboard.api.uploading import Received, receive_files
from dartboard.api.writing import writable

router = APIRouter(prefix="/api/dartboard", tags=["documents"])

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
    dependencies=[Depends(writer)],
    response_model=UploadAccepted,
    operation_id="upload_files",
    openapi_extra=_FORM,
)
async def upload(
    name: Name, request: Request, service: Annotated[Service, Depends(service_of)]
) -> UploadAccepted:
    """Receive files (text, Markdown, RST, HTML, PDF, DOCX, code, JSONL, CSV) and start a job for them."""
    await service.run(writable, service, name)
    upload = await service.run(_Upload, service, name)
    try:
        upload.received = await receive_files(
            request, upload.content, most_bytes=service.settings.upload_bytes
        )
        key = getattr(request.state, "key", None)
        job = service.jobs.start("index", upload, key.id if key else None)
    except BaseException:
        upload.remove()
        raise
    return UploadAccepted(
        job_id=job.id,
        status_url=f"/api/dartboard/jobs/{job.id}",
        collection=name,
        files=len(upload.received.files),
        bytes=upload.received.bytes,
    )


class _Upload:
    """A folder that was made for one upload, and the task that indexes what lies in it.

    The folder goes when the task has run, and when nobody holds the task any more: a job that is cancelled
    before its turn is dropped without being run.
    """

    received: Received

    def __init__(self, service: Service, collection: str) -> None:
        above = service.settings.home.absolute() / "uploads"
        above.mkdir(parents=True, exist_ok=True)
        _sweep(above)
        if len(list(above.glob(f"{_run()}-*"))) >= service.settings.jobs:
            raise Busy("too many uploads are waiting: try again when one has been indexed", retry_after=10)
        folder = above / f"{_run()}-{secrets.token_hex(8)}"
        self.content = folder / "content"
        self.content.mkdir(parents=True)
        (folder / ".git").touch()  # rules of .gitignore files above are not about these files
        self.remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._service = service
        self._collection = collection

    def __call__(self, progress: Progress) -> dict[str, Any]:
        """Index what was received; the job's result."""
        try:
            return index_files(
                self._service, self._collection, self.content, self.received.files, progress
            ).model_dump()
        finally:
            self.remove()
            release_memory()


@cache
def _run() -> str:
    """Tells the folders of this process from those that others left behind."""
    return secrets.token_hex(4)


def _sweep(above: Path) -> None:
    for folder in above.iterdir():
        if not folder.name.startswith(_run()) and time.time() - folder.stat().st_mtime > _OLD:
            shutil.rmtree(folder, ignore_errors=True)
