"""DOCX as Markdown: paragraphs, headings by style, and tables as rows between bars."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from dartboard.deadline import check
from dartboard.errors import DeadlineError, IngestError, MissingExtraError
from dartboard.ingest.documents import (
    MAX_CHARACTERS,
    MAX_TITLE,
    Reading,
    TextBuilder,
    TooLargeError,
    check_characters,
)
from dartboard.ingest.text import clean, one_line

_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_MOST_UNPACKED = 100_000_000
"""Maximum unpacked bytes, including pictures: python-docx holds them in memory."""
_MOST_MARKS = 1_000_000
"""Maximum number of ``<`` and ``=`` in all parts: in XML each is an element, its end or an attribute, and
takes up to 200 bytes when parsed. A thousand pages have about half as many.
"""
_BLOCK = 1 << 20


def read_docx(data: bytes, max_characters: int = MAX_CHARACTERS) -> Reading:
    """Text, blocks and title."""
    try:
        import docx
    except ImportError as error:
        raise MissingExtraError("python-docx", "docs", "reading DOCX") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _check_size(archive)
        document = docx.Document(io.BytesIO(data))
        builder = _read_body(document, max_characters)
        title = one_line((document.core_properties.title or "")[:MAX_TITLE])
    except (IngestError, DeadlineError):
        raise
    except Exception as error:  # a broken file can fail anywhere in the parser
        raise IngestError(f"is not a readable DOCX: {type(error).__name__}: {error}") from error
    return builder.finish(title)


def _check_size(archive: zipfile.ZipFile) -> None:
    """Raise if the file is too large when unpacked or parsed; reads no more of a part than it declares."""
    unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > _MOST_UNPACKED:
        raise TooLargeError(f"unpacks to {unpacked:,} bytes, more than {_MOST_UNPACKED:,}: remove pictures")
    marks = 0
    for entry in archive.infolist():
        with archive.open(entry) as part:
            while block := part.read(_BLOCK):
                check()
                marks += block.count(b"<") + block.count(b"=")
                if marks > _MOST_MARKS:
                    raise TooLargeError(
                        f"holds more than {_MOST_MARKS:,} XML elements and attributes: split the document"
                    )


def _read_body(document: Any, max_characters: int) -> TextBuilder:
    from docx.table import Table

    builder = TextBuilder(max_characters)
    for block in document.iter_inner_content():
        check()
        if isinstance(block, Table):
            rows = list(_rows(block, max_characters))
            head = f"{rows[0]}\n" if rows else ""
            builder.add("\n".join(rows), "table", repeat=head)
            continue
        style = (block.style.name or "") if block.style is not None else ""
        text = clean(block.text)
        if style == "Title":
            builder.add_heading(0, one_line(text))
        elif found := _HEADING.match(style):
            builder.add_heading(int(found[1]), one_line(text))
        else:
            builder.add(text)
    return builder


def _rows(table: Any, max_characters: int) -> Iterator[str]:
    """A table's rows. A cell that spans columns counts once; one that spans rows is in each of them.

    Columns are counted, not created: a cell may declare a span of a billion columns.
    """
    from docx.table import _Cell

    length = 0
    above: dict[int, str] = {}
    for row in table.rows:
        check()
        column = int(getattr(row._tr, "grid_before", 0))
        here: dict[int, str] = {}
        for cell in row._tr.tc_lst:
            goes_on = cell.vMerge == "continue" and column in above
            here[column] = above[column] if goes_on else one_line(_Cell(cell, table).text)
            column += int(cell.grid_span)
        above = here
        if any(here.values()):
            line = f"| {' | '.join(here.values())} |"
            length += len(line)
            check_characters(length, max_characters)
            yield line
