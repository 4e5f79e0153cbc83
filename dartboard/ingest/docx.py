"""DOCX: paragraphs, headings by style, and tables as lines with cells between bars."""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from dartboard.deadline import check
from dartboard.errors import DeadlineError, IngestError, MissingExtraError
from dartboard.ingest.documents import Section
from dartboard.ingest.limits import MAX_CHARACTERS, MAX_TITLE, TooLargeError, check_characters
from dartboard.ingest.sections import TextBuilder
from dartboard.ingest.text import clean, one_line

_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_MOST_UNPACKED = 100_000_000
"""Maximum unpacked bytes, including pictures: python-docx holds them in memory."""
_MOST_MARKS = 1_000_000
"""Maximum number of ``<`` and ``=`` in all XML parts: each is an element, its end or an attribute, and takes
up to 200 bytes when parsed. A thousand pages have about half as many.
"""
_BLOCK = 1 << 20
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")
_EBCDIC = b"\x4c\x6f\xa7\x94"
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([^"']+)""")
_ENCODINGS = (b"utf-8", b"utf-16", b"us-ascii", b"iso-8859-1")
"""Encodings where ``<`` is that byte; elements of others cannot be counted."""


def read_docx(data: bytes, max_characters: int = MAX_CHARACTERS) -> tuple[str, tuple[Section, ...], str]:
    """Text, sections and title."""
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
            block = part.read(_BLOCK)
            if block.startswith(_PICTURES):
                continue
            declared = _ENCODING.search(block[:200])
            if block.startswith(_EBCDIC) or (declared and declared[1].lower() not in _ENCODINGS):
                raise IngestError(f"{entry.filename} is not UTF-8, as parts of a DOCX have to be")
            while block:
                check()
                marks += block.count(b"<") + block.count(b"=")
                if marks > _MOST_MARKS:
                    raise TooLargeError(
                        f"holds more than {_MOST_MARKS:,} XML elements and attributes: split the document"
                    )
                block = part.read(_BLOCK)


def _read_body(document: Any, max_characters: int) -> TextBuilder:
    from docx.table import Table

    builder = TextBuilder()
    for block in document.iter_inner_content():
        check()
        if isinstance(block, Table):
            builder.add("\n".join(filter(None, _rows(block, max_characters))))
            continue
        style = (block.style.name or "") if block.style is not None else ""
        text = clean(block.text)
        if style == "Title":
            builder.add_heading(0, one_line(text))
        elif found := _HEADING.match(style):
            builder.add_heading(int(found[1]), one_line(text))
        else:
            builder.add(text)
        check_characters(builder.length, max_characters)
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
        line = " | ".join(here.values()).strip(" |")
        length += len(line)
        check_characters(length, max_characters)
        above = here
        yield line
