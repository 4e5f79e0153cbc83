"""Bytes to text: a byte-order mark decides, then UTF-8, then cp1252, with a note where it was a guess."""

import codecs
from contextlib import suppress
from typing import NamedTuple

from dartboard.errors import IngestError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BLOCK = 1 << 20
_GUESSES = {
    "cp1252": "not UTF-8: read as cp1252, a guess: save it as UTF-8 if letters are wrong",
    "latin-1": "neither UTF-8 nor cp1252: read as latin-1, a guess: save it as UTF-8 if letters are wrong",
}


class Encoding(NamedTuple):
    """How bytes are to be decoded, and notes on what was guessed."""

    name: str
    errors: str = "strict"
    notes: tuple[str, ...] = ()


def decode(data: bytes, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and notes on what was guessed. ``declared`` is what the document says of itself."""
    encoding = encoding_of(data, declared)
    return data.decode(encoding.name, encoding.errors), encoding.notes


def encoding_of(data: bytes, declared: str | None = None) -> Encoding:
    """The encoding of a text, which is not held in memory as a whole to find it out."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _marked(data, name)
    if b"\x00" in data:
        raise IngestError("binary file: it contains NUL bytes")
    if declared and not declared.lower().startswith(("utf-16", "utf-32")):  # those would show NUL bytes
        with suppress(LookupError, ValueError):  # not an encoding of text, or not one that Python knows
            b"a".decode(declared)  # refuses zlib and the like, which would unpack the data
            if _fault(data, declared) is None:
                return Encoding(declared, "replace")
    if _fault(data, "utf-8") is None:
        return Encoding("utf-8")
    name = "cp1252" if _fault(data, "cp1252") is None else "latin-1"
    return Encoding(name, notes=(_GUESSES[name],))


def _marked(data: bytes, name: str) -> Encoding:
    fault = _fault(data, name)
    if fault is None:
        return Encoding(name)
    note = f"marked as {name}, damaged at byte {fault}: the unreadable is left out"
    return Encoding(name, "replace", (note,))


def _fault(data: bytes, name: str) -> int | None:
    """The first byte that cannot be decoded."""
    decoder = codecs.getincrementaldecoder(name)()
    pending = 0  # bytes of a character that the block before broke off
    for start in range(0, max(1, len(data)), _BLOCK):
        end = start + _BLOCK
        try:
            decoder.decode(data[start:end], final=end >= len(data))
        except UnicodeError as error:
            return start - pending + (error.start if isinstance(error, UnicodeDecodeError) else 0)
        state = decoder.getstate()[0]
        pending = len(state) if isinstance(state, bytes) else 0
    return None
