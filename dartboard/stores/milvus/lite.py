"""Milvus Lite in this process: one server per path, shared by the stores that have it open."""

import logging
import threading
from collections import Counter
from pathlib import Path

from dartboard.errors import MissingExtraError, StoreError, StoreLockedError, StoreUnavailableError

_users: Counter[str] = Counter()
_lock = threading.Lock()


def start(path: str, *, read_only: bool) -> str:
    """The address of the server for the folder ``path``; started if necessary."""
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError as error:
        raise MissingExtraError("milvus-lite", "milvus", "Milvus Lite (milvus:///path)") from error
    folder = Path(path).absolute()
    if read_only and not folder.exists():
        raise StoreError(f"there is no Milvus Lite store at {folder}")
    if folder.is_file():
        raise StoreError(
            f"{folder} is a file: Milvus Lite keeps a folder (files of milvus-lite before version 3 must be "
            "exported with that version)"
        )
    if not folder.parent.is_dir():
        raise StoreError(f"cannot make {folder}: the folder {folder.parent} does not exist")
    with _lock, _LoggedError() as logged:
        uri = server_manager_instance.start_and_get_uri(str(folder))
        if uri is None:
            if type(logged.error).__name__ == "DataDirLockedError":
                raise StoreLockedError(
                    f"another process has {folder} open: close it there, or run milvus-lite server and "
                    "share it"
                )
            raise StoreUnavailableError(
                f"Milvus Lite cannot open {folder}: {logged.error or 'no reason given'}"
            )
        _users[str(folder)] += 1
    return str(uri)


def stop(path: str) -> None:
    """Release the server; the last store stops it, which frees the folder for other processes."""
    from milvus_lite.server_manager import server_manager_instance

    folder = str(Path(path).absolute())
    with _lock:
        _users[folder] -= 1
        if _users[folder] <= 0:
            del _users[folder]
            server_manager_instance.release_server(folder)


class _LoggedError(logging.Handler):
    """Milvus Lite logs why it failed and returns None: this handler catches the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.error: BaseException | None = None
        self._logger = logging.getLogger("milvus_lite.server_manager")

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exception of the log record."""
        if record.exc_info and record.exc_info[1]:
            self.error = record.exc_info[1]

    def __enter__(self) -> "_LoggedError":
        self._propagated, self._logger.propagate = self._logger.propagate, False
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated
