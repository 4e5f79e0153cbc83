"""How wide an index must be searched: the narrowest width that finds what exact search finds.

pgvector's recall at one width is near 1 on embeddings of text and a third of that on noise, so the width
is measured on the collection itself when its index is built: queries halfway between two of its vectors
(questions lie about as far from the passages that answer them), and the share of the nearest 100 that the
index finds.
"""

import math
from typing import Any

import numpy as np

from dartboard.stores.postgres.searching import approximate_statement, exact_statement, set_width
from dartboard.stores.postgres.tables import Table
from dartboard.types import FloatArray

WIDTHS = (100, 150, 200, 300, 400, 600, 1000)
"""pgvector allows no more than the last."""
TARGET = 0.995
HITS = 100
_QUERIES = 60
_SAME = 1e-6  # distances closer than that are a tie


def tune(connection: Any, table: Table, field: str | None) -> tuple[int | None, float]:
    """The narrowest width that reaches the target, or None, and the recall measured last."""
    queries = _queries(connection, table, field)
    statement, _ = exact_statement(table, field, None)
    farthest = [
        connection.execute(statement, {"query": query, "k": HITS}).fetchall()[-1][1] for query in queries
    ]
    connection.execute("SET LOCAL enable_seqscan = off")
    recall = 1.0
    for width in WIDTHS:
        recall = _recall(connection, table, field, queries, farthest, width)
        if recall >= TARGET:
            return width, recall
    return None, recall


def width_for(width: int, k: int, share: float = 1.0) -> int | None:
    """The width for ``k`` hits of the ``share`` that matches, where ``width`` does for 100 hits of all.

    None where pgvector allows no such width, or where so few match that comparing them is cheaper.
    """
    if share <= 0:
        return None
    needed = math.ceil(width * max(k / share, HITS) / HITS)
    return needed if needed <= WIDTHS[-1] else None


def _recall(
    connection: Any,
    table: Table,
    field: str | None,
    queries: list[FloatArray],
    farthest: list[float],
    width: int,
) -> float:
    statement, _ = approximate_statement(table, field, None)
    set_width(connection, width)
    found = 0
    for query, bound in zip(queries, farthest, strict=True):
        rows = connection.execute(statement, {"query": query, "k": HITS}).fetchall()
        found += sum(distance <= bound + _SAME for _, distance in rows)
    return found / (HITS * len(queries))


def _queries(connection: Any, table: Table, field: str | None) -> list[FloatArray]:
    """Directions halfway between two vectors of the collection, the same at every call."""
    from psycopg import sql

    statement = sql.SQL(
        "SELECT {0} FROM {1} WHERE {0} IS NOT NULL ORDER BY hashtext(id), id LIMIT %s"
    ).format(sql.Identifier(table.column(field)), table.records)
    rows = connection.execute(statement, (2 * _QUERIES,), binary=True).fetchall()
    vectors = np.stack([vector.to_numpy() for (vector,) in rows])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    half = len(vectors) // 2
    return list(vectors[:half] + vectors[half : 2 * half])
