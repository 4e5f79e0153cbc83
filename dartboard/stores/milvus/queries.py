"""Queries to one collection of Milvus: ids and rows in pages that it can send, and the best k of a search.

A server cuts among equal scores as it likes, so it is asked for a few more than k. Where the first score that
it would have cut is as good as the k-th, it is asked for more, until the equals are all there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dartboard.errors import StoreError
from dartboard.stores.milvus.connection import Connection
from dartboard.stores.milvus.filter_expressions import Expression, among, quoted
from dartboard.types import FloatArray, Hit

MOST_HITS = 16_384
_SPARE_HITS = 8
_ID_PAGE = 10_000
_ID_BYTES = 4_000_000
_FIRST_ROWS, _MOST_ROWS = 100, 2_000
_ANSWER_BYTES = 8_000_000


class Reader:
    """Pages of one collection."""

    def __init__(self, connection: Connection, collection: str) -> None:
        self._connection = connection
        self._collection = collection

    def count(self, expression: Expression) -> int:
        """How many rows match."""
        if expression.text is None:
            return 0
        found = self._query(filter=expression.text, output_fields=["count(*)"])
        return int(found[0]["count(*)"])

    def ids(self, expression: Expression, page: int) -> Iterator[list[str]]:
        """The ids that match, rising, in pages of ``page``; what is written meanwhile may be among them."""
        if expression.text is None:
            return
        last, waiting = "", []
        while True:
            beyond = Expression(f"id > {quoted(last)}")
            found = self._query(
                filter=(beyond & expression).text,
                output_fields=["id"],
                limit=min(max(page, 1000), _ID_PAGE),
                iterator="True",
                reduce_stop_for_best="True",
            )
            fresh = sorted(row["id"] for row in found)
            if fresh and fresh[0] <= last:
                raise StoreError("Milvus did not page by rising id: upgrade the server to 2.5 or later")
            waiting += fresh
            while len(waiting) >= page or (waiting and not fresh):
                yield waiting[:page]
                waiting = waiting[page:]
            if not fresh:
                return
            last = fresh[-1]

    def rows(self, ids: Sequence[str], fields: list[str]) -> Iterator[dict[str, Any]]:
        """The rows of the ids that exist, in any order."""
        for chunk in self.chunks(ids, fields):
            yield from chunk

    def chunks(self, ids: Sequence[str], fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        """The same in answers of about 8 MB."""
        at, size = 0, _FIRST_ROWS
        while at < len(ids):
            asked = list(ids[at : at + size])
            at += len(asked)
            rows = list(self._query(filter=among(asked).text, output_fields=fields))
            if rows:
                yield rows
                each = sum(map(_weight, rows)) / len(rows)
                size = int(min(max(_ANSWER_BYTES / max(each, 1.0), 1), _MOST_ROWS))

    def delete_ids(self, ids: Sequence[str]) -> int:
        """Delete the rows with these ids; how many there were."""
        removed = 0
        for chunk in _id_chunks(list(dict.fromkeys(ids))):
            there = [row["id"] for row in self._query(filter=among(chunk).text, output_fields=["id"])]
            if there:
                self._connection.call("delete", self._collection, filter=among(there).text)
                removed += len(there)
        return removed

    def delete_where(self, expression: Expression) -> int:
        """Delete the rows that match; how many there were."""
        removed = 0
        for ids in list(self.ids(expression, _ID_PAGE)):
            for chunk in _id_chunks(ids):
                self._connection.call("delete", self._collection, filter=among(chunk).text)
            removed += len(ids)
        return removed

    def _query(self, **given: Any) -> Any:
        return self._connection.call("query", self._collection, **given)


def _id_chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for id in ids:
        if chunk and (len(chunk) == _MOST_ROWS or size + len(id) > _ID_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(id)
        size += len(id)
    if chunk:
        yield chunk


def _weight(row: dict[str, Any]) -> int:
    """About how many bytes a row took on its way."""
    return sum(_value_weight(value) for value in row.values())


def _value_weight(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return sum(map(len, value))
    if isinstance(value, (list, dict)):
        return 12 * len(value)
    return 8


def best_hits(search: Callable[[int], list[Hit]], k: int, *, slack: float = 0.0) -> list[Hit]:
    """The server's hits down to the k-th score less ``slack``, sorted; k or more where there are so many."""
    limit = min(k + _SPARE_HITS, MOST_HITS)
    while True:
        hits = sorted(search(limit), key=order)
        if len(hits) <= k:
            return hits
        floor = hits[k - 1].score - slack
        if hits[-1].score < floor or len(hits) < limit or limit == MOST_HITS:
            return [hit for hit in hits if hit.score >= floor]
        limit = min(2 * limit, MOST_HITS)


def order(hit: Hit) -> tuple[float, str]:
    """Best first, equal scores by id."""
    return -hit.score, hit.id


class ExactRanking:
    """Scores in float64, rounded to float32, so that equal vectors get equal scores; keeps the k best."""

    def __init__(self, query: FloatArray, k: int, *, cosine: bool) -> None:
        self._query = query.astype(np.float64)
        self._k = k
        self._cosine = cosine
        self.hits: list[Hit] = []

    def add(self, ids: list[str], vectors: FloatArray) -> None:
        """Compare these vectors, ``(n, d)``, too."""
        rows = vectors.astype(np.float64)
        scores = np.einsum("ij,j->i", rows, self._query)
        if self._cosine:
            scores /= np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rounded = scores.astype(np.float32)
        self.hits += [Hit(id, float(score)) for id, score in zip(ids, rounded, strict=True)]
        self.hits = sorted(self.hits, key=order)[: self._k]
