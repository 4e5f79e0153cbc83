"""One process at a time in a folder; a lock dies with the process that holds it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; there, one process at a time is a habit
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock at ``path``, and hold it."""
    with path.open("a") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.warning("waiting for another process that prepares the same data set (%s)", path)
                fcntl.flock(stream, fcntl.LOCK_EX)
        yield
