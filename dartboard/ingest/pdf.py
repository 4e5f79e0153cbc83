"""PDF: the text of the pages with the outline's titles as headings; errors say why a file cannot be read.

Lines that many pages begin or end with (running headers, page numbers) and lines of dots in tables of
contents are left out.
"""

import io
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from dartboard.deadline import check
from dartboard.errors import DeadlineError, IngestError, MissingExtraError
from dartboard.ingest.documents import (
    MAX_CHARACTERS,
    MAX_TITLE,
    Block,
    ReadError,
    Reading,
    TooLargeError,
    check_characters,
)
from dartboard.ingest.text import clean, one_line

_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_LEADER = re.compile(r"^.*?(?:\.[ \t]?){4,}[ \t]*(?:[\divxlc]+(?:[-.,][ \t]?\d+)*)?[ \t]*$", re.MULTILINE)
"""``Installation . . . . . . 12``."""
_NUMBER = re.compile(r"\d+|\b[ivxl]+\b")
_EDGE = 2
"""How many lines at the top and bottom of a page may be running headers."""
_FEWEST_REPEATS = 3
_ENDED = re.compile(r"""[.!?:;…]["'”’»)\]]*$""")

_LIMITS = {
    "zlib_maximum_output_length": 16_000_000,
    "lzw_maximum_output_length": 16_000_000,
    "run_length_maximum_output_length": 16_000_000,
    "brotli_maximum_output_length": 16_000_000,
    "stream_decoding_work_maximum_length": 4_000_000,
    "stream_parsing_work_maximum_count": 1_000_000,
    "outline_maximum_entries": 10_000,
}
"""pypdf's limits for one stream: unpacked bytes, bytes that go into its filters (ASCII85 has no limit of its
own), and the numbers, strings and operators in it.
"""
_MOST_CONTENT = 4_000_000
"""Maximum bytes of a page plus the nested forms that are being drawn on it."""
_MOST_WORK = 64_000_000
"""Limit for one file in bytes of page content: about a thousand pages of text, or two minutes. A stream
counts each time it is drawn, and 500 more.
"""
_DRAWN = 500
_LONG_LIGATURE = re.compile(rb"<[0-9A-Fa-f\s]{80,}>")
"""More than 18 letters for one character; ``ffi`` has 3, and the longest Arabic ligature 18."""
_LISTED = 10


def read_pdf(data: bytes, max_characters: int = MAX_CHARACTERS) -> Reading:
    """Text, blocks, pages, title, and notes on what was too large."""
    try:
        import pypdf
        from pypdf.errors import DependencyError, LimitReachedError
    except ImportError as error:
        raise MissingExtraError("pypdf", "docs", "reading PDF") from error
    with _quiet(), pypdf.apply_configuration(**_LIMITS):
        try:
            reader = pypdf.PdfReader(io.BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                raise ReadError("is encrypted: save a copy without its password", "encrypted")
            pages = _Pages(reader, max_characters)
            texts = _without_edges(list(pages.read()))
            if pages.notes and not any(texts):
                raise TooLargeError(f"has no other text: {'; '.join(pages.notes)}")
            title = one_line(str((reader.metadata or {}).get("/Title") or "")[:MAX_TITLE])
            entries = list(_entries(reader))
        except DependencyError as error:
            reason = f"is encrypted, and reading it needs a further package: {error}"
            raise ReadError(reason, "encrypted") from error
        except (IngestError, DeadlineError):
            raise
        except LimitReachedError as error:
            raise TooLargeError(f"takes too much memory to be read: {error}") from error
        except Exception as error:  # a broken file can fail anywhere in the parser
            raise IngestError(f"is not a readable PDF: {type(error).__name__}: {error}") from error
    text, starts = _joined(texts)
    return Reading(text, tuple(_headings(text, starts, entries)), title, pages.notes, starts)


class _Pages:
    """The texts of a file's pages, with limits for each page and for the file.

    A page draws forms, which draw further forms: a few forms can be drawn a million times, each as long as
    pypdf allows. So we count the bytes of the forms that are being drawn and the characters that they add,
    and drop decoded data after use; pypdf would keep it as long as the file is open.
    """

    def __init__(self, reader: Any, max_characters: int) -> None:
        self._reader = reader
        self._most = max_characters
        self._length = self._held = self._number = self._worked = 0
        self._decoded: list[Any] = []
        self._too_large: dict[int, None] = {}
        self._ended_at: int | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Which pages are incomplete."""
        notes = []
        if self._too_large:
            numbers = list(self._too_large)
            listed = ", ".join(map(str, numbers[:_LISTED])) + (", …" if numbers[_LISTED:] else "")
            notes.append(f"parts that take too much memory are left out, on page {listed}")
        if self._ended_at is not None:
            notes.append(
                f"what comes after {_MOST_WORK:,} bytes of page content is left out, from page "
                f"{self._ended_at} on: split the file"
            )
        return tuple(notes)

    def read(self) -> Iterator[str]:
        """The text of each page."""
        from pypdf.errors import LimitReachedError

        for number, page in enumerate(self._reader.pages, start=1):
            check()
            self._number, before = number, self._length
            page.extract_xform_text = partial(self._form_text, page.extract_xform_text)
            try:
                text = self._page_text(page)
            except LimitReachedError:
                self._leave_out()
                text = ""
            finally:
                del page.extract_xform_text
                for stream in self._decoded:
                    stream.decoded_self = None
                self._decoded = []
            self._length = before + len(text)
            check_characters(self._length, self._most)
            yield clean(_LEADER.sub("", _HYPHEN.sub("", text)))
            if self._ended_at is not None:
                return

    def _page_text(self, page: Any) -> str:
        contents = _entry(page, "/Contents")
        self._held = 0
        for part in contents if isinstance(contents, list) else [contents]:
            self._hold(part)
        self._check_fonts(page)
        return str(page.extract_text())

    def _form_text(self, extract: Callable[..., str], form: Any, *options: Any, **named: Any) -> str:
        """Replaces pypdf's method of this name, which ignores any error raised here."""
        from pypdf.errors import LimitReachedError

        before, held = self._length, self._held
        try:
            check()
            self._check_work()
            self._hold(form)
            self._check_fonts(form)
            text = extract(form, *options, **named)
            self._length = before + len(text)
            return text
        except LimitReachedError:
            self._leave_out()
            raise
        finally:
            self._held = held
            form.decoded_self = None

    def _data(self, stream: Any) -> bytes:
        """The content of a stream, cached until the page is read; empty for anything else."""
        stream = stream.get_object() if hasattr(stream, "get_object") else None
        if not hasattr(stream, "get_data"):
            return b""
        self._decoded.append(stream)
        return bytes(stream.get_data())

    def _leave_out(self) -> None:
        if self._worked > _MOST_WORK:
            self._ended_at = self._number
        else:
            self._too_large[self._number] = None

    def _hold(self, content: Any) -> None:
        """Count what a page or form draws: for the page while it is drawn, and for the file."""
        size = len(self._data(content))
        self._held += size
        self._worked += size + _DRAWN
        if self._held > _MOST_CONTENT or self._length > self._most:
            raise _limit_reached()
        self._check_work()

    def _check_work(self) -> None:
        """Raise if the file has had its share, before anything more is decoded."""
        if self._worked > _MOST_WORK:
            raise _limit_reached()

    def _check_fonts(self, page_or_form: Any) -> None:
        """Raise for fonts that write a long text for each character; their mappings count as content."""
        fonts = _entry(_entry(page_or_form, "/Resources"), "/Font")
        for name in fonts if isinstance(fonts, dict) else ():
            data = self._data(_entry(_entry(fonts, name), "/ToUnicode"))
            self._worked += len(data)
            self._check_work()
            if _LONG_LIGATURE.search(data):
                raise _limit_reached()


def _entry(dictionary: Any, name: str) -> Any:
    """An entry that may be an indirect object; None if it is missing."""
    return dictionary[name] if isinstance(dictionary, dict) and name in dictionary else None


def _limit_reached() -> Exception:
    from pypdf.errors import LimitReachedError

    error: Exception = LimitReachedError("more than is read of a page")
    return error


def _without_edges(pages: list[str]) -> list[str]:
    """The pages without the lines that many of them begin or end with, apart from numbers."""

    def edges(lines: list[str]) -> list[tuple[int, str]]:
        """Positions of the first and last lines, and the lines with ``#`` for every number."""
        places = [*range(_EDGE), *range(len(lines) - _EDGE, len(lines))] if len(lines) > 2 * _EDGE else []
        return [(at, _NUMBER.sub("#", lines[at])) for at in places]

    split = [page.split("\n") for page in pages]
    times = Counter(line for lines in split for line in dict.fromkeys(line for _, line in edges(lines)))
    done = []
    for lines in split:
        running = {at for at, line in edges(lines) if line and times[line] >= _FEWEST_REPEATS}
        done.append("\n".join(line for at, line in enumerate(lines) if at not in running).strip("\n"))
    return done


def _joined(pages: list[str]) -> tuple[str, tuple[int, ...]]:
    """The text, and where its pages begin. A sentence may go on from one page to the next."""
    parts: list[str] = []
    starts: list[int] = []
    length, last = 0, ""
    for page in pages:
        if page and last:
            goes_on = page[0].islower() and not _ENDED.search(last[-10:])
            parts.append("\n" if goes_on else "\n\n")
            length += len(parts[-1])
        starts.append(length)
        if page:
            parts.append(page)
            length, last = length + len(page), page
    return "".join(parts), tuple(starts)


def _entries(reader: Any) -> Iterator[tuple[int, str, int]]:
    """Level, title and page (from 0) of the entries of the outline; none of an outline that is damaged."""
    with suppress(Exception):
        pending: list[tuple[int, Any]] = [(1, entry) for entry in reversed(reader.outline)]
        while pending:
            check()
            level, entry = pending.pop()
            if isinstance(entry, list):
                pending += [(level + 1, one) for one in reversed(entry)]
                continue
            page = reader.get_destination_page_number(entry)
            title = one_line(str(entry.title)[:MAX_TITLE])
            if page is not None and page >= 0 and title:
                yield level, title, page


def _headings(text: str, starts: Sequence[int], entries: list[tuple[int, str, int]]) -> Iterator[Block]:
    """Headings where the outline's titles stand on their pages; at the top of the page if they do not."""
    at = 0
    for level, title, page in entries:
        if page >= len(starts):
            continue
        start = max(at, starts[page])
        stop = starts[page + 1] if page + 1 < len(starts) else len(text)
        words = r"\s+".join(map(re.escape, title.split()))
        found = re.compile(rf"^[ \t]*(?:[\dA-Z.]+\s+)?{words}[ \t]*$", re.MULTILINE | re.IGNORECASE)
        if line := found.search(text, start, max(start, stop)):
            start, at = line.start(), line.end()
        else:
            at = start
        if start < len(text):
            yield Block(start, at, "heading", level, title)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress pypdf's log: it reports every oddity of a file, and real errors are raised."""
    logger = logging.getLogger("pypdf")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
