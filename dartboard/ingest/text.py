"""Decode bytes to clean text, and convert metadata to plain JSON.

Decoding: a byte-order mark decides, then the encoding that the user names or the document declares, then
UTF-8, then cp1252, with a note for a guess. A detector (charset-normalizer) is not used: it got a German
sentence in cp1252 wrong.

Cleaning removes what a reader cannot see. Unicode is composed (NFC), so that one letter is one code point.
Control and format characters (zero-width spaces, soft hyphens, byte-order marks) and U+FFFD, the mark of an
earlier decoding error, are removed. Runs of spaces become one, and so do runs of empty lines. Words,
punctuation, symbols, lines and their indentation stay: they carry meaning in code, formulas and lists.

:func:`clean` does all of it. :func:`tidy` keeps spaces and lines, so that line numbers stay valid.
"""

import codecs
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from dartboard.errors import ConfigError
from dartboard.ingest.documents import ReadError

_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_INDENTED = re.compile(r"\n[^\S\n]")
_AFTER_LINE = re.compile(r"\n")
_SAFE_CUT = re.compile(r"\n|(?=[ -~])")
"""Where a text can be cut for cleaning: ASCII does not compose with the character before it."""
_BLOCK = 100_000
_NOT_PLAIN = re.compile(r"[^ -~\n\t]+")
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but needed by some scripts and emoji."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECODED_BLOCK = 1 << 20
_NOTES = {
    "cp1252": "not UTF-8: read as cp1252, a guess: if letters are wrong, name the encoding (--encoding)",
    "latin-1": "neither UTF-8 nor cp1252: read as latin-1, a guess: name the encoding (--encoding)",
}
_DEEPEST = 8
_LARGEST_INTEGER = 2**53


class Encoding(NamedTuple):
    """The encoding of bytes, and notes about a guess."""

    name: str
    errors: str = "strict"
    notes: tuple[str, ...] = ()


def check_encoding(name: str | None) -> None:
    """Check that a name is that of a text encoding of Python."""
    try:
        b"a".decode(name or "utf-8")  # raises for zlib and the like, which would decompress the data
    except (LookupError, ValueError):
        reason = f"encoding {name!r} is not known: try cp1251, shift_jis, gb18030 or another of Python's"
        raise ConfigError(reason, field="encoding") from None


def decode(data: bytes, named: str | None = None, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and notes about a guess.

    ``named`` is the encoding that the user named, ``declared`` what the document declares.
    """
    encoding = encoding_of(data, named, declared)
    return data.decode(encoding.name, encoding.errors), encoding.notes


def encoding_of(data: bytes, named: str | None = None, declared: str | None = None) -> Encoding:
    """The encoding of a text: its mark, the one named or declared, UTF-8, cp1252, latin-1."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            fault = _fault(data, name)
            if fault is None:
                return Encoding(name)
            note = f"marked as {name}, damaged at byte {fault}: unreadable parts are removed"
            return Encoding(name, "replace", (note,))
    if named:
        fault = _fault(data, named)
        if fault is None:
            return Encoding(named)
        return Encoding(named, "replace", (f"not {named} at byte {fault}: unreadable parts are removed",))
    if b"\x00" in data:
        raise ReadError("binary file: it contains NUL bytes", "binary")
    if declared and not declared.lower().startswith(("utf-16", "utf-32")):  # those would contain NUL bytes
        with suppress(ConfigError):
            check_encoding(declared)
            if _fault(data, declared) is None:
                return Encoding(declared, "replace")
    if _fault(data, "utf-8") is None:
        return Encoding("utf-8")
    name = "cp1252" if _fault(data, "cp1252") is None else "latin-1"
    return Encoding(name, notes=(_NOTES[name],))


def _fault(data: bytes, name: str) -> int | None:
    """The first byte that cannot be decoded."""
    decoder = codecs.getincrementaldecoder(name)()
    pending = 0  # bytes of a character that the previous block cut
    for start in range(0, max(1, len(data)), _DECODED_BLOCK):
        end = start + _DECODED_BLOCK
        try:
            decoder.decode(data[start:end], final=end >= len(data))
        except UnicodeError as error:
            return start - pending + (error.start if isinstance(error, UnicodeDecodeError) else 0)
        state = decoder.getstate()[0]
        pending = len(state) if isinstance(state, bytes) else 0
    return None


def tidy(text: str) -> str:
    """Remove invisible characters, keep lines and spaces; lines end with ``\\n``."""
    if len(text) <= _BLOCK:
        return _tidy(text)
    return "".join(_tidy(block) for block in _blocks(text, _SAFE_CUT, _BLOCK))


def clean(text: str) -> str:
    """The text as a reader sees it."""
    text = tidy(text)
    if "\n" not in text:
        return _without_runs(text).strip()
    blocks = _blocks(text, _AFTER_LINE)
    cleaned = _EMPTY_LINES.sub("\n\n", "".join(map(_clean_lines, blocks))).strip("\n")
    return cleaned if _INDENTED.search(cleaned) else cleaned.strip()


def one_line(text: str) -> str:
    """The text cleaned, for titles: without line breaks."""
    return _without_runs(tidy(text)).strip()


def _blocks(text: str, cut: re.Pattern[str], hard: int | None = None) -> Iterator[str]:
    """The text in blocks that end where ``cut`` matches, since a list of all words takes much memory.

    Without a match in the ``hard`` characters after a block, the block ends there.
    """
    start = 0
    while start < len(text):
        end = start + _BLOCK
        found = cut.search(text, end, len(text) if hard is None else end + hard)
        if found:
            end = found.end()
        elif hard is not None:
            end += hard
        else:
            end = len(text)
        yield text[start:end]
        start = end


def _tidy(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("\ufffd", "")
    if not text.isprintable():
        text = _NOT_PLAIN.sub(_seen, text.replace("\r\n", "\n").replace("\r", "\n"))
    return text


def _without_runs(text: str) -> str:
    """Replace every run of white space by one space; handles runs across blocks."""
    if len(text) <= _BLOCK:
        return " ".join(text.split())
    return " ".join(filter(None, (" ".join(block.split()) for block in _blocks(text, _SPACES))))


def _clean_lines(block: str) -> str:
    return "\n".join(map(_clean_line, block.split("\n")))


def _clean_line(line: str) -> str:
    body = line.strip()
    return line[: line.index(body)] + _without_runs(body) if body else ""


def _seen(run: re.Match[str]) -> str:
    return run[0] if run[0].isprintable() else "".join(map(_visible, run[0]))


def _visible(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") else character


def plain_json(value: Any, depth: int = 0) -> Any:
    """Convert values that stores reject (infinite, too deep, integers beyond a double) to text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _DEEPEST and isinstance(value, Mapping):
        pairs = ((plain_json(str(name)), inner) for name, inner in value.items())
        return {name: plain_json(inner, depth + 1) for name, inner in pairs if name}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [plain_json(inner, depth + 1) for inner in value]
    return plain_json(str(value))
