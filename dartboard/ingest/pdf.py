"""PDF: the text of the pages, each page a section; files that cannot be read say why."""

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dartboard.errors import IngestError, MissingExtraError
from dartboard.ingest.cleaning import clean, one_line
from dartboard.ingest.documents import Section

_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


class EncryptedError(IngestError):
    """A password is needed."""


def read_pdf(data: bytes) -> tuple[str, tuple[Section, ...], str]:
    """Text, pages and title."""
    try:
        import pypdf
        from pypdf.errors import DependencyError
    except ImportError as error:
        raise MissingExtraError("pypdf", "docs", "reading PDF") from error
    with _quiet():
        try:
            reader = pypdf.PdfReader(io.BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                raise EncryptedError("is encrypted: save a copy without its password")
            pages = [clean(_HYPHEN.sub("", page.extract_text())) for page in reader.pages]
            title = one_line(str((reader.metadata or {}).get("/Title") or ""))
        except DependencyError as error:
            raise EncryptedError(f"is encrypted, and reading it needs a further package: {error}") from error
        except IngestError:
            raise
        except Exception as error:  # a broken file can fail anywhere in the parser
            raise IngestError(f"is no readable PDF: {type(error).__name__}: {error}") from error
    return *_joined(pages), title


def _joined(pages: list[str]) -> tuple[str, tuple[Section, ...]]:
    sections, parts, at = [], [], 0
    for number, page in enumerate(pages, start=1):
        if page:
            parts.append(page)
            sections.append(Section(at, at + len(page) + 2, page=number))
            at += len(page) + 2
    text = "\n\n".join(parts)
    return text, tuple(Section(s.start, min(s.end, len(text)), page=s.page) for s in sections)


@contextmanager
def _quiet() -> Iterator[None]:
    """pypdf logs every oddity of a file; what matters is raised."""
    logger = logging.getLogger("pypdf")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
