"""A file to documents: one, or for JSONL and CSV one a row. What cannot be read becomes a problem.

No file stops a run: whatever is wrong with it, what comes back says so, and the next one is read.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from dartboard.errors import ConfigError, IngestError, MissingExtraError
from dartboard.ingest.code import other_sections, python_sections
from dartboard.ingest.documents import Document, Kind, Problem, ProblemCode, Section, digest
from dartboard.ingest.docx import read_docx
from dartboard.ingest.files import SourceFile, walk
from dartboard.ingest.html import declared_charset, read_html
from dartboard.ingest.limits import MAX_CHARACTERS, MAX_TITLE, TooLargeError, check_characters
from dartboard.ingest.markdown import front_matter, markdown_headings, notebook_text
from dartboard.ingest.pdf import EncryptedError, read_pdf
from dartboard.ingest.rst import looks_like_rst, rst_headings
from dartboard.ingest.sections import outline
from dartboard.ingest.tabular import BadRow, RowFields, read_rows
from dartboard.ingest.text import decode, encoding_of, plain_json, tidy

_SUFFIXES: dict[Kind, str] = {
    "markdown": ".md .markdown .mdown .mdx .qmd .rmd .ipynb",
    "rst": ".rst .rest",
    "html": ".html .htm .xhtml",
    "pdf": ".pdf",
    "docx": ".docx",
    "rows": ".jsonl .ndjson .csv .tsv",
}

_LANGUAGES = {
    "python": ".py .pyi .pyw",
    "javascript": ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte",
    "java": ".java .kt .kts .scala .groovy .cs",
    "go": ".go",
    "rust": ".rs",
    "c": ".c .h .cc .cpp .cxx .hh .hpp .hxx .m .mm .cu",
    "ruby": ".rb .rake",
    "php": ".php",
    "swift": ".swift",
    "shell": ".sh .bash .zsh .fish",
    "sql": ".sql",
    "lua": ".lua",
    "elixir": ".ex .exs",
    "r": ".r",
    "julia": ".jl",
    "perl": ".pl .pm",
    "other": ".hs .ml .clj .erl .dart .zig .nim .vim .el .ps1 .bat .tf .proto .graphql .cmake .css .scss",
}

_PICTURES = frozenset([".svg", ".eps", ".ps", ".xpm", ".drawio", ".excalidraw"])
"""Text to a program, not to a reader."""

_KIND_OF: dict[str, Kind] = {suffix: kind for kind, text in _SUFFIXES.items() for suffix in text.split()}
_LANGUAGE_OF = {suffix: language for language, text in _LANGUAGES.items() for suffix in text.split()}
_LANGUAGE_OF_NAME = {"makefile": "other", "dockerfile": "other", "rakefile": "ruby", "gemfile": "ruby"}

_MOST_BAD_ROWS = 20
_LONGEST_PARSED = 1_000_000
"""A parsed module takes a hundred times its size in memory; what is longer than this is data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read: the largest file, the longest text in one, the fields of rows, and a kind for files whose
    names mislead.
    """

    max_bytes: int = 50_000_000
    max_characters: int = MAX_CHARACTERS
    fields: RowFields = field(default_factory=RowFields)
    kind: Kind | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_characters"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")


def read_path(
    path: str | Path, *, root: str | Path | None = None, options: ReadOptions | None = None, **walking: Any
) -> Iterator[Document | Problem]:
    """The documents of a file, or of all files below a folder; ``walking`` goes to :func:`walk`."""
    for found in walk([path], root=root, **walking):
        if isinstance(found, Problem):
            yield found
        else:
            yield from read_file(found, options)


def read_file(file: SourceFile, options: ReadOptions | None = None) -> Iterator[Document | Problem]:
    """The documents of one file that :func:`walk` found: :func:`load_file`, then :func:`read_bytes`."""
    data = load_file(file, options)
    if isinstance(data, Problem):
        yield data
    else:
        yield from read_bytes(data, file.source, options)


def load_file(file: SourceFile, options: ReadOptions | None = None) -> bytes | Problem:
    """The bytes of a file; a problem where it cannot be read, or is larger than ``options.max_bytes``."""
    most = (options or ReadOptions()).max_bytes
    try:
        size = file.path.stat().st_size
        if size > most:
            return Problem(file.source, f"has {size:,} bytes, more than max_bytes ({most:,})", "size")
        return file.path.read_bytes()
    except OSError as error:
        return Problem(file.source, f"cannot be read: {error.strerror or error}")


def read_bytes(data: bytes, source: str, options: ReadOptions | None = None) -> Iterator[Document | Problem]:
    """The documents in the bytes of a file of this name."""
    options = options or ReadOptions()
    try:
        if not data or data.isspace():
            raise _Unusable("is empty", "empty")
        if options.kind is None and Path(source).suffix.lower() in _PICTURES:
            raise _Unusable("is a picture", "binary")
        kind = options.kind or kind_of(source)
        if kind == "rows":
            yield from _read_rows(data, source, options)
        else:
            yield _read(data, source, kind, options)
    except _Unusable as error:
        yield Problem(source, str(error), error.code)
    except EncryptedError as error:
        yield Problem(source, str(error), "encrypted")
    except MissingExtraError as error:
        yield Problem(source, str(error), "extra")
    except TooLargeError as error:
        yield Problem(source, str(error), "size")
    except IngestError as error:
        yield Problem(source, str(error), "damaged")


def kind_of(name: str) -> Kind:
    """The kind of a file, from its name alone."""
    if language_of(name):
        return "code"
    return _KIND_OF.get(PurePath(name).suffix.lower(), "text")


def language_of(name: str) -> str | None:
    """The family of programming languages that a file is written in, or None for what is no code."""
    path = PurePath(name.lower())
    return _LANGUAGE_OF.get(path.suffix) or _LANGUAGE_OF_NAME.get(path.name)


class _Unusable(IngestError):
    def __init__(self, reason: str, code: ProblemCode) -> None:
        super().__init__(reason)
        self.code: ProblemCode = code


def _read(data: bytes, source: str, kind: Kind, options: ReadOptions) -> Document:
    blank = Document(source=source, text="", kind=kind, title="", document_hash=digest(data))
    match kind:
        case "pdf":
            text, sections, title, notes = read_pdf(data, options.max_characters)
            document = replace(_with(blank, text, sections, title), notes=notes)
        case "docx":
            document = _with(blank, *read_docx(data, options.max_characters))
        case "html":
            text, notes = _decode(data, options, declared_charset(data))
            document = replace(_with(blank, *read_html(text)), notes=notes)
        case _:
            text, notes = _decode(data, options)
            if source.lower().endswith(".ipynb"):
                text = notebook_text(text)
            if options.kind is None and kind == "text" and looks_like_rst(text):  # Django's files end in .txt
                kind = "rst"
            document = _LINES[kind](
                replace(blank, text=tidy(text.replace("\f", "")), kind=kind, first_line=1, notes=notes)
            )
    if not document.text.strip():
        hint = ": scanned pages? Run text recognition (OCR) first" if kind == "pdf" else ""
        raise _Unusable(f"holds no text{hint}", "empty")
    return replace(document, title=document.title[:MAX_TITLE] or Path(source).stem)


def _with(document: Document, text: str, sections: tuple[Section, ...], title: str) -> Document:
    return replace(document, text=text, sections=sections, title=title)


def _decode(data: bytes, options: ReadOptions, declared: str | None = None) -> tuple[str, tuple[str, ...]]:
    try:
        text, notes = decode(data, declared)
    except IngestError as error:
        raise _Unusable(str(error), "binary") from error
    check_characters(len(text), options.max_characters)
    return text, notes


def _text(document: Document) -> Document:
    return replace(document, sections=(Section(0, len(document.text)),))


def _markdown(document: Document) -> Document:
    fields, body, lines = front_matter(document.text)
    sections, first = outline(body, markdown_headings(body))
    title = fields.pop("title", "")
    return replace(
        document,
        text=body,
        sections=sections,
        title=title if isinstance(title, str) and title else first,
        metadata=plain_json(fields),
        first_line=1 + lines,
    )


def _rst(document: Document) -> Document:
    sections, title = outline(document.text, rst_headings(document.text))
    return replace(document, sections=sections, title=title)


def _code(document: Document) -> Document:
    language = language_of(document.source) or "other"
    parse = language == "python" and len(document.text) <= _LONGEST_PARSED
    sections = python_sections(document.text) if parse else None
    if sections is None:
        sections = other_sections(document.text, language)
    name = Path(document.source).name
    return replace(document, sections=sections, title=name, metadata={"language": language})


_LINES = {"text": _text, "markdown": _markdown, "rst": _rst, "code": _code}


def _read_rows(data: bytes, source: str, options: ReadOptions) -> Iterator[Document | Problem]:
    try:
        encoding = encoding_of(data)
    except IngestError as error:
        raise _Unusable(str(error), "binary") from error

    def opened() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(data), encoding.name, encoding.errors, newline="\n")

    suffix = Path(source).suffix.lower()
    rows, notes = read_rows(opened, suffix, options.fields, options.max_characters)
    count = bad = 0
    hashed = digest(data)
    notes = encoding.notes + notes
    for row in rows:
        count += 1
        if isinstance(row, BadRow):
            bad += 1
            if bad <= _MOST_BAD_ROWS:
                yield Problem(source, f"line {row.number}: {row.reason}", "row")
            continue
        yield Document(
            source=source,
            text=row.text,
            kind="rows",
            title=row.title or row.key,
            metadata={**row.metadata, "row": row.key, "line": row.number},
            sections=(Section(0, len(row.text)),),
            document_hash=hashed,
            key=row.key,
            notes=notes,
        )
        notes = ()
    if bad > _MOST_BAD_ROWS:
        yield Problem(source, f"{bad - _MOST_BAD_ROWS} more lines cannot be used", "row")
    if not count:
        raise _Unusable("holds no rows", "empty")
