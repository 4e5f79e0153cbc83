"""Derived indexes: rebuilt from the store at any time, kept in memory and in ``<file>.derived/``.

Each saved index is a folder with a unique name. The store's table ``derived`` records the current folder, its
revision and settings, and the size and SHA-256 of its files. A file that was truncated, changed or planted
does not match and is not parsed; the index is rebuilt. If a file cannot be written (full or read-only disk),
the index stays in memory.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import sqlite3
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from dartboard.errors import ConfigError, StoreError, StoreFormatError
from dartboard.stores.ann import RECALL
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.record_reader import RecordReader
from dartboard.stores.files import leftovers, open_regular, owned, remove_leftovers

logger = logging.getLogger(__name__)

FORMAT = 2
_OURS = re.compile(r"\d+-[a-z]+-[0-9a-f]{16}")
_DRAFT = "draft-"
_DRAFTS = re.compile(rf"{_DRAFT}{_OURS.pattern}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Thresholds in numbers of records. The defaults follow the table in ``docs/decisions.md``."""

    files_from: int = 1000
    """Smaller collections are not saved: reading the store is as fast."""
    approximate_from: int = 20_000
    """Smaller collections are searched exactly."""
    recall: float = RECALL
    """Recall of approximate search for the 100 nearest."""
    tail_share: float = 0.1
    """The share of changed records after which an index is rebuilt."""
    tail_least: int = 1000
    """An index is not rebuilt for fewer changes than this."""
    compare_up_to: int = 2000
    """If a filter leaves at most this many records, they are compared exactly."""
    words_up_to: int = 200_000
    """Up to this size, closing the store saves a lexical index even without a text search."""

    def __post_init__(self) -> None:
        for name in ("files_from", "approximate_from", "tail_least", "compare_up_to", "words_up_to"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")
        if not 0.5 <= self.recall < 1:
            raise ConfigError(f"recall must be in [0.5, 1), got {self.recall}: search with exact=True for 1")
        if not 0 <= self.tail_share <= 1:
            raise ConfigError(f"tail_share must be in [0, 1], got {self.tail_share}")

    def too_much(self, changed: int, indexed: int) -> bool:
        """Whether an index of ``indexed`` records should be rebuilt after ``changed`` changes."""
        return changed > max(self.tail_least, self.tail_share * indexed)


class DamagedFileError(StoreFormatError):
    """A derived file that cannot be used; it is rebuilt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedIndex:
    """A saved index that the store's table lists."""

    folder: Path
    revision: int
    last_row: int
    about: Mapping[str, Any]
    files: Mapping[str, tuple[int, str]]

    def read(self, name: str) -> bytes:
        """The bytes of a sealed file, verified against size and SHA-256."""
        if name not in self.files:
            raise DamagedFileError(f"{name} is missing")
        size, digest = self.files[name]
        try:
            with os.fdopen(open_regular(self.folder / name, os.O_RDONLY), "rb") as stream:
                data = stream.read(size + 1)
        except OSError as error:
            raise DamagedFileError(f"{name}: {error}") from error
        if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            raise DamagedFileError(f"{name} does not match its checksum")
        return data


class DerivedFiles:
    """The derived folder of one store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        path = connections.path
        self.folder = path.with_name(f"{path.name}.derived")
        self._missed = False

    def find(
        self, connection: sqlite3.Connection, collection: int, kind: str, settings: Mapping[str, Any]
    ) -> SavedIndex | None:
        """The saved index of this kind and with these settings; it may be outdated."""
        row = connection.execute(
            "SELECT folder, revision, stamp FROM derived WHERE collection = ? AND kind = ?",
            (collection, kind),
        ).fetchone()
        if row is None or not _OURS.fullmatch(str(row[0])):
            return None
        if not (_is_folder(self.folder) and _is_folder(self.folder / row[0])):
            if self._connections.read_only and not self._missed:  # once: a reader cannot rebuild the files
                logger.warning(
                    "%s is gone or incomplete: indexes are built in memory for this run; "
                    "dartboard index PATH writes them again",
                    self.folder.name,
                )
            self._missed = True
            return None
        try:
            stamp = json.loads(row[2])
            kept = stamp.pop("crc32")
            if kept != _stamp_sum(collection, kind, row[0], row[1], stamp):
                return None
            if stamp["format"] != FORMAT or stamp["settings"] != json.loads(json.dumps(settings)):
                return None
            files = {name: (int(size), str(digest)) for name, (size, digest) in stamp["files"].items()}
            return SavedIndex(
                folder=self.folder / row[0],
                revision=int(row[1]),
                last_row=int(stamp["last_row"]),
                about=stamp["about"],
                files=files,
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    @contextmanager
    def draft(self, collection: int, kind: str) -> Iterator[Path | None]:
        """A new folder for an index, removed unless :meth:`keep` is called; None if it is not writable."""
        slug = re.sub("[^a-z].*", "", kind)
        folder = self.folder / f"{_DRAFT}{collection}-{slug}-{secrets.token_hex(8)}"
        if self._connections.read_only:
            yield None
            return
        with ExitStack() as stack:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                if not _is_folder(self.folder):
                    raise OSError("it is a symbolic link; remove it")
                stack.enter_context(owned(folder))
                folder.mkdir()
            except OSError as error:
                logger.warning("%s cannot be written, indexes stay in memory: %s", self.folder, error)
                yield None
            else:
                yield folder

    def keep(
        self,
        draft: Path,
        collection: int,
        kind: str,
        revision: int,
        stamp: Mapping[str, Any],
        *,
        sealed: Sequence[str],
    ) -> Path | None:
        """Record the index of a draft; returns its final folder, or None if the store cannot be written now.

        ``stamp`` is what :meth:`find` needs to know, ``sealed`` lists the files that are verified as a whole.
        """
        final = draft.with_name(draft.name.removeprefix(_DRAFT))
        try:
            stamp = {"format": FORMAT, **stamp, "files": {name: _seal(draft / name) for name in sealed}}
            with self._connections.may_write() as allowed:
                if not allowed:
                    return None
                draft.rename(final)
                with self._connections.writing(counted=False) as connection:
                    _vouch(connection, collection, kind, final.name, revision, stamp)
        except (OSError, StoreError) as error:
            shutil.rmtree(final, ignore_errors=True)
            logger.warning("%s: an index is not saved: %s", self.folder, error)
            return None
        self.sweep()
        return final

    def sweep(self) -> None:
        """Remove folders that the store does not list, unless another process is writing."""
        with self._connections.may_write() as allowed:
            if allowed and _is_folder(self.folder):
                remove_leftovers(self.folder, _DRAFTS)
                for folder in self._strays():
                    shutil.rmtree(folder, ignore_errors=True)

    def leftovers(self) -> list[Path]:
        """Drafts that no living process owns, and folders that the store does not list."""
        drafts = leftovers(self.folder, _DRAFTS) if _is_folder(self.folder) else []
        return [*drafts, *self._strays()]

    def _strays(self) -> list[Path]:
        if not _is_folder(self.folder):
            return []
        with self._connections.reading() as connection:
            known = {folder for (folder,) in connection.execute("SELECT folder FROM derived")}
        return [
            path
            for path in sorted(self.folder.iterdir())
            if _OURS.fullmatch(path.name) and path.name not in known
        ]

    def bytes_of(self, connection: sqlite3.Connection, collection: int) -> int:
        """Size on disk of the collection's derived files."""
        rows = connection.execute("SELECT folder FROM derived WHERE collection = ?", (collection,))
        folders = [self.folder / folder for (folder,) in rows if _OURS.fullmatch(str(folder))]
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


class IndexState(Protocol):
    """An immutable index at one revision of its collection; a write leads to a new state."""

    @property
    def revision(self) -> int:
        """Revision of the collection."""

    def describe(self) -> dict[str, Any]:
        """For statistics."""


State = TypeVar("State", bound=IndexState)


class DerivedIndex(ABC, Generic[State]):
    """An index of one kind over a collection, shared by all threads.

    Its files must have been made with ``settings``. Readers of an older revision keep the state that they
    started with.
    """

    def __init__(
        self, collection: int, files: DerivedFiles, tuning: Tuning, kind: str, settings: Mapping[str, Any]
    ) -> None:
        self.kind = kind
        self.settings = settings
        self.state: State | None = None
        """The newest state that was requested."""
        self._collection = collection
        self._files = files
        self._tuning = tuning
        self._lock = Lock()

    def at(self, reader: RecordReader, earlier: State | None = None) -> State:
        """The state at the reader's revision.

        ``earlier`` is a state from before the reader's transaction began, so it is never newer. It is used
        if another thread has moved the index to a newer revision since. This reader then gets its own
        state, which is neither shared nor saved.
        """
        with self._lock:
            shared = self.state is None or self.state.revision <= reader.revision
            state = self.state if shared else earlier
            if state is None or state.revision != reader.revision:
                state = self._updated(reader, state, save=shared)
            if shared:
                self.state = state
            return state

    @abstractmethod
    def _updated(self, reader: RecordReader, earlier: State | None, *, save: bool) -> State:
        """A state at the reader's revision: from an earlier one, from files, or from the records."""

    def _saved(self, connection: sqlite3.Connection) -> SavedIndex | None:
        """The files that the store lists; they may be of another revision."""
        return self._files.find(connection, self._collection, self.kind, self.settings)

    def _keep(
        self, draft: Path, reader: RecordReader, *, about: Mapping[str, Any], sealed: list[str]
    ) -> Path | None:
        """Record the files of a draft in the store; returns the final folder on success."""
        stamp = {"last_row": reader.last_row, "settings": self.settings, "about": about}
        return self._files.keep(draft, self._collection, self.kind, reader.revision, stamp, sealed=sealed)


def _is_folder(path: Path) -> bool:
    """Whether the path is a folder and not a link, which would redirect writes and deletions."""
    return path.is_dir() and not path.is_symlink()


def _vouch(
    connection: sqlite3.Connection,
    collection: int,
    kind: str,
    folder: str,
    revision: int,
    stamp: Mapping[str, Any],
) -> None:
    """Write the stamp into the store, unless it lists an index of a later revision."""
    checksum = _stamp_sum(collection, kind, folder, revision, stamp)
    connection.execute(
        "INSERT INTO derived SELECT :collection, :kind, :folder, :revision, :stamp "
        "WHERE EXISTS (SELECT 1 FROM collections WHERE key = :collection) "
        "ON CONFLICT DO UPDATE SET folder = excluded.folder, revision = excluded.revision, "
        "stamp = excluded.stamp WHERE excluded.revision >= derived.revision",
        {
            "collection": collection,
            "kind": kind,
            "folder": folder,
            "revision": revision,
            "stamp": json.dumps({**stamp, "crc32": checksum}),
        },
    )


def _stamp_sum(collection: int, kind: str, folder: str, revision: int, stamp: Mapping[str, Any]) -> int:
    """Checksum of an index's row in the table."""
    said = json.dumps([collection, kind, folder, revision, stamp], sort_keys=True)
    return zlib.crc32(said.encode())


def flush_to_disk(path: Path) -> None:
    """Wait until a file's bytes, or the names in a folder, are on disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _seal(path: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file, after flushing it to disk."""
    flush_to_disk(path)
    with path.open("rb") as stream:
        return path.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
