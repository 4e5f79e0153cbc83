"""Bytes to text: a byte-order mark decides, then UTF-8, then cp1252, with a note where it was a guess."""

import codecs
from contextlib import suppress

from dartboard.errors import IngestError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(data: bytes, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and notes on what was guessed. ``declared`` is what the document says of itself."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decode_marked(data, encoding)
    if b"\x00" in data:
        raise IngestError("binary file: it contains NUL bytes")
    if declared and not declared.lower().startswith(("utf-16", "utf-32")):  # those would show NUL bytes
        with suppress(UnicodeError, LookupError):
            return data.decode(declared), ()
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8"), ()
    try:
        return data.decode("cp1252"), (
            "not UTF-8: read as cp1252, a guess: save it as UTF-8 if letters are wrong",
        )
    except UnicodeDecodeError:
        return data.decode("latin-1"), (
            "neither UTF-8 nor cp1252: read as latin-1, a guess: save it as UTF-8 if letters are wrong",
        )


def _decode_marked(data: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return data.decode(encoding), ()
    except UnicodeDecodeError as error:
        text = data.decode(encoding, errors="replace")
        return text, (f"marked as {encoding}, damaged at byte {error.start}: the unreadable is left out",)
