"""The parts of a multipart body straight into files, counted while they arrive.

Nothing is held in memory and nothing is parsed twice: whatever arrives is written below one folder. The parts
of a form that are no files are read over. (Starlette's own form keeps up to a megabyte of each file in
memory, and its name as the client sent it.)

A client's name for a file is a wish, never a path. Its folders are kept (``handbook/install.md``), whatever
leads elsewhere is not: roots, drives, ``..``, control characters, marks that turn the direction of writing.
Two files of one name are kept apart: ``notes.txt`` and ``notes (2).txt``, also where a file system takes
``Notes.txt`` for the same.
"""

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from dartboard.api.errors import BadRequest, Invalid, UnsupportedType

MOST_FILES = 10_000
_MOST_PARTS = 20_000
UNNAMED = "unnamed"

_DEEPEST = 24
_SEGMENT_BYTES = 180
"""File systems take 255; a number may have to be added."""
_NAME_BYTES = 1000
_DROPPED = ("Cc", "Cf", "Cs")
"""Control characters, marks without a shape, half surrogates."""
_JOINERS = "\u200c\u200d"
"""Marks without a shape that belong to words and to pictures."""
_ESCAPED = {"%22": '"', "%0D": "", "%0A": "", "%0d": "", "%0a": ""}
"""What browsers write for quotes and line ends in the name of a part."""


@dataclass(slots=True)
class Received:
    """What has arrived: names relative to the folder, in the order of the parts, and their size in all."""

    files: list[str] = field(default_factory=list)
    bytes: int = 0


async def receive_files(request: Request, folder: Path) -> Received:
    """Write the files of a request below ``folder``; the guard of bodies limits how large they may be."""
    writer = _Writer(_boundary(request.headers.get("content-type", "")), folder)
    try:
        async for block in request.stream():
            await run_in_threadpool(writer.write, block)
        writer.finish()
    finally:
        writer.close()
    if not writer.received.files:
        raise Invalid("there is no file in the form: send at least one part with a file name", field="files")
    return writer.received


def _boundary(content_type: str) -> bytes:
    from python_multipart.multipart import parse_options_header

    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise UnsupportedType("send files as a form: Content-Type: multipart/form-data")
    if not options.get(b"boundary"):
        raise BadRequest("the Content-Type of a form names its boundary, and this one does not")
    return options[b"boundary"]


class _Writer:
    """A parser whose parts go to disk."""

    def __init__(self, boundary: bytes, folder: Path) -> None:
        from python_multipart.exceptions import FormParserError
        from python_multipart.multipart import MultipartParser

        self.received = Received()
        self._bad: type[Exception] = FormParserError
        self._folder = folder
        self._names = UniqueNames()
        self._parts = 0
        self._ended = False
        self._header = bytearray()
        self._value = bytearray()
        self._disposition = ""
        self._stream: IO[bytes] | None = None
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self.close,
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError as error:
            raise BadRequest("the boundary of the form cannot be used") from error

    def write(self, block: bytes) -> None:
        """Take the next bytes of the body."""
        try:
            self._parser.write(block)
        except self._bad as error:
            raise BadRequest("the body is not a form (multipart/form-data) that can be read") from error

    def finish(self) -> None:
        """The body has ended, and so must the form: half a file is no file."""
        if not self._ended:
            raise BadRequest("the form breaks off before its end: send it again")

    def close(self) -> None:
        """End the file that is being written, if any."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _end(self) -> None:
        self._ended = True

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise Invalid(f"a form may have {_MOST_PARTS:,} parts: send several", field="files")
        self._disposition = ""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value.decode("latin-1")
        self._header.clear()
        self._value.clear()

    def _open(self) -> None:
        from python_multipart.multipart import parse_options_header

        _, options = parse_options_header(self._disposition)
        given = options.get(b"filename")
        if not given:
            return  # a field of the form, or a file input that was left empty
        if len(self.received.files) >= MOST_FILES:
            raise Invalid(f"one upload takes {MOST_FILES:,} files: send several", field="files")
        name = self._names.take(safe_name(_text(given)))
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("xb")
        self.received.files.append(name)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is not None:
            self._stream.write(data[start:end])
            self.received.bytes += end - start


def _text(name: bytes) -> str:
    """Names are UTF-8 today; older clients send Latin-1."""
    with suppress(UnicodeDecodeError):
        return name.decode("utf-8")
    return name.decode("latin-1")


def safe_name(given: str) -> str:
    """A relative name with forward slashes that stays below its folder, whatever was given."""
    for code, sign in _ESCAPED.items():
        given = given.replace(code, sign)
    parts = [_segment(part) for part in re.split(r"[/\\]+", given)]
    kept = [part for part in parts if part][-_DEEPEST:]
    while len(kept) > 1 and sum(len(part.encode()) + 1 for part in kept) > _NAME_BYTES:
        kept.pop(0)
    return "/".join(kept) or UNNAMED


class UniqueNames:
    """Names that were given out, so that none is given twice and no file stands where a folder is."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._last: dict[str, int] = {}

    def take(self, name: str) -> str:
        """The name, with a number where it is taken."""
        parts = name.split("/")
        for depth in range(1, len(parts)):
            parts[:depth] = self._free(parts[:depth], folder=True)
            self._folders.add(_key(parts[:depth]))
        parts = self._free(parts, folder=False)
        self._files.add(_key(parts))
        return "/".join(parts)

    def _free(self, parts: list[str], *, folder: bool) -> list[str]:
        """The parts, the last one numbered until nothing stands there; a folder may stand there twice."""
        wanted = _key(parts)
        *above, last = parts
        found = parts
        while _key(found) in self._files or (not folder and _key(found) in self._folders):
            number = self._last[wanted] = self._last.get(wanted, 1) + 1
            stem, suffix = (last, "") if folder else _split(last)
            found = [*above, f"{stem} ({number}){suffix}"]
        return found


def _segment(part: str) -> str:
    """One folder or file name; empty where nothing of it can be used."""
    text = unicodedata.normalize("NFC", part)
    text = "".join(sign for sign in text if sign in _JOINERS or unicodedata.category(sign) not in _DROPPED)
    text = re.sub(r"^[A-Za-z]:", "", text).strip()
    text = text.rstrip(" .")  # Windows would drop them behind our back; "." and ".." go with them
    return _cut(text)


def _cut(text: str) -> str:
    if len(text.encode()) <= _SEGMENT_BYTES:
        return text
    stem, suffix = _split(text)
    room = _SEGMENT_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + suffix


def _split(text: str) -> tuple[str, str]:
    """Stem and suffix; a long suffix is no suffix."""
    stem, dot, suffix = text.rpartition(".")
    return (stem, dot + suffix) if stem and len(suffix.encode()) <= 16 else (text, "")


def _key(parts: Sequence[str]) -> str:
    """What a file system that is careless about case would compare."""
    return unicodedata.normalize("NFC", "/".join(parts).casefold())
