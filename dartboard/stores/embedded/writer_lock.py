"""A lock file beside the store: one writer at a time, and a count of acknowledged writes.

The lock ends with the process that holds it. The count detects lost writes. When SQLite reopens a database,
it drops its log (``-wal``) from the first frame with a wrong checksum, and a missing log is no error either,
so acknowledged writes could disappear silently. Therefore every write increases a count in the store's file,
and the writer copies the count to the lock file (the note) after each commit. A file with a lower count than
the note has lost writes.

The note is written after the commit and not flushed separately: a killed process or a power cut can leave a
note that is too low, never one that is too high. The note is removed when the store is closed with an empty
log. Then all writes are in the file itself, and an older copy may replace it. A note that is damaged, or
that belongs to another store, is ignored. A lock file that is not a regular file (a link, for example) is
rejected, so that an index from somebody else cannot redirect a write to another file.

Hand-written: file-lock libraries offer only the lock, which takes three lines here.
"""

import json
import logging
import os
import re
import sqlite3
import zlib
from pathlib import Path
from typing import NamedTuple

from dartboard.errors import StoreError, StoreFormatError, StoreLockedError
from dartboard.stores.embedded.checksums import damaged
from dartboard.stores.files import NotRegularFileError, open_regular

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own locks remain
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

_NOTE_BYTES = 200
_NOTE = re.compile(rb"\x00*|\[\"\w*\", \d+\]\n\d+\n[\d\n]*")
"""A note; a killed write may leave the end of a longer one, and a power cut zeros."""
_TABLE = "CREATE TABLE IF NOT EXISTS writes (store TEXT NOT NULL, number INTEGER NOT NULL)"
_FIRST = "INSERT INTO writes SELECT lower(hex(randomblob(8))), 0 WHERE NOT EXISTS (SELECT 1 FROM writes)"
WRITES_TABLE = f"{_TABLE};\n{_FIRST};\n"


class WriteCount(NamedTuple):
    """The random name of a store, and how many writes it has acknowledged."""

    store: str
    number: int


class WriterLock:
    """Held from the first write until the store is closed; a forked child does not hold it.

    Its file also holds the count of acknowledged writes; only the holder of the lock changes it.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.lock")
        self._store = store
        self._file: int | None = None
        self._process = 0

    @property
    def held(self) -> bool:
        """Whether this process holds the lock through this object."""
        if self._file is not None and self._process != os.getpid():
            os.close(self._file)  # the parent's descriptor keeps the lock
            self._file = None
        return self._file is not None

    def take(self) -> None:
        """Take the lock, or raise an error that says what prevents it."""
        if self.held:
            return
        try:
            file = self._open(os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(
                f"{self._store} cannot be written: no lock file can be made beside it ({error.strerror}). "
                "Open it with read_only=True, or make the folder writable"
            ) from error
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise locked(self._store) from error
            found = os.read(file, _NOTE_BYTES + 1)
            if len(found) > _NOTE_BYTES or not _NOTE.fullmatch(found):
                raise StoreError(
                    f"{self.path} is not a lock file of dartboard: it holds other data, which a write would "
                    "destroy. Move it away: the next write makes a lock file in its place"
                )
        except BaseException:
            os.close(file)
            raise
        self._file, self._process = file, os.getpid()

    @property
    def note(self) -> WriteCount | None:
        """The count of acknowledged writes from the last writer; None if it cannot be read."""
        try:
            with os.fdopen(self._open(os.O_RDONLY), "rb") as stream:
                text, checksum, end = stream.read(_NOTE_BYTES).split(b"\n", 2)
            if end or int(checksum) != zlib.crc32(text):
                return None
            store, number = json.loads(text)
            return WriteCount(str(store), int(number))
        except (OSError, ValueError, TypeError):
            return None

    def acknowledge(self, count: WriteCount | None) -> None:
        """Write the count of acknowledged writes; None if all of them are in the file itself."""
        if not self.held or self._file is None:
            return
        data = b""
        if count is not None:
            text = json.dumps(count).encode()
            data = b"%b\n%d\n" % (text, zlib.crc32(text))
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, data)
            if os.fstat(self._file).st_size > len(data):
                os.ftruncate(self._file, len(data))
        except OSError as error:  # disk full: the write itself is safe, and an older note does no harm
            logger.warning("%s cannot be written: %s", self.path, error.strerror or error)

    def release(self) -> None:
        """Release the lock; releasing twice does nothing."""
        if self.held and self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, flags: int) -> int:
        """A descriptor of the lock file; anything but a regular file is rejected."""
        try:
            return open_regular(self.path, flags)
        except NotRegularFileError as error:
            raise StoreError(
                f"{error}: dartboard did not make it, and neither reads nor writes it. Remove it: the next "
                "write makes a lock file in its place"
            ) from error


def locked(store: Path) -> StoreLockedError:
    """The error for a store that another process is writing to."""
    return StoreLockedError(
        f"{store} is being written by another process (or another open store in this one): wait until it "
        "has finished or closes the store. Reading is possible meanwhile"
    )


def raise_count(connection: sqlite3.Connection) -> WriteCount:
    """Count one more write within its transaction; files of earlier releases start at 1."""
    connection.execute(_TABLE)
    connection.execute(_FIRST)
    connection.execute("UPDATE writes SET number = number + 1")
    return _valid(connection.execute("SELECT store, number FROM writes").fetchone())


def stored_count(connection: sqlite3.Connection) -> WriteCount:
    """The stored count; a file of earlier releases has no name and no writes."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'writes'").fetchone():
        return WriteCount("", 0)
    found = connection.execute("SELECT store, number FROM writes").fetchone()
    return _valid(found) if found else WriteCount("", 0)


def check_nothing_lost(connection: sqlite3.Connection, path: Path, noted: WriteCount | None) -> None:
    """Raise if the file counts fewer writes than the note, which must have been read before."""
    lost = lost_writes(connection, noted)
    if lost and noted is not None:
        raise StoreFormatError(
            f"{path} has lost {_writes(lost)}: {noted.number} were acknowledged, and the file holds those "
            f"up to number {noted.number - lost}. Its log {path.name}-wal is damaged or gone, or an older "
            "copy of the file took its place. Put the log back if you have it. Otherwise dartboard doctor "
            "--accept-loss continues with what is there: then index again, which adds what is missing"
        )


def lost_writes(connection: sqlite3.Connection, noted: WriteCount | None) -> int:
    """How many writes of the note are not in the file."""
    if noted is None:
        return 0
    stored = stored_count(connection)
    if stored.store and stored.store != noted.store:
        return 0
    return max(0, noted.number - stored.number)


def _valid(found: tuple[object, ...]) -> WriteCount:
    store, number = found
    if not isinstance(store, str) or not isinstance(number, int):
        raise damaged("the count of writes")
    return WriteCount(store, number)


def _writes(count: int) -> str:
    return "a write" if count == 1 else f"{count} writes"
