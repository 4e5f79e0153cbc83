"""Reports of ``dartboard eval``: a list with their headlines, their pages, their files.

A report's page has its style inside and nothing else, so it is served under a policy of its own: no script,
nothing fetched, an origin of its own (``sandbox``), framed by our pages only. The policy of our pages stays
as strict as it is. A frame cannot send a key; it is opened at an address with a ticket, which is good for
one report and a few minutes.
"""

import hmac
import secrets
import time
from functools import cache
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import FileResponse, Response

from dartboard.api.auth import reader
from dartboard.api.errors import Unauthorized
from dartboard.api.report_folders import list_reports, report_file
from dartboard.api.schemas.reports import ReportList, ReportTicket
from dartboard.api.service import Service, service_of

router = APIRouter(prefix="/api/dartboard", tags=["reports"])

Name = Annotated[str, Path(description="The report's name.", examples=["scifact"])]
File = Annotated[str, Path(description="A file of the report.", examples=["results.json"])]

TICKET_SECONDS = 300
PAGE_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "unsafe-none",
    "Cache-Control": "no-store",
}
"""A sandboxed page that is opened in a tab of its own may have no opener policy: browsers refuse it."""
_TYPES = {".json": "application/json", ".md": "text/markdown; charset=utf-8", ".trec": "text/plain"}


@router.get(
    "/reports", operation_id="list_reports", dependencies=[Depends(reader)], response_model=ReportList
)
async def reports(service: Annotated[Service, Depends(service_of)]) -> ReportList:
    """The reports in the service's home, newest first, with their headline figures."""
    found, more = await service.run(list_reports, service.settings.home)
    return ReportList(reports=found, more=more)


@router.post(
    "/reports/{name}/ticket",
    operation_id="report_ticket",
    dependencies=[Depends(reader)],
    response_model=ReportTicket,
)
async def ticket(name: Name, service: Annotated[Service, Depends(service_of)]) -> ReportTicket:
    """An address under which a frame can show the report's page, for a few minutes."""
    await service.run(report_file, service.settings.home, name, "report.html")
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
async def page(name: Name, service: Annotated[Service, Depends(service_of)]) -> FileResponse:
    """The page of a report: it stands alone, and its policy allows it nothing but its own style."""
    path = await service.run(report_file, service.settings.home, name, "report.html")
    return FileResponse(path, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@router.get(
    "/reports/{name}/{file:path}",
    operation_id="download_report_file",
    dependencies=[Depends(reader)],
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
async def download(name: Name, file: File, service: Annotated[Service, Depends(service_of)]) -> FileResponse:
    """A file of a report: `results.json`, `report.md`, `per_query/…`, `runs/…` (TREC)."""
    path = await service.run(report_file, service.settings.home, name, file)
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    return FileResponse(path, media_type=kind, filename=f"{name}-{path.name}")


@cache
def _secret() -> bytes:
    """What tickets are signed with; it lasts as long as the process."""
    return secrets.token_bytes(32)


def _signature(name: str, until: int) -> str:
    return hmac.new(_secret(), f"{until} {name}".encode(), "sha256").hexdigest()


def _valid(name: str, ticket: str) -> bool:
    until, _, signature = ticket.partition(".")
    if not (until.isascii() and until.isdigit() and len(until) < 20) or int(until) < time.time():
        return False
    return hmac.compare_digest(signature.encode(), _signature(name, int(until)).encode())
