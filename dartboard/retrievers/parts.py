"""What a record says in its code, its comments and its prose: extractors for several vectors a passage."""

import re
from collections.abc import Callable

from dartboard.errors import ConfigError
from dartboard.stores import Record

_COMMENT = re.compile(
    r"""
      "{3}(?P<double>.*?)"{3}            # Python's doc strings
    | '{3}(?P<single>.*?)'{3}
    | /\*+(?P<block>.*?)\*/              # C and its children
    | <!--(?P<markup>.*?)-->
    | (?:^|(?<=\s))(?:\#(?!\!|include|define)|//|--)(?P<line>[^\n]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n(?P<code>.*?)^(?:```|~~~)[ \t]*$", re.DOTALL | re.MULTILINE)


def whole_text(record: Record) -> str:
    """The text as it is."""
    return record.text


def comments(record: Record) -> str:
    """The comments and doc strings of source code, their marks left out."""
    found = (next(filter(None, match.groups()), "") for match in _COMMENT.finditer(record.text))
    return "\n".join(line for text in found if (line := text.strip()))


def code(record: Record) -> str:
    """Source code without comments and doc strings; of Markdown with fenced code, that code alone."""
    if fenced := [match["code"] for match in _FENCE.finditer(record.text)]:
        return "\n".join(fenced).strip()
    bare = _COMMENT.sub("", record.text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


def prose(record: Record) -> str:
    """Markdown without its fenced code."""
    return _FENCE.sub("", record.text).strip()


def not_by_name(record: Record) -> str | None:
    """Stands for the extractors of a retriever that was opened by its name: those are code, kept nowhere."""
    raise ConfigError(
        "a multi-vector retriever that was opened by its name can search, but not index: how to get the "
        "parts of a text is code. Pass retriever=MultiVectorRetriever(model, {…}) with the extractors"
    )


def metadata_field(name: str) -> Callable[[Record], str | None]:
    """An extractor: the record's metadata of that name, where it is text."""

    def extract(record: Record) -> str | None:
        value = record.metadata.get(name)
        return value if isinstance(value, str) else None

    return extract
