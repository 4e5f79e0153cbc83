"""Reports of ``dartboard eval``: a list with their headlines, their pages, their files.

A report's page has its style inside and nothing else, so it is served under a policy of its own: no script,
nothing fetched, an origin of its own (``sandbox``), framed by our pages only. The policy of our pages stays
as strict as it is. A frame cannot send a key; it is opened at an address with a ticket, which is good for
one report and a few minutes.

Reports are the folders that ``dartboard eval --out HOME/reports/NAME`` filled. A name is one step down and
never a link; neither is anything below it that is opened. So whatever a name says, no file outside the folder
of reports is read.
"""

import hmac
import os
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from multiprocessing import current_process
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field
from starlette.responses import FileResponse, Response

from dartboard.api.authentication import READ, reader
from dartboard.api.errors import NotFound, Unauthorized
from dartboard.api.service import ServiceDep, in_thread
from dartboard.evaluation.summary import rows, sentences


class ReportRow(BaseModel):
    """A system in the headline table: its mean of the measure, and how it does against the reference."""

    system: str
    mean: float
    low: float = Field(description="Lower end of the 95 % interval.")
    high: float
    difference: float
    verdict: Literal["reference", "ahead", "behind", "no difference"]
    wins: int = Field(description="Queries on which it beats the reference.")
    ties: int
    losses: int


class ReportHeadline(BaseModel):
    """One data set of a report; rows are best first."""

    dataset: str
    chunks: int
    judged: int
    measure: str
    reference: str
    sentences: list[str] = Field(description="The result in words.")
    rows: list[ReportRow]


class ReportEntry(BaseModel):
    """A report that is there."""

    name: str
    created: float = Field(description="When it was written, in seconds since 1970.")
    page: bool = Field(description="Whether it has a page to look at.")
    files: list[str] = Field(description="What can be downloaded.")
    headlines: list[ReportHeadline]
    problem: str | None = Field(None, description="Why there are no figures, where there are none.")


class ReportList(BaseModel):
    """The reports, newest first; `more` are left off."""

    reports: list[ReportEntry]
    more: int


class ReportTicket(BaseModel):
    """An address that shows a report for a few minutes without a key: a frame cannot send one."""

    url: str
    seconds: int


router = APIRouter(prefix="/api/dartboard", tags=["reports"])

Name = Annotated[str, PathParameter(description="The report's name.")]
File = Annotated[str, PathParameter(description="A file of the report.")]

TICKET_SECONDS = 300
LISTED = 200
_NAME = re.compile(r"[^\W_][\w .+=@,()~-]{0,127}", re.ASCII)
_DOWNLOADS = re.compile(
    r"results\.json|timings\.json|report\.md|report\.html|per_query/[^/]+\.json|runs/[^/]+/[^/]+\.trec"
)
_LARGEST = 32 * 1024 * 1024
_MOST_FILES = 2000
PAGE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "unsafe-none",
    "Cache-Control": "no-store",
}
"""A sandboxed page that is opened in a tab of its own may have no opener policy: browsers refuse it."""
_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8", ".trec": "text/plain"}


@router.get("/reports", operation_id="list_reports", dependencies=READ)
@in_thread
def reports(service: ServiceDep) -> ReportList:
    """The reports in the service's home, newest first, with their headline figures."""
    found, more = list_reports(service.settings.home)
    return ReportList(reports=found, more=more)


@router.post("/reports/{name}/ticket", operation_id="report_ticket", dependencies=READ)
@in_thread
def ticket(name: Name, service: ServiceDep) -> ReportTicket:
    """An address under which a frame can show the report's page, for a few minutes."""
    report_file(service.settings.home, name, "report.html")
    until = int(time.time()) + TICKET_SECONDS
    return ReportTicket(
        url=f"/api/dartboard/reports/{quote(name)}?ticket={until}.{_signature(name, until)}",
        seconds=TICKET_SECONDS,
    )


async def with_ticket(
    name: Name,
    request: Request,
    ticket: Annotated[str | None, Query(max_length=200, description="From `POST …/ticket`.")] = None,
) -> None:
    """Let in whoever has a ticket for this report, else whoever may read."""
    if ticket is None:
        await reader(request)
    elif not _valid(name, ticket):
        raise Unauthorized("the address of this report is no longer good: open it from the page again")


@router.get(
    "/reports/{name}",
    operation_id="show_report",
    dependencies=[Depends(with_ticket)],
    response_class=Response,
    responses={200: {"content": {"text/html": {}}, "description": "The page."}},
)
@in_thread
def page(name: Name, service: ServiceDep) -> FileResponse:
    """The page of a report: it stands alone, and its policy allows it nothing but its own style."""
    path = report_file(service.settings.home, name, "report.html")
    return FileResponse(path, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@router.get(
    "/reports/{name}/{file:path}",
    operation_id="download_report_file",
    dependencies=READ,
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
@in_thread
def download(name: Name, file: File, service: ServiceDep) -> FileResponse:
    """A file of a report: `results.json`, `report.md`, `per_query/…`, `runs/…` (TREC)."""
    path = report_file(service.settings.home, name, file)
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    return FileResponse(path, media_type=kind, filename=f"{name}-{path.name}")


def _signature(name: str, until: int) -> str:
    secret = bytes(current_process().authkey)  # random; processes behind one port share it
    return hmac.new(secret, f"{until} {name}".encode(), "sha256").hexdigest()


def _valid(name: str, ticket: str) -> bool:
    until, _, signature = ticket.partition(".")
    if not (until.isascii() and until.isdigit() and len(until) < 20) or int(until) < time.time():
        return False
    return hmac.compare_digest(signature.encode(), _signature(name, int(until)).encode())


def list_reports(home: Path) -> tuple[list[ReportEntry], int]:
    """The newest reports, and how many older ones there are."""
    found = [(path, _written(path).st_mtime) for path in _folders(home / "reports")]
    found.sort(key=lambda pair: (-pair[1], pair[0].name))
    return [_entry(path) for path, _ in found[:LISTED]], max(0, len(found) - LISTED)


def report_file(home: Path, name: str, file: str) -> Path:
    """A file of a report that may be given out, or ``NotFound``; never one behind a link."""
    above = (home / "reports").resolve()
    path = above / name / file
    plain = _NAME.fullmatch(name) and _DOWNLOADS.fullmatch(file) and ".." not in path.parts
    if not plain or not path.is_file() or path.resolve() != path:
        raise _missing()
    return path


def _missing() -> NotFound:
    return NotFound("there is no such report or file: GET /api/dartboard/reports lists them")


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _folders(above: Path) -> Iterator[Path]:
    """Folders that look like reports, finished or begun."""
    if not above.is_dir():
        return
    for path in above.iterdir():
        named = _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        if named and any((path / name).exists() for name in ("results.json", "report.html", "parts")):
            yield path


def _written(folder: Path) -> os.stat_result:
    """When the results were written; of an unfinished report, when it was begun."""
    results = folder / "results.json"
    return (results if _is_file(results) else folder).lstat()


def _entry(folder: Path) -> ReportEntry:
    results = folder / "results.json"
    written = _written(folder)
    if _is_file(results):
        headlines, problem = _read(results, written.st_mtime_ns, written.st_size)
    else:
        headlines, problem = [], "is not finished: the same command with --resume goes on"
    return ReportEntry(
        name=folder.name,
        created=written.st_mtime,
        page=_is_file(folder / "report.html"),
        files=sorted(_downloads(folder)),
        headlines=headlines,
        problem=problem,
    )


@lru_cache(maxsize=LISTED)
def _read(results: Path, changed: int, size: int) -> tuple[list[ReportHeadline], str | None]:
    """The headline figures of a file as it was at a time."""
    if size > _LARGEST:
        return [], f"results.json has more than {_LARGEST:,} bytes"
    try:
        found = orjson.loads(results.read_bytes())
        return [_headline(record) for record in found["datasets"]], None
    except (OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return [], "results.json cannot be read: write the report again with this version"


def _headline(record: dict[str, Any]) -> ReportHeadline:
    return ReportHeadline(
        dataset=record["dataset"],
        chunks=record["chunks"],
        judged=record["judged"],
        measure=record["measures"][record["headline"]["quality"]],
        reference=record["reference"],
        sentences=sentences(record),
        rows=[ReportRow.model_validate(row, from_attributes=True) for row in rows(record)],
    )


def _downloads(folder: Path) -> Iterator[str]:
    """Files that can be asked for, most of them the runs; no more than a reader would look through."""
    paths = chain.from_iterable(folder.glob(pattern) for pattern in ("*", "per_query/*", "runs/*/*"))
    names = ((path, path.relative_to(folder).as_posix()) for path in paths)
    fit = (name for path, name in names if _DOWNLOADS.fullmatch(name) and _is_file(path))
    return islice(fit, _MOST_FILES)
