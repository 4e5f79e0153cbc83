"""Extractors of code, comments and prose, for several vectors per passage."""

import re
from collections.abc import Callable

from dartboard.errors import ConfigError
from dartboard.stores import Record

_COMMENT = re.compile(
    r"""
      "{3}(?P<double>.*?)"{3}            # Python docstrings
    | '{3}(?P<single>.*?)'{3}
    | /\*+(?P<block>.*?)\*/              # C and similar languages
    | <!--(?P<markup>.*?)-->
    | (?:^|(?<=\s))(?:\#(?!\!|include|define)|//|--)(?P<line>[^\n]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n(?P<code>.*?)^(?:```|~~~)[ \t]*$", re.DOTALL | re.MULTILINE)


def whole_text(record: Record) -> str:
    """The unchanged text."""
    return record.text


def comments(record: Record) -> str:
    """The comments and docstrings of source code, without their markers."""
    found = (next(filter(None, match.groups()), "") for match in _COMMENT.finditer(record.text))
    return "\n".join(line for text in found if (line := text.strip()))


def code(record: Record) -> str:
    """Source code without comments and docstrings; for Markdown with fenced code, only that code."""
    if fenced := [match["code"] for match in _FENCE.finditer(record.text)]:
        return "\n".join(fenced).strip()
    bare = _COMMENT.sub("", record.text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


def prose(record: Record) -> str:
    """Markdown without its fenced code."""
    return _FENCE.sub("", record.text).strip()


def not_by_name(record: Record) -> str | None:
    """Placeholder for the extractors of a retriever opened by name: they are code and are not stored."""
    raise ConfigError(
        "a multi-vector retriever that was opened by name can search, but not index, because the extractors "
        "of its parts are code. Pass retriever=MultiVectorRetriever(model, {…}) with the extractors"
    )


def metadata_field(name: str) -> Callable[[Record], str | None]:
    """An extractor of the metadata field of that name, if it is text."""

    def extract(record: Record) -> str | None:
        value = record.metadata.get(name)
        return value if isinstance(value, str) else None

    return extract
