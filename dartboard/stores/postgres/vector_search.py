"""Vector searches, one statement each. Scores are cosines or dot products; ties by id.

The exact statement adds 0 to the distance, so that no index applies and the planner cannot make it
approximate. The approximate statement asks the index for a few more than ``k``. If ties with the k-th score
extend beyond them, or a filter leaves fewer than ``k``, the exact statement runs instead.
"""

from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Metric
from dartboard.stores.postgres.filter_sql import condition
from dartboard.stores.postgres.rows import to_sparsevec
from dartboard.stores.postgres.schema import Table
from dartboard.stores.records import SparseVector
from dartboard.types import FloatArray, Hit

OPERATORS: dict[Metric, str] = {"cosine": "<=>", "dot": "<#>"}
WIDEST_VECTOR_INDEX = 2_000
"""The most dimensions that pgvector indexes in full; twice as many at half precision."""
_MARGIN = 16


def is_halved(table: Table, field: str | None) -> bool:
    """Whether the field's index stores vectors at half precision."""
    return table.manifest.vector_field(field).dimension > WIDEST_VECTOR_INDEX


def indexed_expression(table: Table, field: str | None) -> str:
    """The indexed expression: the vector, or if it is too long, its unit vector at half precision."""
    column = table.column(field)
    if not is_halved(table, field):
        return column
    return f"(l2_normalize({column})::halfvec({table.manifest.vector_field(field).dimension}))"


def exact_statement(table: Table, field: str | None, where: Filter | None) -> tuple[str, dict[str, Any]]:
    """Compare every matching record. Parameters: ``query``, ``k``."""
    matching, parameters = condition(where)
    statement = table.statement(
        "SELECT id, ({column} {operator} %(query)s) + 0 AS distance FROM {records} "
        "WHERE {column} IS NOT NULL AND {matching} ORDER BY distance, id LIMIT %(k)s",
        column=table.column(field),
        operator=OPERATORS[table.manifest.vector_field(field).metric],
        matching=matching,
    )
    return statement, parameters


def approximate_statement(
    table: Table, field: str | None, where: Filter | None
) -> tuple[str, dict[str, Any]]:
    """Use the index if the planner chooses it. Parameters: ``query``, ``k``."""
    matching, parameters = condition(where)
    described = table.manifest.vector_field(field)
    halved = f"::vector::halfvec({described.dimension})" if is_halved(table, field) else ""
    statement = table.statement(
        "SELECT id, {column} {operator} %(query)s AS distance FROM {records} WHERE {column} IS NOT NULL "
        "AND {matching} ORDER BY {indexed} {operator} %(query)s{halved} LIMIT %(k)s",
        column=table.column(field),
        operator=OPERATORS[described.metric],
        matching=matching,
        indexed=indexed_expression(table, field),
        halved=halved,
    )
    return statement, parameters


def search_dense(
    connection: Any,
    table: Table,
    query: FloatArray,
    k: int,
    field: str | None,
    where: Filter | None,
    width: int | None,
) -> list[Hit]:
    """The nearest matching records; with a ``width``, from an index search of this width."""
    metric = table.manifest.vector_field(field).metric
    if width is not None:
        statement, parameters = approximate_statement(table, field, where)
        asked = k + (k // 4 if is_halved(table, field) else 0) + _MARGIN
        with connection.pipeline():
            set_width(connection, width)
            cursor = connection.execute(statement, {**parameters, "query": query, "k": asked})
            hits = _hits(cursor.fetchall(), metric)
        undecided = len(hits) == asked and hits[k - 1].score == hits[-1].score
        if len(hits) >= k and not undecided:
            return hits[:k]
    statement, parameters = exact_statement(table, field, where)
    return _hits(connection.execute(statement, {**parameters, "query": query, "k": k}).fetchall(), metric)


def set_width(connection: Any, width: int) -> None:
    """Set the index's candidate list size (``ef_search``) for this transaction."""
    connection.execute("SELECT set_config('hnsw.ef_search', %s, true)", (str(width),))


def search_sparse(
    connection: Any, table: Table, query: SparseVector, k: int, field: str, where: Filter | None
) -> list[Hit]:
    """Best by dot product; weights are positive, so a product of 0 means no shared term."""
    matching, parameters = condition(where)
    statement = table.statement(
        "SELECT id, {column} <#> %(query)s AS distance FROM {records} "
        "WHERE {column} IS NOT NULL AND {column} <#> %(query)s < 0 AND {matching} "
        "ORDER BY distance, id LIMIT %(k)s",
        column=table.sparse[field],
        matching=matching,
    )
    asked = {**parameters, "query": to_sparsevec(query), "k": k}
    return _hits(connection.execute(statement, asked).fetchall(), "dot")


def _hits(rows: list[tuple[str, float]], metric: Metric) -> list[Hit]:
    offset = 1.0 if metric == "cosine" else 0.0
    hits = [Hit(id, float(offset - distance)) for id, distance in rows]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))
