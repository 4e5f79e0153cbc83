"""What searches of a collection remember from one to the next: the rows of filters, the ids of rows."""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from dartboard.stores.embedded.reading import check_words_after
from dartboard.stores.embedded.rows import Rows, rows_that_match
from dartboard.stores.embedded.structure import is_small
from dartboard.stores.embedded.sums import damaged
from dartboard.stores.filters import Filter, filter_to_json

_FILTERS_KEPT = 32
_IDS_KEPT = 200_000


class Remembered:
    """Shared by all threads that read a collection."""

    def __init__(self) -> None:
        self._filters: OrderedDict[tuple[int, str], Rows] = OrderedDict()
        self._ids: dict[int, str] = {}
        self._checked_row = 0
        self._lock = Lock()

    def matching(self, connection: sqlite3.Connection, collection: int, revision: int, where: Filter) -> Rows:
        """The rows that match; the last few filters are remembered until the next write."""
        key = (revision, json.dumps(filter_to_json(where)))
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        self.check_metadata(connection, collection)
        rows = rows_that_match(connection, collection, where)
        with self._lock:
            for old in [old for old in self._filters if old[0] < revision]:
                del self._filters[old]
            self._filters[key] = rows
            while len(self._filters) > _FILTERS_KEPT:
                self._filters.popitem(last=False)
        return rows

    def check_metadata(self, connection: sqlite3.Connection, collection: int) -> None:
        """See that the metadata, by which a filter chooses, are those that were written; each row once.

        In a large file that takes too long: there, only what is handed over is checked.
        """
        if is_small(connection):
            self._checked_row = check_words_after(connection, collection, self._checked_row)

    def ids(self, rows: list[int], look_up: Callable[[list[int]], dict[int, str]]) -> list[str]:
        """The ids of rows, in their order; a row never changes its id, so it is looked up once."""
        known = self._ids
        if unknown := [row for row in rows if row not in known]:
            if len(known) > _IDS_KEPT:
                known, unknown = {}, rows
                self._ids = known
            known.update(look_up(unknown))
        try:
            return [known[row] for row in rows]
        except KeyError as error:
            raise damaged(f"the record in row {error}, which an index knows,") from error
