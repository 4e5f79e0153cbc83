"""Vectors on disk under 32-byte keys: one SQLite file, whose durability is SQLite's.

Write-ahead logging lets several processes read and write at once, and a process killed in the middle
of a batch loses that batch only. Every vector carries a checksum. A damaged file is set aside and
begun anew: a cache may forget, but it must not fail and must not lie.
"""

import logging
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import numpy as np

from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError

logger = logging.getLogger(__name__)

_APPLICATION = 0x44415254  # "DART"
_FORMAT = 1
_KEYS_A_QUERY = 500
_BUSY_SECONDS = 60
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB, checksum INTEGER)"


class VectorFile:
    """A dictionary from keys to vectors that outlives the process; threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._last_trouble = ""
        if path.is_dir():
            raise ConfigError(
                f"{path} is a folder: give the path of a file in it, e.g. {path / 'vectors.sqlite'}"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"no vector cache can be kept at {path}: {error}") from error
        self._connection = self._open_or_replace(thorough=False)

    def read(self, keys: Sequence[bytes], dim: int) -> dict[bytes, Vectors]:
        """The vectors that are there, whole and of ``dim`` entries; all others count as absent."""
        found: dict[bytes, Vectors] = {}
        with self._lock:
            try:
                for key, blob, checksum in self._rows(keys):
                    if _is_whole(key, blob, checksum) and len(blob) == 4 * dim:
                        found[key] = np.frombuffer(blob, "<f4").astype(np.float32)
            except sqlite3.Error as error:
                self._survive(error)
        return found

    def write(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keep these vectors: all of them or, if the process dies now, none."""
        rows = []
        for key, vector in vectors.items():
            blob = vector.astype("<f4").tobytes()
            rows.append((key, blob, _checksum(key, blob)))
        with self._lock:
            try:
                with self._connection:
                    self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            except sqlite3.Error as error:
                self._survive(error)

    def close(self) -> None:
        """Let go of the file; it cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def _rows(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, bytes, int]]:
        for start in range(0, len(keys), _KEYS_A_QUERY):
            some = keys[start : start + _KEYS_A_QUERY]
            marks = ",".join("?" * len(some))
            yield from self._connection.execute(
                f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})",  # noqa: S608 - marks only
                some,
            )

    def _survive(self, error: sqlite3.Error) -> None:
        """Replace a damaged file; for any other trouble (disk full, locked) go on without the cache."""
        if not _is_damage(error):
            if str(error) != self._last_trouble:
                logger.warning("vector cache %s cannot be used, going on without it: %s", self.path, error)
            self._last_trouble = str(error)
            return
        self._connection.close()
        self._connection = self._open_or_replace(thorough=True)

    def _open_or_replace(self, *, thorough: bool) -> sqlite3.Connection:
        try:
            return _open(self.path, thorough=thorough)
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise ConfigError(f"vector cache {self.path} cannot be opened: {error}") from error
            _set_aside(self.path, error)
            return _open(self.path, thorough=False)


def _open(path: Path, *, thorough: bool) -> sqlite3.Connection:
    """A connection to a file of our kind; ``thorough`` reads the whole file to see whether it is sound."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        version = _check_kind(connection, path)
        if thorough:
            _check_soundness(connection)
        if version == 0:
            _create(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_kind(connection: sqlite3.Connection, path: Path) -> int:
    """The format version, 0 for a new file; another program's database is left alone.

    Tables are counted first: where another process has just made ours, their stamp came with them.
    """
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    stamp = connection.execute("PRAGMA application_id").fetchone()[0]
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if tables and stamp != _APPLICATION:
        raise ConfigError(f"{path} is a database of another program: give the cache a path of its own")
    if version not in (0, _FORMAT):
        raise ConfigError(
            f"{path} has cache format {version}, this dartboard reads {_FORMAT}: give another path"
        )
    return version


def _check_soundness(connection: sqlite3.Connection) -> None:
    (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if problem != "ok":
        error = sqlite3.DatabaseError(problem)
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _create(connection: sqlite3.Connection) -> None:
    """Several processes may do this at once; the switch to write-ahead logging does not wait by itself."""
    for attempt in range(_BUSY_SECONDS * 10):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if attempt + 1 == _BUSY_SECONDS * 10:
                raise
            time.sleep(0.1)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _set_aside(path: Path, error: sqlite3.Error) -> None:
    """Move the file and what belongs to it out of the way; nothing is deleted."""
    kept = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            part.rename(kept.with_name(kept.name + suffix))
    logger.warning("vector cache %s is damaged (%s): set aside as %s and begun anew", path, error, kept)


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _is_whole(key: object, blob: object, checksum: object) -> bool:
    return isinstance(key, bytes) and isinstance(blob, bytes) and checksum == _checksum(key, blob)


def _checksum(key: bytes, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(key))
