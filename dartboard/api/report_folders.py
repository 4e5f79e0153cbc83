"""The folders that ``dartboard eval --out HOME/reports/NAME`` filled: what is in them, and nothing beside.

A name is one step down and never a link; neither is anything below it that is opened. So whatever a name
says, no file outside the folder of reports is read.
"""

import os
import re
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from dartboard.api.errors import ApiError, NotFound
from dartboard.api.json_body import loads
from dartboard.api.schemas.reports import ReportEntry, ReportHeadline, ReportRow
from dartboard.evaluation.summary import rows, sentences

LISTED = 200
_NAME = re.compile(r"[^\W_][\w .+=@,()~-]{0,127}", re.ASCII)
_DOWNLOADS = re.compile(
    r"results\.json|timings\.json|report\.md|report\.html|per_query/[^/]+\.json|runs/[^/]+/[^/]+\.trec"
)
_LARGEST = 32 * 1024 * 1024
_MOST_FILES = 2000


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
        if _NAME.fullmatch(path.name) and _is_plain(path, stat.S_ISDIR) and _has_any(path):
            yield path


def _has_any(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("results.json", "report.html", "parts"))


def _written(folder: Path) -> os.stat_result:
    """When the results were written; of an unfinished report, when it was begun."""
    results = folder / "results.json"
    return (results if _is_plain(results, stat.S_ISREG) else folder).lstat()


def _entry(folder: Path) -> ReportEntry:
    results = folder / "results.json"
    headlines: list[ReportHeadline] = []
    problem: str | None = None
    written = _written(folder)
    if _is_plain(results, stat.S_ISREG):
        headlines, problem = _read(results, written.st_mtime_ns, written.st_size)
    else:
        problem = "is not finished: the same command with --resume goes on"
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
        rows=[
            ReportRow(
                system=row.system,
                mean=row.mean,
                low=row.low,
                high=row.high,
                difference=row.difference,
                verdict=row.verdict,
                wins=row.wins,
                ties=row.ties,
                losses=row.losses,
            )
            for row in rows(record)
        ],
    )


def _downloads(folder: Path) -> Iterator[str]:
    """Files that can be asked for, most of them the runs; no more than a reader would look through."""
    patterns = ("*", "per_query/*", "runs/*/*")
    count = 0
    for pattern in patterns:
        for path in folder.glob(pattern):
            name = path.relative_to(folder).as_posix()
            if count < _MOST_FILES and _DOWNLOADS.fullmatch(name) and _is_plain(path, stat.S_ISREG):
                count += 1
                yield name
