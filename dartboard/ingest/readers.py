"""Read a file into documents: one per file, or one per row for JSONL and CSV. Errors become problems.

A bad file never stops a run: its problem is returned, and the next file is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from dartboard.errors import ConfigError, IngestError, MissingExtraError
from dartboard.ingest.code import code_blocks
from dartboard.ingest.documents import (
    MAX_CHARACTERS,
    MAX_TITLE,
    Document,
    Kind,
    Problem,
    ReadError,
    Reading,
    check_characters,
    check_metadata_size,
    digest,
    title_among,
)
from dartboard.ingest.docx import read_docx
from dartboard.ingest.files import SourceFile, walk
from dartboard.ingest.html import declared_charset, read_html
from dartboard.ingest.markdown import front_matter, markdown_blocks, notebook_text
from dartboard.ingest.pdf import read_pdf
from dartboard.ingest.rst import looks_like_rst, rst_blocks
from dartboard.ingest.tabular import RowFields, is_table, read_rows
from dartboard.ingest.text import check_encoding, decode, plain_json, tidy

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
"""Text files that are not meant for readers."""

_KIND_OF: dict[str, Kind] = {suffix: kind for kind, text in _SUFFIXES.items() for suffix in text.split()}
_LANGUAGE_OF = {suffix: language for language, text in _LANGUAGES.items() for suffix in text.split()}
_LANGUAGE_OF_NAME = {"makefile": "other", "dockerfile": "other", "rakefile": "ruby", "gemfile": "ruby"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """How to read files.

    Args:
        max_bytes: The largest file that is read.
        max_characters: The longest text of one file.
        fields: Which fields of rows are text, id, title and metadata.
        kind: The kind of the files, if their names do not show it.
        encoding: The encoding of text files, such as ``cp1251`` or ``shift_jis``; None finds it: a byte-order
            mark, what a page declares, UTF-8, or else cp1252 with a note.
    """

    max_bytes: int = 50_000_000
    max_characters: int = MAX_CHARACTERS
    fields: RowFields = field(default_factory=RowFields)
    kind: Kind | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_characters"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}", field=name)
        check_encoding(self.encoding)


def read_path(
    path: str | Path, *, root: str | Path | None = None, options: ReadOptions | None = None, **walking: Any
) -> Iterator[Document | Problem]:
    """The documents of a file, or of all files below a folder; ``walking`` is passed to :func:`walk`."""
    for found in walk([path], root=root, **walking):
        if isinstance(found, Problem):
            yield found
        else:
            yield from read_file(found, options)


def read_file(file: SourceFile, options: ReadOptions | None = None) -> Iterator[Document | Problem]:
    """The documents of one file from :func:`walk`: :func:`load_file`, then :func:`read_bytes`."""
    data = load_file(file, options)
    if isinstance(data, Problem):
        yield data
    else:
        yield from read_bytes(data, file.source, options)


def load_file(file: SourceFile, options: ReadOptions | None = None) -> bytes | Problem:
    """The bytes of a file; a problem if it cannot be read or is larger than ``options.max_bytes``."""
    most = (options or ReadOptions()).max_bytes
    try:
        size = file.path.stat().st_size
        if size > most:
            return Problem(file.source, f"has {size:,} bytes, more than max_bytes ({most:,})", "size")
        return file.path.read_bytes()
    except OSError as error:
        return Problem(file.source, f"cannot be read: {error.strerror or error}")


def read_bytes(data: bytes, source: str, options: ReadOptions | None = None) -> Iterator[Document | Problem]:
    """Read the documents in the bytes of a file.

    Args:
        data: The file's content.
        source: The file's name; its extension gives the kind, and its documents carry it.
        options: Limits, the fields of rows, and a kind that overrides the extension.

    Returns:
        One document, or one per row for JSONL and CSV; problems for what cannot be read. Nothing is raised.

    Example:
        >>> [document.title for document in read_bytes(b"# Tea", "tea.md")]
        ['Tea']
    """
    options = options or ReadOptions()
    try:
        if not data or data.isspace():
            raise ReadError("is empty", "empty")
        if options.kind is None and Path(source).suffix.lower() in _PICTURES:
            raise ReadError("is a picture", "binary")
        kind = options.kind or ("rows" if is_table(data, source) else kind_of(source))
        if kind == "rows":
            yield from read_rows(data, source, options.fields, options.max_characters, options.encoding)
        else:
            yield _read(data, source, kind, options)
    except MissingExtraError as error:
        yield Problem(source, str(error), "extra")
    except IngestError as error:
        yield Problem(source, str(error), error.problem if isinstance(error, ReadError) else "damaged")


def kind_of(name: str) -> Kind:
    """The kind of a file, from its name alone."""
    if language_of(name):
        return "code"
    return _KIND_OF.get(PurePath(name).suffix.lower(), "text")


def language_of(name: str) -> str | None:
    """The language family of a source file; None if it is not code."""
    path = PurePath(name.lower())
    return _LANGUAGE_OF.get(path.suffix) or _LANGUAGE_OF_NAME.get(path.name)


def _read(data: bytes, source: str, kind: Kind, options: ReadOptions) -> Document:
    """The single document of a file that is not a table."""
    first_line = None
    metadata: dict[str, Any] = {}
    most = options.max_characters
    if kind == "pdf":
        reading = read_pdf(data, most)
    elif kind == "docx":
        reading = read_docx(data, most)
    elif kind == "html":
        markup, notes = decode(data, options.encoding, declared_charset(data))
        check_characters(len(markup), most)
        reading = read_html(markup, most)._replace(notes=notes)
    else:
        text, notes = decode(data, options.encoding)
        check_characters(len(text), most)
        first_line = 1
        if source.lower().endswith(".ipynb"):
            text, first_line = notebook_text(text), None  # its lines are those of no file
        text = tidy(text.replace("\f", ""))
        if options.kind is None and kind == "text" and looks_like_rst(text):  # Django's files end in .txt
            kind = "rst"
        reading = Reading(text, notes=notes)
        if kind == "markdown":
            metadata, text, lines, more = front_matter(text)
            first_line = first_line and first_line + lines
            blocks = markdown_blocks(text)
            named = metadata.pop("title", "")
            title = named if isinstance(named, str) and named else title_among(blocks)
            reading = Reading(text, blocks, title, notes + more)
        elif kind == "rst":
            blocks = rst_blocks(text)
            reading = Reading(text, blocks, title_among(blocks), notes)
        elif kind == "code":
            language, metadata = language_of(source) or "other", {"language": language_of(source) or "other"}
            reading = Reading(text, code_blocks(text, language), Path(source).name, notes)
    if not reading.text.strip():
        hint = ": scanned pages? Run text recognition (OCR) first" if kind == "pdf" else ""
        raise ReadError(f"holds no text{hint}", "empty")
    metadata = plain_json(metadata)
    check_metadata_size(metadata)
    return Document(
        source=source,
        text=reading.text,
        kind=kind,
        title=reading.title[:MAX_TITLE] or Path(source).stem,
        metadata=metadata,
        blocks=reading.blocks,
        pages=reading.pages,
        document_hash=digest(data),
        first_line=first_line,
        notes=reading.notes,
    )
