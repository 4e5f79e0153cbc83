"""Read text files row by row; errors name the file and the line.

Rows are read one at a time, so a file may be larger than memory. ``.gz`` files are decompressed.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from dartboard.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, or an entry of an array (``unit`` is ``row``), counted from 1."""

    path: Path
    line: int
    unit: str = "line"

    def error(self, problem: str) -> DatasetError:
        """An error that starts with the file and the line."""
        return DatasetError(f"{self}: {problem}")

    def __str__(self) -> str:
        return f"{self.path}, {self.short()}"

    def short(self) -> str:
        """The line only, if the file is known."""
        return f"{self.unit} {self.line}"


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object and its place; its fields are checked when they are read."""

    place: Place
    fields: dict[str, Any]

    def text(self, *names: str, default: str | None = None) -> str:
        """The string under the first existing name; numbers are converted."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, str):
                return value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
            if value is not None:
                raise self.place.error(f"{name!r} must be a string, got {type(value).__name__}")
        if default is None:
            raise self.place.error(f"{' or '.join(map(repr, names))} is missing: every row needs it")
        return default

    def identifier(self, *names: str) -> str:
        """Like :meth:`text`, but not empty or NaN."""
        if any(isinstance(one := self.fields.get(name), float) and one != one for name in names):
            raise self.place.error(f"{names[0]!r} is NaN: every row needs a unique id")
        if not (value := self.text(*names)):
            raise self.place.error(f"{names[0]!r} is empty: every row needs a unique id")
        return value

    def list(self, name: str, *, required: bool = True) -> "list[Any]":
        """The list under ``name``; empty if it is missing and not ``required``."""
        value = self.fields.get(name)
        if value is None and not required:
            return []
        if not isinstance(value, list):
            found = "is missing" if value is None else f"is a {type(value).__name__}"
            raise self.place.error(f"{name!r} must be a list, but {found}")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """The object under ``name``; empty if it is missing."""
        value = self.fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.place.error(f"{name!r} must be an object, got {type(value).__name__}")
        return value


def lines(path: Path) -> Iterator[tuple[Place, str]]:
    """The non-blank lines without line ends."""
    with _open(path) as stream:
        for number, raw in enumerate(stream, start=1):
            place = Place(path, number)
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise place.error(f"not UTF-8 ({error.reason}): convert the file to UTF-8") from None
            if line.strip():
                yield place, line


def json_lines(path: Path) -> Iterator[Record]:
    """One JSON object per line."""
    for place, line in lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise place.error(f"not JSON ({error}): expected one object on the line") from None
        if not isinstance(value, dict):
            raise place.error(f"expected a JSON object, got {type(value).__name__}")
        yield Record(place, value)


def json_array(path: Path) -> Iterator[Record]:
    """The objects of a JSON array, or of a file with one object per line.

    An array is loaded whole; its rows are numbered, because their lines are unknown.
    """
    with _open(path) as stream:
        is_array = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    if not is_array:
        yield from json_lines(path)
        return
    try:
        with _open(path) as stream:
            rows = json.load(stream)
    except (ValueError, RecursionError) as error:
        raise Place(path, getattr(error, "lineno", 1)).error(f"not JSON ({error})") from None
    for number, row in enumerate(rows, start=1):
        place = Place(path, number, "row")
        if not isinstance(row, dict):
            raise place.error(f"expected an object, got {type(row).__name__}")
        yield Record(place, row)


def count_lines(path: Path) -> int:
    """The number of lines, without parsing; the last line needs no line end."""
    count, last = 0, b"\n"
    with _open(path) as stream:
        while block := stream.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def first_existing(folder: Path, names: list[str]) -> Path | None:
    """The first of these files in the folder, plain or compressed."""
    for name in names:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    return None


def need_file(path: Path, purpose: str) -> Path:
    """The path or its ``.gz`` version; if neither exists, an error that says what belongs there."""
    if found := first_existing(path.parent, [path.name]):
        return found
    raise DatasetError(f"{path} is missing: {purpose}")


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    """The decompressed file; errors while reading name it."""
    try:
        with gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb") as opened:
            yield cast(BinaryIO, opened)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path} is damaged or no gzip file: {error}. Fetch or pack it again") from error
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
