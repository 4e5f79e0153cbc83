"""The pages' files: public, and the same for everybody; a page itself asks for a key."""

import os
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from dartboard.api.middleware import CONTENT_SECURITY_POLICY

FOLDER = Path(str(files("dartboard.web"))) / "static"
PAGES = {
    "/": "index.html",
    "/documents": "documents.html",
    "/duplicates": "duplicates.html",
    "/evaluation": "evaluation.html",
    "/docs": "docs.html",
}
_POLICIES = {"/evaluation": f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"}
"""The evaluation page shows reports in a frame; they have a policy of their own."""
_FILES = StaticFiles(directory=FOLDER, check_dir=False)

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
@router.api_route("/documents", methods=["GET", "HEAD"])
@router.api_route("/duplicates", methods=["GET", "HEAD"])
@router.api_route("/evaluation", methods=["GET", "HEAD"])
@router.api_route("/docs", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """The playground, or another page."""
    route: str = request.scope["route"].path
    headers = {"Cache-Control": "no-cache"}
    if route in _POLICIES:
        headers["Content-Security-Policy"] = _POLICIES[route]
    return FileResponse(FOLDER / PAGES[route], media_type="text/html; charset=utf-8", headers=headers)


@router.api_route("/static/{path:path}", methods=["GET", "HEAD"])
async def static(path: str, request: Request) -> Response:
    """What the pages are made of; nothing outside their folder."""
    return await _FILES.get_response(os.path.normpath(path), request.scope)
