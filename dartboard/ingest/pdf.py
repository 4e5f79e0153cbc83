"""PDF: the text of the pages, one section per page; errors say why a file cannot be read."""

import io
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from dartboard.deadline import check
from dartboard.errors import DeadlineError, IngestError, MissingExtraError
from dartboard.ingest.documents import ReadError, Section
from dartboard.ingest.limits import MAX_CHARACTERS, MAX_TITLE, TooLargeError, check_characters
from dartboard.ingest.sections import until_next
from dartboard.ingest.text import clean, one_line

_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")

_MOST_DECODED = 16_000_000
_LIMITS = {
    "zlib_maximum_output_length": _MOST_DECODED,
    "lzw_maximum_output_length": _MOST_DECODED,
    "run_length_maximum_output_length": _MOST_DECODED,
    "brotli_maximum_output_length": _MOST_DECODED,
    "stream_parsing_work_maximum_count": 1_000_000,
}
"""pypdf's limits for one stream: unpacked bytes, and the numbers, strings and operators in it."""

_MOST_CONTENT = 4_000_000
"""Maximum bytes of a page plus the nested forms that are being drawn on it."""
_MOST_ENTRIES = 500_000
"""Maximum characters that the fonts of a page map."""
_MOST_WORK = 64_000_000
"""Limit for one file in bytes of page content: about a thousand pages of text, or two minutes. A stream
counts each time it is drawn.
"""
_DRAWN, _ENTRY = 500, 2
"""Cost in bytes of drawing a page or form of any length, and of a character that a font maps."""
_LONG_LIGATURE = re.compile(rb"<[0-9A-Fa-f\s]{80,}>")
"""More than 18 letters for one character; ``ffi`` has 3, and the longest Arabic ligature 18."""
_RANGE = re.compile(rb"<([0-9A-Fa-f]{1,8})>\s*<([0-9A-Fa-f]{1,8})>\s*[<\[]")
_LISTED = 10


def read_pdf(
    data: bytes, max_characters: int = MAX_CHARACTERS
) -> tuple[str, tuple[Section, ...], str, tuple[str, ...]]:
    """Text, pages, title, and notes on what was too large."""
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
            texts = list(pages.read())
            if pages.notes and not any(texts):
                raise TooLargeError(f"has no other text: {'; '.join(pages.notes)}")
            title = one_line(str((reader.metadata or {}).get("/Title") or "")[:MAX_TITLE])
        except DependencyError as error:
            reason = f"is encrypted, and reading it needs a further package: {error}"
            raise ReadError(reason, "encrypted") from error
        except (IngestError, DeadlineError):
            raise
        except LimitReachedError as error:
            raise TooLargeError(f"takes too much memory to be read: {error}") from error
        except Exception as error:  # a broken file can fail anywhere in the parser
            raise IngestError(f"is not a readable PDF: {type(error).__name__}: {error}") from error
    return *_joined(texts), title, pages.notes


class _Pages:
    """The texts of a file's pages, with limits for each page and for the file.

    A page draws forms, which draw further forms: a few forms can be drawn a million times, each as long as
    pypdf allows. So we count the bytes of the forms that are being drawn and the characters that they add,
    and drop decoded data after use; pypdf would keep it as long as the file is open.

    Thousands of pages can share one stream. Repeated reads count again, and reading stops at the limit.
    """

    def __init__(self, reader: Any, max_characters: int) -> None:
        self._reader = reader
        self._most = max_characters
        self._length = self._held = self._entries = self._number = self._worked = 0
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
            yield clean(_HYPHEN.sub("", text))
            if self._ended_at is not None:
                return

    def _page_text(self, page: Any) -> str:
        contents = _entry(page, "/Contents")
        self._held = self._entries = 0
        self._work(_DRAWN)
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
            self._work(_DRAWN)
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

    def _work(self, count: int) -> None:
        self._worked += count
        if self._worked > _MOST_WORK:
            raise _limit_reached()

    def _leave_out(self) -> None:
        if self._worked > _MOST_WORK:
            self._ended_at = self._number
        else:
            self._too_large[self._number] = None

    def _hold(self, content: Any) -> None:
        """Count what a page or form draws: for the page while it is drawn, and for the file."""
        size = len(self._data(content))
        self._held += size
        if self._held > _MOST_CONTENT or self._length > self._most:
            raise _limit_reached()
        self._work(size)

    def _check_fonts(self, page_or_form: Any) -> None:
        """Raise for fonts that write a long text for each character, or that map too many characters."""
        fonts = _entry(_entry(page_or_form, "/Resources"), "/Font")
        for name in fonts if isinstance(fonts, dict) else ():
            mapping = _entry(_entry(fonts, name), "/ToUnicode")
            if not hasattr(mapping, "get_data"):
                continue
            data = self._data(mapping)
            before = self._entries
            for block in data.split(b"beginbfrange")[1:]:
                pairs = _RANGE.finditer(block.partition(b"endbfrange")[0])
                self._entries += sum(1 + abs(int(pair[2], 16) - int(pair[1], 16)) for pair in pairs)
            self._entries += len(data) // 8
            if self._entries > _MOST_ENTRIES or _LONG_LIGATURE.search(data):
                raise _limit_reached()
            self._work(_ENTRY * (self._entries - before))


def _entry(dictionary: Any, name: str) -> Any:
    """An entry that may be an indirect object; None if it is missing."""
    return dictionary[name] if isinstance(dictionary, dict) and name in dictionary else None


def _limit_reached() -> Exception:
    from pypdf.errors import LimitReachedError

    error: Exception = LimitReachedError("more than is read of a page")
    return error


def _joined(pages: list[str]) -> tuple[str, tuple[Section, ...]]:
    begun, at = [], 0
    for number, page in enumerate(pages, start=1):
        if page:
            begun.append(Section(at, at, page=number))
            at += len(page) + 2
    text = "\n\n".join(filter(None, pages))
    return text, until_next(begun, len(text))


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
