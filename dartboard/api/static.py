"""The playground's files: public, and the same for everybody; the page itself asks for a key."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

FOLDER = Path(str(files("dartboard.web"))) / "static"


def serve_pages(app: FastAPI) -> None:
    """``/`` is the playground, ``/static/…`` what it and the other pages are made of."""
    app.router.routes.append(Route("/", _front_page, methods=["GET"], name="front page"))
    app.mount("/static", StaticFiles(directory=FOLDER, check_dir=False), name="static")


async def _front_page(request: Request) -> Response:
    return FileResponse(FOLDER / "index.html", media_type="text/html")
