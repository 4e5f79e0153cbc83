"""One process at a time: a lock on a file, which dies with the process that holds it.

The system's own lock in twenty lines; the ``filelock`` package would be one more dependency.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks: there, start one process at a time
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock at ``path``, and hold it inside the ``with`` block.

    The file is made where it is missing, and stays; a wait is logged as a warning.
    """
    with path.open("a") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.warning("waiting for another process that holds %s", path)
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield
