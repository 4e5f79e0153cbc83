"""All of a file looked at: SQLite's own structure, then every record against its checksums."""

import sqlite3
from typing import NamedTuple

from dartboard.errors import StoreFormatError
from dartboard.stores.embedded.reading import read_batches
from dartboard.stores.embedded.revisions import fresh_manifest, revision_of
from dartboard.stores.embedded.sums import damaged, has_sums

_BATCH = 1000


class Checked(NamedTuple):
    """How many records were found whole, and how many of them carry no checksums to tell by."""

    records: int
    unchecked: int


def check_file(connection: sqlite3.Connection) -> Checked:
    """Read everything; what is not as it was written is an error that says what it is."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreFormatError(
            f"the file is damaged ({' '.join(str(said).split())}): restore it from a snapshot or a backup, "
            "or move it away and index again"
        )
    total = 0
    for key, name in connection.execute("SELECT key, name FROM collections ORDER BY key").fetchall():
        counted = sum(len(batch) for batch in read_batches(connection, key, None, _BATCH))
        revision = revision_of(connection, key, name)
        if counted != revision.records:
            raise damaged(f"collection {name!r} ({counted} of {revision.records} records can be read)")
        fresh_manifest(revision.manifest_text)
        total += counted
    without = "WHERE sum IS NULL" if has_sums(connection) else ""
    (unchecked,) = connection.execute(f"SELECT count(*) FROM contents {without}").fetchone()  # noqa: S608
    return Checked(total, int(unchecked))
