"""JSONL, CSV and JSON arrays of objects: each row is a document; its fields are named by options, or guessed.

Guesses are reported in a note on the first document. The text is the field called text, content, body, …
(preceded by the title and by a question, if there are such fields), otherwise all fields as ``name: value``
lines. The id is the field called id, _id, …. Every other field with a plain value is metadata.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from dartboard.deadline import check
from dartboard.errors import IngestError
from dartboard.ingest.documents import (
    MAX_CHARACTERS,
    MAX_TITLE,
    MAX_VALUES,
    Document,
    Problem,
    ReadError,
    TooLargeError,
    check_characters,
    check_json,
    check_metadata_size,
    digest,
)
from dartboard.ingest.text import clean, encoding_of, one_line, plain_json

MAX_FIELDS = 10_000
"""Fields of a row."""
MAX_ROWS = 1_000_000
"""Rows of a file."""
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
_QUESTION_NAMES = ("question", "query", "prompt")
_TITLE_NAMES = ("title", "headline", "subject", "name")
_ID_NAMES = ("id", "_id", "doc_id", "docid", "document_id", "uid", "uuid", "key")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
_SAMPLE = 50
_SAMPLED_CHARACTERS = 10_000
_READ_OVER = 1 << 16
_MOST_BAD_ROWS = 20
_DELIMITERS = ",;\t|"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFields:
    """Roles of a row's fields. Empty ones are guessed; ``metadata=()`` keeps no metadata."""

    text: tuple[str, ...] = ()
    id: str | None = None
    title: str | None = None
    metadata: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not valid; ``number`` is its line in the file."""

    number: int
    reason: str


Numbered = tuple[int, dict[str, Any]]


def read_rows(
    data: bytes,
    source: str,
    fields: RowFields,
    max_characters: int = MAX_CHARACTERS,
    encoding_name: str | None = None,
) -> Iterator[Document | Problem]:
    """The documents of a table in order, read lazily, and problems for invalid rows.

    The first document has notes about the guesses.
    """
    encoding = encoding_of(data, encoding_name)
    suffix = Path(source).suffix.lower()

    def parsed() -> Iterator[Numbered | BadRow]:
        if suffix == ".json":
            return _checked(_array_rows(data.decode(encoding.name, encoding.errors), max_characters))
        stream = io.TextIOWrapper(io.BytesIO(data), encoding.name, encoding.errors, newline="\n")
        lines = _lines(stream, max_characters)
        return _checked(_csv_rows(lines, suffix) if suffix in (".csv", ".tsv") else _json_rows(lines))

    notes = encoding.notes
    # Parsed twice: the first rows to guess the fields, then all of them.
    if sample := _sample(parsed()):
        fields, guesses = _choose(fields, sample)
        notes += guesses
    hashed = digest(data)
    keys: dict[str, int] = {}
    count = bad = 0
    for row in parsed():
        count += 1
        made = row if isinstance(row, BadRow) else _document(row, fields, keys)
        if isinstance(made, BadRow):
            bad += 1
            if bad <= _MOST_BAD_ROWS:
                yield Problem(source, f"line {made.number}: {made.reason}", "row")
        else:
            yield replace(made, source=source, document_hash=hashed, notes=notes)
            notes = ()
    if bad > _MOST_BAD_ROWS:
        yield Problem(source, f"{bad - _MOST_BAD_ROWS} more lines cannot be used", "row")
    if not count:
        raise ReadError("holds no rows", "empty")


def is_table(data: bytes, source: str) -> bool:
    """Whether a file without a suffix of tables is one: a ``.json`` that begins as an array of objects."""
    return source.lower().endswith(".json") and bool(_ARRAY.match(data[:_READ_OVER]))


def _array_rows(text: str, most: int) -> Iterator[Numbered | BadRow]:
    """The objects of a JSON array, numbered by their place in it."""
    check_characters(len(text), most)
    check_json(text)
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReadError(f"is no JSON: {error}") from error
    for number, row in enumerate(rows, start=1):
        yield (number, row) if isinstance(row, dict) else BadRow(number, "expected an object")


def _lines(stream: TextIO, most: int) -> Iterator[tuple[int, str | None]]:
    """Lines with their numbers from 1; None for a line that is too long for memory."""
    number = 0
    while line := stream.readline(most + 1):
        check()
        number += 1
        if len(line) <= most or line.endswith("\n"):
            yield number, line.removesuffix("\r\n") + "\n" if line.endswith("\r\n") else line
            continue
        while not line.endswith("\n") and (line := stream.readline(_READ_OVER)):
            pass
        yield number, None


def _checked(parsed: Iterator[Numbered | BadRow]) -> Iterator[Numbered | BadRow]:
    """Enforce the limits on fields per row and on rows."""
    for count, row in enumerate(parsed):
        if count >= MAX_ROWS:
            raise TooLargeError(f"holds more than {MAX_ROWS:,} rows, and the rest is left out: split it")
        if not isinstance(row, BadRow) and len(row[1]) > MAX_FIELDS:
            row = BadRow(row[0], f"{len(row[1]):,} fields; at most {MAX_FIELDS:,} are read")
        yield row


def _sample(parsed: Iterator[Numbered | BadRow]) -> list[dict[str, Any]]:
    """The rows to guess from: the first fifty, or fewer if they are large."""
    sample: list[dict[str, Any]] = []
    fields = 0
    for row in parsed:
        if not isinstance(row, BadRow):
            sample.append(
                {
                    name: value[:_SAMPLED_CHARACTERS] if isinstance(value, str) else value
                    for name, value in row[1].items()
                }
            )
            fields += len(row[1])
        if len(sample) == _SAMPLE or fields > MAX_FIELDS:
            break
    return sample


def _json_rows(lines: Iterator[tuple[int, str | None]]) -> Iterator[Numbered | BadRow]:
    for number, line in lines:
        if line is None:
            yield BadRow(number, "the line is too long to be read: split the document")
            continue
        if not line.strip():
            continue
        try:
            check_json(line)
            row = json.loads(line)
        except TooLargeError as error:
            yield BadRow(number, str(error))
            continue
        except (ValueError, RecursionError) as error:
            yield BadRow(number, f"no JSON: {error}")
            continue
        if isinstance(row, str):
            yield number, {"text": row}
        elif isinstance(row, dict):
            yield number, row
        else:
            yield BadRow(number, f"expected an object or a string, found {type(row).__name__}")


def _csv_rows(lines: Iterator[tuple[int, str | None]], suffix: str) -> Iterator[Numbered | BadRow]:
    head = next((line for _, line in lines), "")
    delimiter = "\t" if suffix == ".tsv" else max(_DELIMITERS, key=(head or "").count)
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        rows = csv.reader(_csv_lines(chain([(1, head)], lines), delimiter), delimiter=delimiter)
        names = [name.strip() for name in next(rows, [])]
        if len(names) > MAX_FIELDS:
            raise TooLargeError(f"has {len(names):,} columns; at most {MAX_FIELDS:,} are read")
        for values in rows:
            if len(values) > len(names):
                yield BadRow(rows.line_num, f"{len(values)} values for {len(names)} columns")
            elif any(values):
                yield rows.line_num, dict(zip(names, values, strict=False))
    except csv.Error as error:
        yield BadRow(rows.line_num, str(error))
    finally:
        csv.field_size_limit(before)


def _csv_lines(lines: Iterable[tuple[int, str | None]], delimiter: str) -> Iterator[str]:
    for number, line in lines:
        if line is None or line.count(delimiter) > MAX_VALUES:
            raise TooLargeError(f"line {number} is too long to be read: split the table")
        yield line


def _choose(fields: RowFields, sample: list[dict[str, Any]]) -> tuple[RowFields, tuple[str, ...]]:
    """The fields to use: as named, or guessed with a note."""
    names = list(dict.fromkeys(name for row in sample for name in row))
    for name in (*fields.text, *filter(None, (fields.id, fields.title)), *(fields.metadata or ())):
        if name not in names:
            raise IngestError(f"has no field {name!r}; its fields are {', '.join(map(repr, names))}")
    title = fields.title or next((name for name in _TITLE_NAMES if name in names), None)
    if not names:
        raise IngestError("has no fields: name the columns in its first line")
    text = fields.text or _guess_text(names, title)
    key = fields.id or next((name for name in _ID_NAMES if name in names and name not in text), None)
    notes = []
    if not fields.text:
        named = " and ".join(map(repr, text))
        notes.append(f"text taken from {named}" if text else "text taken from all fields, as 'name: value'")
    if not fields.id:
        notes.append(f"id taken from {key!r}" if key else "no id field: rows are named by their content")
    metadata = fields.metadata
    if metadata is None:
        metadata = tuple(name for name in names if name not in (*text, title, key))
    return RowFields(text=text, id=key, title=title, metadata=metadata), tuple(notes)


def _guess_text(names: list[str], title: str | None) -> tuple[str, ...]:
    """The title, the question and the field of a usual name; the only field; otherwise none, which is all."""
    found = next((name for name in _TEXT_NAMES if name in names), None)
    if found is None:
        return tuple(names) if len(names) == 1 else ()
    question = next((name for name in _QUESTION_NAMES if name in names), None)
    return tuple(name for name in (title, question, found) if name)


def _text_of(row: Mapping[str, Any], fields: RowFields) -> str:
    """The text of a row: its named fields as paragraphs, or all fields but the id as lines."""
    if fields.text:
        return "\n\n".join(filter(None, (clean(_as_text(row.get(name))) for name in fields.text)))
    values = {name: clean(_as_text(value)) for name, value in row.items() if name != fields.id}
    return "\n".join(f"{one_line(name)}: {value}" for name, value in values.items() if value)


def _document(numbered: Numbered, fields: RowFields, keys: dict[str, int]) -> Document | BadRow:
    """A row as a document without source and hash; ``keys`` counts the occurrences of each key."""
    number, row = numbered
    try:
        text = _text_of(row, fields)
        if not text:
            return BadRow(number, f"nothing in {' and '.join(map(repr, fields.text)) or 'its fields'}")
        title = one_line(_as_text(row.get(fields.title))[:MAX_TITLE]) if fields.title else ""
        key = one_line(_as_text(row.get(fields.id))) if fields.id else ""
        if len(key) > MAX_TITLE:
            return BadRow(number, f"its id has {len(key):,} characters; at most {MAX_TITLE:,} are kept")
        key = key or digest(text.encode())[:16]
        keys[key] = keys.get(key, 0) + 1
        kept = [name for name in fields.metadata or () if row.get(name) not in (None, "")]
        if not fields.text:  # long values are in the text already
            kept = [name for name in kept if len(str(row[name])) <= MAX_TITLE]
        metadata = {name: plain_json(row[name]) for name in kept}
        check_metadata_size(metadata)
    except TooLargeError as error:
        return BadRow(number, str(error))
    except RecursionError:
        return BadRow(number, "nested too deep")
    key = key if keys[key] == 1 else f"{key}~{keys[key]}"
    return Document(
        source="",
        text=text,
        kind="rows",
        title=title or key,
        metadata={**metadata, "row": key, "line": number},
        key=key,
    )


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_as_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)
