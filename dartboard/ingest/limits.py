"""Limits on the memory that one file may take: text, tags, values and passages are counted, not only bytes.

A file of a few kB can expand to gigabytes of text (compressed, or drawn a million times), and parsed markup
takes a hundred times its size. Content above a limit is skipped with a message that names the limit.
"""

import json
from typing import Any

from dartboard.ingest.documents import ReadError

MAX_CHARACTERS = 20_000_000
"""Maximum characters of one text: about ten thousand pages."""
MAX_TAGS = 500_000
"""Tags, attributes, comments and text nodes of an HTML page; each takes about 400 bytes when parsed."""
MAX_VALUES = 1_000_000
"""Values of a JSON text, and separators in a line of CSV."""
MAX_FIELDS = 10_000
"""Fields of a row."""
MAX_ROWS = 1_000_000
"""Rows of a file."""
MAX_HEADINGS = 50_000
"""Headings that open a section; later ones are normal text."""
MAX_TITLE = 1_000
"""Characters of a title or heading; every passage has a copy."""
MAX_METADATA = 64 * 1024
"""Bytes of a document's metadata as JSON; every passage has a copy."""


class TooLargeError(ReadError):
    """A file, or a part of it, exceeds a memory limit."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "size")


def check_characters(count: int, most: int) -> None:
    """Raise if a text is too long to be split."""
    if count > most:
        raise TooLargeError(
            f"holds more than {most:,} characters of text (max_characters): split it into smaller files"
        )


def check_json(text: str) -> None:
    """Raise for too many JSON values before they are parsed: an empty list takes 60 bytes in memory."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MAX_VALUES:
        raise TooLargeError(f"holds more than {MAX_VALUES:,} JSON values: split it")


def check_metadata_size(metadata: Any) -> None:
    """Raise if metadata is too large to be stored with every passage of its document."""
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > MAX_METADATA:
        raise TooLargeError(
            f"has {size:,} bytes of metadata, which every passage would carry; at most {MAX_METADATA:,}: "
            "shorten them, or make them part of the text"
        )
