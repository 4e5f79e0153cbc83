"""Queries to one Milvus collection: ids and rows in pages, and the best k of a search.

A server breaks ties arbitrarily, so it is asked for a few more than k hits. If the first score after the k-th
equals it, the server is asked for more, until all ties are included.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from dartboard.errors import StoreError
from dartboard.stores.milvus.connection import Connection
from dartboard.stores.milvus.filter_expressions import Expression, among, quoted
from dartboard.types import FloatArray, Hit

_Item = TypeVar("_Item")

MOST_HITS = 16_384
_SPARE_HITS = 8
_ID_PAGE = 10_000
REQUEST_ROWS = 500
"""Rows of one request or answer: with token codes of 40 KB, 20 MB of the 64 that Milvus takes."""


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

    def id_pages(self, expression: Expression, page: int = _ID_PAGE) -> Iterator[list[str]]:
        """The matching ids, sorted, in pages of ``page``; may include concurrent writes."""
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
                raise StoreError("Milvus did not page by increasing id: upgrade the server to 2.5 or later")
            waiting += fresh
            while len(waiting) >= page or (waiting and not fresh):
                yield waiting[:page]
                waiting = waiting[page:]
            if not fresh:
                return
            last = fresh[-1]

    def rows(self, ids: Iterable[str], fields: list[str]) -> dict[str, dict[str, Any]]:
        """The rows of the ids that exist, by id."""
        pages = self.row_pages(list(dict.fromkeys(ids)), fields)
        return {row["id"]: row for page in pages for row in page}

    def row_pages(self, ids: Sequence[str], fields: list[str]) -> Iterator[list[dict[str, Any]]]:
        """The rows of the ids that exist, unsorted."""
        for asked in batched(ids):
            yield list(self._query(filter=among(asked).text, output_fields=fields))

    def delete(self, ids: Iterable[str]) -> int:
        """Delete the rows with these ids; returns how many existed."""
        removed = 0
        for asked in batched(list(dict.fromkeys(ids))):
            there = [row["id"] for row in self._query(filter=among(asked).text, output_fields=["id"])]
            if there:
                self._connection.call("delete", self._collection, filter=among(there).text)
                removed += len(there)
        return removed

    def _query(self, **given: Any) -> Any:
        return self._connection.call("query", self._collection, **given)


def batched(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """What goes into one request."""
    for start in range(0, len(items), REQUEST_ROWS):
        yield items[start : start + REQUEST_ROWS]


def best_hits(search: Callable[[int], list[Hit]], k: int, *, slack: float = 0.0) -> list[Hit]:
    """The server's hits down to the k-th score minus ``slack``, sorted; at least k if there are as many."""
    limit = min(k + _SPARE_HITS, MOST_HITS)
    while True:
        hits = sorted(search(limit), key=_order)
        if len(hits) <= k:
            return hits
        floor = hits[k - 1].score - slack
        if hits[-1].score < floor or len(hits) < limit or limit == MOST_HITS:
            return [hit for hit in hits if hit.score >= floor]
        limit = min(2 * limit, MOST_HITS)


def exact_hits(
    query: FloatArray, k: int, pages: Iterable[list[dict[str, Any]]], field: str, *, cosine: bool
) -> list[Hit]:
    """The k best of all rows by their vectors in ``field``.

    Scores are computed in float64 and rounded to float32, so that equal vectors get equal scores.
    """
    best: list[Hit] = []
    for rows in pages:
        vectors = np.array([row[field] for row in rows], np.float64)
        scores = np.einsum("ij,j->i", vectors, query.astype(np.float64))
        if cosine:
            scores /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        rounded = scores.astype(np.float32)
        best += [Hit(row["id"], float(score)) for row, score in zip(rows, rounded, strict=True)]
        best = sorted(best, key=_order)[:k]
    return best


def _order(hit: Hit) -> tuple[float, str]:
    return -hit.score, hit.id
