"""One writer at a time: a lock beside the store that dies with the process that holds it."""

import logging
import os
from pathlib import Path

from dartboard.errors import StoreError, StoreLockedError
from dartboard.stores.embedded.write_count import (
    WriteCount,
    check_own,
    open_lock_file,
    read_note,
    write_note,
)

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: SQLite's own locks remain
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


class WriterLock:
    """Held from the first write until the store is closed; a forked child does not hold it.

    Its file also says how many writes were acknowledged; only who holds the lock changes that.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = lock_path(store)
        self._file: int | None = None
        self._process = 0

    @property
    def held(self) -> bool:
        """Whether this process holds the lock through this object."""
        if self._file is not None and self._process != os.getpid():
            os.close(self._file)  # the parent's copy goes on holding it
            self._file = None
        return self._file is not None

    def take(self) -> None:
        """Take the lock, or say who is in the way."""
        if self.held:
            return
        try:
            file = open_lock_file(self._path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise StoreError(
                f"{self._store} cannot be written: no lock file can be made beside it ({error.strerror}). "
                "Open it with read_only=True, or make the folder writable"
            ) from error
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise locked(self._store) from error
        try:
            check_own(file, self._path)
        except BaseException:
            os.close(file)
            raise
        self._file, self._process = file, os.getpid()

    @property
    def note(self) -> WriteCount | None:
        """How many writes were acknowledged, as the last writer left it."""
        return read_note(self._path)

    def acknowledge(self, count: WriteCount | None) -> None:
        """Note how many writes are acknowledged; None where all of them are in the file itself."""
        if self.held and self._file is not None:
            try:
                write_note(self._file, count)
            except OSError as error:  # a full disk: the write itself is kept, and an older note harms nobody
                logger.warning("%s cannot be written: %s", self._path, error.strerror or error)

    def release(self) -> None:
        """Let others write; releasing twice does nothing."""
        if self.held and self._file is not None:
            os.close(self._file)
            self._file = None


def lock_path(store: Path) -> Path:
    """The lock file of a store."""
    return store.with_name(f"{store.name}.lock")


def locked(store: Path) -> StoreLockedError:
    """The error for a store that somebody else is writing to."""
    return StoreLockedError(
        f"{store} is being written by another process (or another open store in this one): wait until it "
        "has finished or closes the store. Reading is possible all the while"
    )
