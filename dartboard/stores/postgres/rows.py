"""Records to rows and back, in PostgreSQL's binary formats."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.stores.postgres.conditions import to_json
from dartboard.stores.postgres.tables import SPARSE_DIMENSION, Table
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

LONGEST_ID = 2_600
"""Bytes of an id that PostgreSQL's index takes for certain."""
MOST_TERMS = 16_000
"""pgvector's limit for the terms of one sparse vector."""
_LENGTHS = (1e-15, 1e15)
"""pgvector multiplies in float32; squares of longer or shorter vectors would overflow or vanish."""


def columns(table: Table) -> list[str]:
    """The columns of a record's row, without the derived one."""
    return ["id", "text", "metadata", "embedding", *table.vectors().values(), *table.sparse().values()]


def column_types(table: Table) -> list[str]:
    """What ``COPY`` writes into :func:`columns`."""
    return [
        *("text", "text", "jsonb", "vector"),
        *("vector" for _ in table.vectors()),
        *("sparsevec" for _ in table.sparse()),
    ]


def to_row(record: Record, table: Table) -> tuple[Any, ...]:
    """The record's values for :func:`columns`."""
    from psycopg.types.json import Jsonb

    return (
        record.id,
        record.text,
        Jsonb(record.metadata, dumps=to_json),
        record.embedding,
        *(record.vectors.get(name) for name in table.vectors()),
        *(_sparse(record.sparse.get(name)) for name in table.sparse()),
    )


def check_records(records: Sequence[Record]) -> None:
    """What pgvector and PostgreSQL's index cannot hold is refused before anything is written."""
    for record in records:
        if len(record.id) * 4 > LONGEST_ID and len(record.id.encode("utf-8", "replace")) > LONGEST_ID:
            raise InvalidInputError(
                f"id {record.id[:60]!r}… has more than {LONGEST_ID} bytes: PostgreSQL's index takes no longer"
            )
        for vector in (record.embedding, *record.vectors.values()):
            check_length(vector, f"chunk {record.id!r}")
        for sparse in record.sparse.values():
            check_sparse(sparse, f"chunk {record.id!r}")


def check_length(vector: FloatArray, what: str) -> None:
    """The vector's squares stay within float32."""
    doubled = vector.astype(np.float64)
    length = math.sqrt(doubled @ doubled)
    if not _LENGTHS[0] <= length <= _LENGTHS[1]:
        raise InvalidInputError(
            f"{what}: a vector has length {length:.3g}; pgvector computes within {_LENGTHS[0]:g} to "
            f"{_LENGTHS[1]:g}: scale it to unit length"
        )


def check_sparse(vector: SparseVector, what: str) -> None:
    """The sparse vector fits pgvector's ``sparsevec``."""
    if vector.terms.size > MOST_TERMS:
        raise InvalidInputError(
            f"{what}: a sparse vector has {vector.terms.size} terms; pgvector takes {MOST_TERMS}: keep the "
            "heaviest"
        )
    if vector.terms.size and vector.terms[-1] >= SPARSE_DIMENSION:
        raise InvalidInputError(f"{what}: a sparse vector has a term beyond pgvector's {SPARSE_DIMENSION:,}")


def to_sparsevec(vector: SparseVector) -> Any:
    """pgvector's own form."""
    from pgvector import SparseVector as Sparsevec

    return Sparsevec(dict(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True)), SPARSE_DIMENSION)


def from_row(
    row: Sequence[Any], table: Table, *, whole: bool, blobs: Mapping[str, bytes] | None = None
) -> Record:
    """The record of a row; ``whole``: the row has the further vectors too."""
    id, text, metadata, embedding, *further = row
    vectors, sparse = (table.vectors(), table.sparse()) if whole else ({}, {})
    given = dict(zip([*vectors.values(), *sparse.values()], further, strict=True))
    return Record(
        id,
        text,
        embedding.to_numpy(),
        metadata,
        vectors={name: given[at].to_numpy() for name, at in vectors.items() if given[at] is not None},
        sparse={
            name: SparseVector.of(given[at].indices(), given[at].values())
            for name, at in sparse.items()
            if given[at] is not None
        },
        blobs=dict(blobs or {}),
    )


def _sparse(vector: SparseVector | None) -> Any:
    return None if vector is None else to_sparsevec(vector)
