"""The files of a multipart body straight to disk, counted while they arrive; nothing is held in memory.

python-multipart's ``FormParser`` keeps fields that are no files in memory, however long, so its parser is
used, and such fields are read over.

A client's name for a file is a wish, never a path. Its folders are kept (``handbook/install.md``), whatever
leads elsewhere is not. A second file of one name gets a number: ``notes (2).txt``, also where a file system
takes ``Notes.txt`` for the same.
"""

import re
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from dartboard.api.errors import BadRequest, Invalid, UnsupportedType

MOST_FILES = 10_000
_MOST_PARTS = 20_000
_SEGMENT_BYTES = 180
"""File systems take 255; a number may have to be added."""
_DEEPEST = 24
_DROPPED = ("Cc", "Cf", "Cs")
"""Control characters, marks without a shape (those that turn the direction of writing), half surrogates."""
_JOINERS = "\u200c\u200d"
"""Marks without a shape that belong to words and to pictures."""


async def receive_files(request: Request, folder: Path) -> tuple[list[str], int]:
    """Write the files of a request below ``folder``: their names there, and their size in all."""
    writer = _Writer(request.headers.get("content-type", ""), folder)
    try:
        async for block in request.stream():
            await run_in_threadpool(writer.write, block)
    finally:
        writer.close()
    if not writer.ended:
        raise BadRequest("the form breaks off before its end: send it again")
    if not writer.files:
        raise Invalid("there is no file in the form: send at least one part with a file name", field="files")
    return writer.files, writer.bytes


class _Writer:
    """A parser whose parts go to disk."""

    def __init__(self, content_type: str, folder: Path) -> None:
        from python_multipart.exceptions import FormParserError
        from python_multipart.multipart import MultipartParser, parse_options_header

        self._options = parse_options_header
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise UnsupportedType("send files as a form: Content-Type: multipart/form-data")
        self.files: list[str] = []
        self.bytes = 0
        self.ended = False
        self._bad: type[Exception] = FormParserError
        self._folder = folder
        self._taken: set[str] = set()
        self._parts = 0
        self._name, self._value, self._disposition = bytearray(), bytearray(), ""
        self._stream: IO[bytes] | None = None
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self.close,
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(options.get(b"boundary", b""), callbacks)
        except FormParserError as error:
            raise BadRequest("the Content-Type of a form names its boundary") from error

    def write(self, block: bytes) -> None:
        """Take the next bytes of the body."""
        try:
            self._parser.write(block)
        except self._bad as error:
            raise BadRequest("the body is not a form (multipart/form-data) that can be read") from error

    def close(self) -> None:
        """End the file that is being written, if any."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _end(self) -> None:
        self.ended = True

    def _begin(self) -> None:
        self._parts += 1
        self._disposition = ""
        if self._parts > _MOST_PARTS:
            raise Invalid(f"a form may have {_MOST_PARTS:,} parts: send several", field="files")

    def _header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value.decode("latin-1")
        self._name.clear()
        self._value.clear()

    def _open(self) -> None:
        given = self._options(self._disposition)[1].get(b"filename")
        if not given:
            return  # a field of the form, or a file input that was left empty
        if len(self.files) >= MOST_FILES:
            raise Invalid(f"one upload takes {MOST_FILES:,} files: send several", field="files")
        name = unique_name(safe_name(_text(given)), self._taken)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("xb")
        self.files.append(name)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._stream is not None:
            self._stream.write(data[start:end])
            self.bytes += end - start


def safe_name(given: str) -> str:
    """A relative name with forward slashes that stays below its folder, whatever was given."""
    for code, sign in (("%22", '"'), ("%0D", ""), ("%0A", ""), ("%0d", ""), ("%0a", "")):
        given = given.replace(code, sign)  # what browsers write for quotes and line ends
    kept = [segment for part in re.split(r"[/\\]+", given) if (segment := _segment(part))]
    return "/".join(kept[-_DEEPEST:])[-1000:].lstrip("/") or "unnamed"


def unique_name(name: str, taken: set[str]) -> str:
    """The name, with a number where a file of it, or of a folder of it, was taken; all are added.

    ``taken`` has files as they are and folders with a slash at their end, as a file system that is careless
    about case compares them.
    """
    *folders, last = name.split("/")
    above = ""
    for folder in folders:
        found, number = folder, 1
        while _key(above + found) in taken:  # a file stands there
            number += 1
            found = f"{folder} ({number})"
        above += f"{found}/"
        taken.add(_key(above))
    stem, suffix = _split(last)
    found, number = last, 1
    while _key(above + found) in taken or _key(f"{above}{found}/") in taken:
        number += 1
        found = f"{stem} ({number}){suffix}"
    taken.add(_key(above + found))
    return above + found


def _text(name: bytes) -> str:
    """Names are UTF-8 today; older clients send Latin-1."""
    with suppress(UnicodeDecodeError):
        return name.decode("utf-8")
    return name.decode("latin-1")


def _segment(part: str) -> str:
    """One folder or file name; empty where nothing of it can be used."""
    text = unicodedata.normalize("NFC", part)
    text = "".join(sign for sign in text if sign in _JOINERS or unicodedata.category(sign) not in _DROPPED)
    text = re.sub(r"^[A-Za-z]:", "", text).strip()
    text = text.rstrip(" .")  # Windows would drop them behind our back; "." and ".." go with them
    if len(text.encode()) <= _SEGMENT_BYTES:
        return text
    stem, suffix = _split(text)
    room = _SEGMENT_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + suffix


def _split(text: str) -> tuple[str, str]:
    """Stem and suffix; a long suffix is no suffix."""
    stem, dot, suffix = text.rpartition(".")
    return (stem, dot + suffix) if stem and len(suffix.encode()) <= 16 else (text, "")


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())
