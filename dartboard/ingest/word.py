"""DOCX: paragraphs, headings by their styles, tables as lines with cells between bars."""

import io
import re
import zipfile
from typing import Any

from dartboard.errors import IngestError, MissingExtraError
from dartboard.ingest.cleaning import clean, one_line
from dartboard.ingest.documents import Section
from dartboard.ingest.headings import TextBuilder, sections_of

_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_MOST_UNPACKED = 500_000_000


def read_docx(data: bytes) -> tuple[str, tuple[Section, ...], str]:
    """Text, sections and title."""
    try:
        import docx
    except ImportError as error:
        raise MissingExtraError("python-docx", "docs", "reading DOCX") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > _MOST_UNPACKED:
            raise IngestError(f"unpacks to {unpacked:,} bytes, more than {_MOST_UNPACKED:,}")
        document = docx.Document(io.BytesIO(data))
        builder = _read_body(document)
        title = one_line(document.core_properties.title or "")
    except IngestError:
        raise
    except Exception as error:  # a broken file can fail anywhere in the parser
        raise IngestError(f"is no readable DOCX: {type(error).__name__}: {error}") from error
    first = next((words for *_, words in builder.headings), "")
    return builder.text, sections_of(builder.text, builder.headings), title or first


def _read_body(document: Any) -> TextBuilder:
    from docx.table import Table

    builder = TextBuilder()
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            builder.add("\n".join(filter(None, map(_row, block.rows))))
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


def _row(row: Any) -> str:
    """A table's row; a cell that spans several columns counts once."""
    cells: list[Any] = []
    for cell in row.cells:
        if not cells or cell._tc is not cells[-1]._tc:
            cells.append(cell)
    return " | ".join(one_line(cell.text) for cell in cells).strip(" |")
