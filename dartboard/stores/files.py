"""Safe file access for stores: open regular files only, and remove leftovers of killed processes.

Files beside an index may come from somebody else. A symbolic link could redirect a write to another file of
the user, and opening a named pipe (FIFO) would block for ever. So neither is followed or opened.

A file or folder under a temporary name has an owner: a file ``NAME.owner`` beside it stays locked (flock)
until the work is done. The lock ends with its process. An owner file without a lock means that the process
was killed, and the next writer removes the leftovers.

A lock may not be visible from another machine that shares the folder. So the owner file, written under the
lock, names the boot of the machine that made it. If that is another machine, or an earlier boot, the next
writer waits until nothing has been written for a day. The same holds for temporary files without an owner
file. If the owner file is not a regular file, dartboard did not make it, and nothing is touched.
"""

import os
import re
import shutil
import socket
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: what is a day old is removed
    fcntl = None  # type: ignore[assignment]

_OWNER = ".owner"
_BESIDE = ("", "-wal", "-shm", "-journal")
"""Files that SQLite creates beside a database."""
_OLD_SECONDS = 24 * 3600.0
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegularFileError(OSError):
    """The path is not a regular file; ``kind`` says what it is."""

    def __init__(self, path: Path, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        super().__init__(f"{path} is {self.kind}, not a regular file")


def check_regular(path: Path) -> None:
    """Check that the path is a regular file or does not exist.

    Raises:
        NotRegularFileError: the path is something else.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(path, mode)


def open_regular(path: Path, flags: int, mode: int = 0o644) -> int:
    """Like ``os.open``, for regular files only; links are not followed.

    Raises:
        NotRegularFileError: the path is something else.
        OSError: as from ``os.open``.
    """
    check_regular(path)  # before opening: opening a device can have side effects
    file = os.open(path, flags | _FLAGS, mode)
    found = os.fstat(file).st_mode
    if not stat.S_ISREG(found):
        os.close(file)
        raise NotRegularFileError(path, found)
    return file


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own ``path`` while it is being made; at the end it is removed unless it was renamed."""
    mark = _owner_file(path)
    file = os.open(mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        if _lock(file):
            os.write(file, _system())
        yield
    finally:
        _remove(path)
        mark.unlink(missing_ok=True)
        os.close(file)


def leftovers(folder: Path, name: re.Pattern[str], *, marked: bool = False) -> list[Path]:
    """Files in a folder whose names match and that no living process owns.

    ``marked`` skips files without an owner file.
    """
    found = []
    for path in _candidates(folder, name, marked):
        with _seized(path) as free:
            if free:
                found.append(path if path.exists() else _owner_file(path))
    return found


def remove_leftovers(folder: Path, name: re.Pattern[str], *, marked: bool = False) -> None:
    """Remove what :func:`leftovers` lists."""
    for path in _candidates(folder, name, marked):
        with _seized(path) as free:
            if free:
                _remove(path)
                with suppress(OSError):
                    _owner_file(path).unlink(missing_ok=True)


def _candidates(folder: Path, name: re.Pattern[str], marked: bool) -> list[Path]:
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return []
    bases = {each.removesuffix(_OWNER) for each in names if not marked or each.endswith(_OWNER)}
    return [folder / each for each in sorted(bases) if name.fullmatch(each)]


@contextmanager
def _seized(path: Path) -> Iterator[bool]:
    """Whether the path has no owner; takes the lock so that nobody else removes it at the same time."""
    try:
        file = open_regular(_owner_file(path), os.O_RDWR)
    except FileNotFoundError:
        yield _is_old(path)
        return
    except OSError:
        yield False
        return
    try:
        yield _is_unowned(file, path)
    finally:
        os.close(file)


def _is_unowned(mark: int, path: Path) -> bool:
    """Whether the owner has died, by its open owner file; an owner on another machine gets a day."""
    try:
        locks = _lock(mark)
    except BlockingIOError:
        return False
    if locks and os.read(mark, 200) == _system():
        return True
    return _is_old(path) and _is_old(_owner_file(path))


def _lock(file: int) -> bool:
    """Lock a file, or raise if it is locked; False if the file system has no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return True


def _is_old(path: Path) -> bool:
    """Whether nothing in a file or folder was written for a day; a missing path counts as old."""
    newest = 0.0
    inside = path.rglob("*") if path.is_dir() and not path.is_symlink() else ()
    for each in (path, *inside):
        with suppress(OSError):
            newest = max(newest, each.lstat().st_mtime)
    return time.time() - newest > _OLD_SECONDS


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    for suffix in _BESIDE:
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _owner_file(path: Path) -> Path:
    return path.with_name(path.name + _OWNER)


@lru_cache(maxsize=1)
def _system() -> bytes:
    """Identifies this boot of this machine: its processes see each other's locks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode():x}".encode()
