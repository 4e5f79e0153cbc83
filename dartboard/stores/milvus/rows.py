"""Conversion between records and Milvus rows.

Every row has every field, because an upsert replaces whole rows. A missing further vector is a placeholder,
which the row's terms mark as such; a missing sparse vector is one weight on a term that no query can have.
Milvus has no field for bytes: ``blobs`` is an array of texts with the name of each blob, the number of its
pieces, and the pieces in base64.

Milvus's analyzers differ (Milvus Lite does not stem), and none handles identifiers. So texts are analysed
here, as for the other stores. ``lexemes`` is a line of words that every Milvus splits and counts alike: a
term of plain letters and digits unchanged, any other term as a digest.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dartboard.lexical.analysis import Analyzer
from dartboard.stores.manifest import Manifest, lexical_settings
from dartboard.stores.milvus.filter_expressions import digest, ranges_of, terms_of, vector_term
from dartboard.stores.milvus.schema import CollectionLayout, field_name
from dartboard.stores.records import Record, SparseVector

_PIECE = 49_149  # bytes that give at most 65,535 characters of base64
_ABSENT, _EMPTY = 2**32 - 2, 2**32 - 3  # terms of sparse placeholders, outside of int32
_PLAIN = re.compile(r"[a-z0-9]{1,32}")
_NO_TERMS = f"x{digest('')}"  # Milvus requires text: this word replaces an empty line


@dataclass(frozen=True, slots=True)
class Lexemes:
    """Converts a collection's texts and queries to words for Milvus."""

    analyzer: Analyzer
    k1: float = 1.2
    b: float = 0.75

    @classmethod
    def of(cls, manifest: Manifest) -> "Lexemes":
        """Use the manifest's ``settings["lexical"]``."""
        given = lexical_settings(manifest)
        numbers = {name: given.pop(name) for name in ("k1", "b") if name in given}
        return cls(Analyzer(**given), **numbers)

    def of_text(self, text: str) -> str:
        """The words of a passage."""
        return self.of_query(text) or _NO_TERMS

    def of_query(self, text: str) -> str:
        """The words of a query; "" if it has none."""
        return " ".join(map(_spelt, self.analyzer.terms(text)))


@lru_cache(maxsize=100_000)
def _spelt(term: str) -> str:
    return term if _PLAIN.fullmatch(term) else f"x{digest(term)}"


def row_from_record(
    record: Record, manifest: Manifest, layout: CollectionLayout, lexemes: Lexemes
) -> dict[str, Any]:
    """The record as a row."""
    terms = sorted([*terms_of(record.metadata), *(vector_term(name) for name in record.vectors)])
    row: dict[str, Any] = {
        "id": record.id,
        "text": record.text,
        "lexemes": lexemes.of_text(record.text),
        "metadata": record.metadata,
        "terms": terms if layout.terms == "array" else " ".join(terms),
        "blobs": list(_pieces(record)),
        "embedding": record.embedding,
        **ranges_of(record.metadata),
    }
    for name, field in manifest.vectors.items():
        missing = np.eye(1, field.dimension, dtype=np.float32)[0]
        row[field_name("vector", name)] = record.vectors.get(name, missing)
    for name in manifest.sparse:
        row[field_name("sparse", name)] = _weights(record.sparse.get(name))
    return row


def record_from_row(
    row: Mapping[str, Any], manifest: Manifest, *, whole: bool, blobs: Sequence[str] = ()
) -> Record:
    """The record; further fields only if ``whole``."""
    kept = _blobs(row.get("blobs") or [])
    metadata = row["metadata"]
    record = Record(
        row["id"],
        row["text"],
        np.asarray(row["embedding"], dtype=np.float32),
        json.loads(metadata) if isinstance(metadata, (str, bytes)) else metadata,
        blobs=kept if whole else {name: kept[name] for name in blobs if name in kept},
    )
    if whole:
        held = row["terms"] if isinstance(row["terms"], str) else set(row["terms"])
        record.vectors = {
            name: np.asarray(row[field_name("vector", name)], dtype=np.float32)
            for name in manifest.vectors
            if vector_term(name) in held
        }
        found = {name: _sparse(row[field_name("sparse", name)]) for name in manifest.sparse}
        record.sparse = {name: vector for name, vector in found.items() if vector is not None}
    return record


def output_fields(manifest: Manifest, *, whole: bool, blobs: bool) -> list[str]:
    """The fields that :func:`record_from_row` reads."""
    fields = ["id", "text", "metadata", "embedding"]
    if whole:
        fields += ["terms", *(field_name("vector", name) for name in manifest.vectors)]
        fields += [field_name("sparse", name) for name in manifest.sparse]
    return [*fields, "blobs"] if whole or blobs else fields


def _weights(vector: SparseVector | None) -> dict[int, float]:
    if vector is None:
        return {_ABSENT: 1.0}
    return dict(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True)) or {_EMPTY: 1.0}


def _sparse(weights: Mapping[int, float]) -> SparseVector | None:
    if _ABSENT in weights:
        return None
    terms = sorted(term for term in weights if term != _EMPTY)
    return SparseVector(
        np.array(terms, dtype=np.int32), np.array([weights[term] for term in terms], dtype=np.float32)
    )


def _pieces(record: Record) -> Iterator[str]:
    for name, data in sorted(record.blobs.items()):
        starts = range(0, len(data), _PIECE)
        yield name
        yield str(len(starts))
        for start in starts:
            yield base64.b64encode(data[start : start + _PIECE]).decode("ascii")


def _blobs(pieces: Sequence[str]) -> dict[str, bytes]:
    found, at = {}, 0
    while at < len(pieces):
        name, count = pieces[at], int(pieces[at + 1])
        found[name] = b"".join(map(base64.b64decode, pieces[at + 2 : at + 2 + count]))
        at += 2 + count
    return found
