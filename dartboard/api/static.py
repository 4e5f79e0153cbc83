"""The pages' files: public, and the same for everybody; a page itself asks for a key."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from dartboard.api.headers import CONTENT_SECURITY_POLICY

FOLDER = Path(str(files("dartboard.web"))) / "static"
PAGES = {"/": "index.html", "/documents": "documents.html", "/evaluation": "evaluation.html"}
_POLICIES = {"/evaluation": f"{CONTENT_SECURITY_POLICY}; frame-src 'self'"}
"""The evaluation page shows reports in a frame; they have a policy of their own."""


def serve_pages(app: FastAPI) -> None:
    """``/`` is the playground, ``/static/…`` what it and the other pages are made of."""
    for path, file in PAGES.items():
        headers = {"Cache-Control": "no-cache"}
        if path in _POLICIES:
            headers["Content-Security-Policy"] = _POLICIES[path]
        app.router.routes.append(Route(path, _page(file, headers), methods=["GET"], name=file))
    app.mount("/static", StaticFiles(directory=FOLDER, check_dir=False), name="static")


def _page(file: str, headers: dict[str, str]) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return FileResponse(FOLDER / file, media_type="text/html; charset=utf-8", headers=headers)

    return page
