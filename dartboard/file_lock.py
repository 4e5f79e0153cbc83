"""One process at a time: a lock on a file, which dies with the process that holds it.

The system's own lock in a few lines; the ``filelock`` package would be one more dependency.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks: there, start one process at a time
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


@contextmanager
def file_lock(path: Path, *, mode: int = 0o666) -> Iterator[None]:
    """Wait until no other process holds the lock at ``path``, and hold it inside the ``with`` block.

    The file is made with ``mode`` where it is missing, and stays; a wait is logged as a warning.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, mode), "w") as stream:
        try:
            lock_without_waiting(stream)
        except BlockingIOError:
            logger.warning("waiting for another process that holds %s", path)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def lock_without_waiting(file: int | IO[bytes] | IO[str]) -> None:
    """Lock an open file until it is closed; raises :class:`BlockingIOError` where another process has it."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
