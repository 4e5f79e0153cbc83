"""Which state of a collection a connection sees."""

import sqlite3
from dataclasses import dataclass

from dartboard.errors import CollectionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A collection at one moment: every write raises ``number``; rows up to ``last_row`` are given out."""

    number: int
    floor: int
    records: int
    last_row: int


def revision_of(connection: sqlite3.Connection, collection: int, name: str) -> Revision:
    """The collection's state, or an error where it was dropped."""
    found = connection.execute(
        "SELECT revision, floor, records, next_row - 1 FROM collections, counters WHERE key = ?",
        (collection,),
    ).fetchone()
    if found is None:
        raise CollectionError(f"collection {name!r} was dropped meanwhile")
    number, floor, records, last_row = found
    return Revision(number=number, floor=floor, records=records, last_row=last_row)


class Outdated(Exception):
    """A connection sees an older state than one that was searched already: begin again; never leaves."""
