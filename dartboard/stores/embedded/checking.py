"""All of a file looked at: SQLite's own structure, then every record against its checksums."""

import sqlite3
from typing import NamedTuple

from dartboard.stores.embedded.reading import read_batches
from dartboard.stores.embedded.revisions import revision_of
from dartboard.stores.embedded.structure import check_structure
from dartboard.stores.embedded.sums import damaged, has_sums

_BATCH = 1000


class Checked(NamedTuple):
    """How many records were found whole, and how many of them carry no checksums to tell by."""

    records: int
    unchecked: int


def check_file(connection: sqlite3.Connection) -> Checked:
    """Read everything; what is not as it was written is an error that says what it is."""
    check_structure(connection)
    total = 0
    for key, name in connection.execute("SELECT key, name FROM collections ORDER BY key").fetchall():
        revision = revision_of(connection, key, name)
        _ = revision.manifest  # parsed, which finds damage
        records = revision.records
        counted = _with_contents(connection, key)
        if counted != records:
            raise damaged(f"collection {name!r} ({counted} of {records} records can be read)")
        total += sum(len(batch) for batch in read_batches(connection, key, None, _BATCH, of=records))
    without = "WHERE sum IS NULL" if has_sums(connection) else ""
    (unchecked,) = connection.execute(f"SELECT count(*) FROM contents {without}").fetchone()  # noqa: S608
    return Checked(total, int(unchecked))


def _with_contents(connection: sqlite3.Connection, collection: int) -> int:
    query = "SELECT count(*) FROM records JOIN contents USING (row) WHERE collection = ?"
    return int(connection.execute(query, (collection,)).fetchone()[0])
