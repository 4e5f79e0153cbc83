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
import stat
import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from multiprocessing import current_process
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as PathParameter
from pydantic import Field
from starlette.responses import FileResponse, Response

from dartboard.api.errors import ApiError, NotFound, Unauthorized
from dartboard.api.guards.authentication import READ, reader
from dartboard.api.json_body import loads
from dartboard.api.schemas import ResponseModel
from dartboard.api.service import ServiceDep, in_worker
from dartboard.evaluation.summary import rows, sentences


class ReportRow(ResponseModel):
    """A system in the headline table."""

    system: str = Field(description="The system.", examples=["dartboard"])
    mean: float = Field(description="Its mean of the headline measure.", examples=[0.795])
    low: float = Field(description="Lower end of the 95 % interval.", examples=[0.751])
    high: float = Field(description="Upper end of the 95 % interval.", examples=[0.836])
    difference: float = Field(description="Against the reference.", examples=[-0.021])
    verdict: Literal["reference", "ahead", "behind", "no difference"] = Field(
        description="What the corrected test says of it.", examples=["behind"]
    )
    wins: int = Field(description="Queries on which it beats the reference.", examples=[12])
    ties: int = Field(description="Queries on which both are alike.", examples=[160])
    losses: int = Field(description="Queries on which the reference beats it.", examples=[28])


class ReportHeadline(ResponseModel):
    """One data set of a report."""

    dataset: str = Field(description="The data set.", examples=["scifact"])
    chunks: int = Field(description="Passages in its corpus.", examples=[5183])
    judged: int = Field(description="Queries with known answers.", examples=[300])
    measure: str = Field(description="The headline measure, as a reader calls it.", examples=["nDCG@5"])
    reference: str = Field(description="The system that others are compared with.", examples=["dartboard"])
    sentences: list[str] = Field(
        description="The result in words.", examples=[["dartboard reaches nDCG@5 .795 …"]]
    )
    rows: list[ReportRow] = Field(description="Best first.")


class ReportEntry(ResponseModel):
    """A report that is there."""

    name: str = Field(description="The folder that it lies in.", examples=["scifact-quick"])
    created: float = Field(description="When it was written, in seconds since 1970.", examples=[1763265600.0])
    page: bool = Field(description="Whether it has a page to look at.", examples=[True])
    files: list[str] = Field(
        description="What can be downloaded.", examples=[["results.json", "report.md", "timings.json"]]
    )
    headlines: list[ReportHeadline] = Field(description="One a data set.")
    problem: str | None = Field(
        None,
        description="Why there are no figures, where there are none.",
        examples=[None, "is not finished"],
    )


class ReportList(ResponseModel):
    """The reports, newest first."""

    reports: list[ReportEntry] = Field(description="Newest first.")
    more: int = Field(description="Older reports that the list leaves off.", examples=[0])


class ReportTicket(ResponseModel):
    """An address that shows a report for a few minutes without a key: a frame cannot send one."""

    url: str = Field(
        description="Where the page is.", examples=["/api/dartboard/reports/scifact-quick?ticket=1763…"]
    )
    seconds: int = Field(description="How long the address is good for.", examples=[300])


router = APIRouter(prefix="/api/dartboard", tags=["reports"])

Name = Annotated[str, PathParameter(description="The report's name.", examples=["scifact"])]
File = Annotated[str, PathParameter(description="A file of the report.", examples=["results.json"])]

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
@in_worker
def reports(service: ServiceDep) -> ReportList:
    """The reports in the service's home, newest first, with their headline figures."""
    found, more = list_reports(service.settings.home)
    return ReportList(reports=found, more=more)


@router.post("/reports/{name}/ticket", operation_id="report_ticket", dependencies=READ)
@in_worker
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
    ticket: Annotated[
        str | None, Query(max_length=200, description="From `POST …/ticket`.", examples=["1763265900.5f3a…"])
    ] = None,
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
@in_worker
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
@in_worker
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
    """A file of a report that may be given out, or ``NotFound``."""
    *above, last = (name, *file.split("/"))
    if not _NAME.fullmatch(name) or not _DOWNLOADS.fullmatch(file) or ".." in above:
        raise _missing()
    path = home / "reports"
    for step in above:
        path /= step
        if not _is_plain(path, stat.S_ISDIR):
            raise _missing()
    path /= last
    if not _is_plain(path, stat.S_ISREG):
        raise _missing()
    return path


def _missing() -> NotFound:
    return NotFound("there is no such report or file: GET /api/dartboard/reports lists them")


def _is_plain(path: Path, kind: Any) -> bool:
    """Whether the path is of this kind itself, not by way of a link."""
    try:
        return bool(kind(path.lstat().st_mode))
    except (OSError, ValueError):
        return False


def _folders(above: Path) -> Iterator[Path]:
    """Folders that look like reports, finished or begun."""
    if not above.is_dir():
        return
    for path in above.iterdir():
        named = _NAME.fullmatch(path.name) and _is_plain(path, stat.S_ISDIR)
        if named and any((path / name).exists() for name in ("results.json", "report.html", "parts")):
            yield path


def _written(folder: Path) -> os.stat_result:
    """When the results were written; of an unfinished report, when it was begun."""
    results = folder / "results.json"
    return (results if _is_plain(results, stat.S_ISREG) else folder).lstat()


def _entry(folder: Path) -> ReportEntry:
    results = folder / "results.json"
    written = _written(folder)
    if _is_plain(results, stat.S_ISREG):
        headlines, problem = _read(results, written.st_mtime_ns, written.st_size)
    else:
        headlines, problem = [], "is not finished: the same command with --resume goes on"
    return ReportEntry(
        name=folder.name,
        created=written.st_mtime,
        page=_is_plain(folder / "report.html", stat.S_ISREG),
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
        found = loads(results.read_bytes())
        return [_headline(record) for record in found["datasets"]], None
    except (ApiError, OSError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
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
    fit = (name for path, name in names if _DOWNLOADS.fullmatch(name) and _is_plain(path, stat.S_ISREG))
    return islice(fit, _MOST_FILES)
