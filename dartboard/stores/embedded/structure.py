"""SQLite's own check of a file: that its pages form the trees that they should, in order, and agree.

Checksums find a record that was changed. They do not find one that is out of reach because pages were
exchanged or lost: a lookup then finds nothing, as if nothing had been written. SQLite's ``integrity_check``
does, and takes 2 ms for each MB. So files up to :data:`SMALL_BYTES` are checked when they are first used,
larger ones whenever all of a table is read: for an index, a list of all records, a snapshot, ``dartboard
doctor``.
"""

import sqlite3

from dartboard.errors import StoreFormatError
from dartboard.stores.embedded.recovery import RESTORE

SMALL_BYTES = 16 * 1024 * 1024


def check_structure(connection: sqlite3.Connection) -> None:
    """Refuse a file whose pages do not fit together, as the connection sees it."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreFormatError(
            f"the file is damaged ({' '.join(str(said).split())}): {RESTORE}, or move it away and index again"
        )


def is_small(connection: sqlite3.Connection) -> bool:
    """Whether all of the file can be checked without anybody having to wait for it."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return bool(pages * page_bytes <= SMALL_BYTES)
