"""How large one file may become in memory: text, tags, values and passages are counted, not only bytes.

A file of a few kB can hold a text of gigabytes (compressed, or drawn a million times), and parsed markup
takes a hundred times its size. What exceeds a limit is left out with a message that names the limit.
"""

import json
from typing import Any

from dartboard.ingest.documents import ReadError

MAX_CHARACTERS = 20_000_000
"""Of one text: about ten thousand pages."""
MAX_TAGS = 500_000
"""Tags, attributes, comments and stretches of text of an HTML page; each takes some 400 bytes when parsed."""
MAX_VALUES = 1_000_000
"""Values of a JSON text, and separators of a line of CSV."""
MAX_FIELDS = 10_000
"""Of a row."""
MAX_ROWS = 1_000_000
"""Of a file."""
MAX_HEADINGS = 50_000
"""That open a section; those behind them are text like any other."""
MAX_TITLE = 1_000
"""Characters of a title or heading; every passage carries a copy."""
MAX_METADATA = 64 * 1024
"""Bytes of a document's metadata as JSON; every passage carries a copy."""


class TooLargeError(ReadError):
    """A file, or a part of it, takes more memory than it may."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "size")


def check_characters(count: int, most: int) -> None:
    """A text that is not too long to be split."""
    if count > most:
        raise TooLargeError(
            f"holds more than {most:,} characters of text (max_characters): split it into smaller files"
        )


def check_json(text: str) -> None:
    """JSON of not too many values, before it is parsed: an empty list takes sixty bytes in memory."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MAX_VALUES:
        raise TooLargeError(f"holds more than {MAX_VALUES:,} JSON values: split it")


def check_metadata_size(metadata: Any) -> None:
    """Metadata that is small enough to be kept with every passage of its document."""
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > MAX_METADATA:
        raise TooLargeError(
            f"has {size:,} bytes of metadata, which every passage would carry; at most {MAX_METADATA:,}: "
            "shorten them, or make them part of the text"
        )
