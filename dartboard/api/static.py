"""The playground's files: public, and the same for everybody; the page itself asks for a key."""

import os
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(str(files("dartboard.web"))) / "static"
_FILES = StaticFiles(directory=FOLDER, check_dir=False)

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
async def front_page() -> Response:
    """The playground."""
    return FileResponse(FOLDER / "index.html", media_type="text/html")


@router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
async def static(path: str, request: Request) -> Response:
    """What the pages are made of; nothing outside their folder."""
    return await _FILES.get_response(os.path.normpath(path), request.scope)
