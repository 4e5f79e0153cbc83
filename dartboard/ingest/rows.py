"""JSONL and CSV: each row a document, its fields named by options or guessed aloud.

Guesses, said in a note on the first document: the text is the field called text, content, body, … (with
the title before it, where there is one), else the one with most words; the id is the field called id, _id,
…; every other field with a plain value is metadata.
"""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dartboard.errors import IngestError
from dartboard.ingest.cleaning import clean, one_line
from dartboard.ingest.documents import digest
from dartboard.ingest.plain_json import plain

_TEXT_NAMES = (
    "text",
    "content",
    "contents",
    "body",
    "passage",
    "document",
    "abstract",
    "description",
    "answer",
)
_TITLE_NAMES = ("title", "headline", "subject", "name")
_ID_NAMES = ("id", "_id", "doc_id", "docid", "document_id", "uid", "uuid", "key")
_SAMPLE = 50
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFields:
    """Which fields of a row are what. Left empty, each is guessed; ``metadata=()`` keeps no metadata."""

    text: tuple[str, ...] = ()
    id: str | None = None
    title: str | None = None
    metadata: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row that can be indexed; ``number`` is its line in the file."""

    number: int
    key: str
    title: str
    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot."""

    number: int
    reason: str


Numbered = tuple[int, dict[str, Any]]


def read_rows(text: str, suffix: str, fields: RowFields) -> tuple[list[Row | BadRow], tuple[str, ...]]:
    """The rows of a file in order, and notes on what was guessed."""
    parsed = list(_csv_rows(text, suffix) if suffix in (".csv", ".tsv") else _json_rows(text))
    objects = [row for row in parsed if not isinstance(row, BadRow)]
    if not objects:
        return [row for row in parsed if isinstance(row, BadRow)], ()
    chosen, notes = _choose(fields, [row for _, row in objects[:_SAMPLE]])
    keys: dict[str, int] = {}
    return [row if isinstance(row, BadRow) else _row(row, chosen, keys) for row in parsed], notes


def _json_rows(text: str) -> Iterator[Numbered | BadRow]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield BadRow(number, f"no JSON: {error}")
            continue
        if isinstance(row, str):
            yield number, {"text": row}
        elif isinstance(row, dict):
            yield number, row
        else:
            yield BadRow(number, f"expected an object or a string, found {type(row).__name__}")


def _csv_rows(text: str, suffix: str) -> Iterator[Numbered | BadRow]:
    head = text.split("\n", 1)[0]
    delimiter = "\t" if suffix == ".tsv" else max(_DELIMITERS, key=head.count)
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        names = [name.strip() for name in next(rows, [])]
        for values in rows:
            if len(values) > len(names):
                yield BadRow(rows.line_num, f"{len(values)} values for {len(names)} columns")
            elif any(values):
                yield rows.line_num, dict(zip(names, values, strict=False))
    except csv.Error as error:
        yield BadRow(rows.line_num, str(error))
    finally:
        csv.field_size_limit(before)


def _choose(fields: RowFields, sample: list[dict[str, Any]]) -> tuple[RowFields, tuple[str, ...]]:
    """The fields to use: as named, or guessed with a note."""
    names = list(dict.fromkeys(name for row in sample for name in row))
    for name in (*fields.text, *filter(None, (fields.id, fields.title)), *(fields.metadata or ())):
        if name not in names:
            raise IngestError(f"has no field {name!r}; its fields are {', '.join(map(repr, names))}")
    title = fields.title or next((name for name in _TITLE_NAMES if name in names), None)
    text = fields.text or _guess_text(names, sample, title)
    key = fields.id or next((name for name in _ID_NAMES if name in names and name not in text), None)
    notes = []
    if not fields.text:
        notes.append(f"text taken from {' and '.join(map(repr, text))}")
    if not fields.id:
        notes.append(f"id taken from {key!r}" if key else "no id field: rows are named by their content")
    metadata = fields.metadata
    if metadata is None:
        metadata = tuple(name for name in names if name not in (*text, title, key))
    return RowFields(text=text, id=key, title=title, metadata=metadata), tuple(notes)


def _guess_text(names: list[str], sample: list[dict[str, Any]], title: str | None) -> tuple[str, ...]:
    for name in _TEXT_NAMES:
        if name in names:
            return (title, name) if title else (name,)
    words = {name: sum(len(str(row.get(name) or "").split()) for row in sample) for name in names}
    best = max(names, key=lambda name: words[name], default=None)
    if best is None:
        raise IngestError("has no fields: name the columns in its first line")
    return (best,)


def _row(numbered: Numbered, fields: RowFields, keys: dict[str, int]) -> Row | BadRow:
    number, row = numbered
    text = "\n\n".join(filter(None, (clean(_as_text(row.get(name))) for name in fields.text)))
    if not text:
        return BadRow(number, f"nothing in {' and '.join(map(repr, fields.text))}")
    title = one_line(_as_text(row.get(fields.title))) if fields.title else ""
    key = one_line(_as_text(row.get(fields.id))) if fields.id else ""
    key = key or digest(text.encode())[:16]
    keys[key] = keys.get(key, 0) + 1
    metadata = {name: plain(row[name]) for name in fields.metadata or () if row.get(name) not in (None, "")}
    return Row(number, key if keys[key] == 1 else f"{key}~{keys[key]}", title, text, metadata)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_as_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
