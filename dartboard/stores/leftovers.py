"""Files that are being made, and what killed processes left of them.

Whoever makes a file or folder under a passing name owns it: a file ``NAME.owner`` beside it is locked (flock)
until the work is done. The lock dies with its process, so what carries a mark and no lock was left behind,
and the next writer removes it.

Locks may not be seen from another machine that shares the folder. So the mark names the running system of
its owner, and is written under the lock: one of another system, or of this one before it was started anew, is
left alone until nothing has been written to it for a day. So is what has no mark. What has a mark that is no
regular file is never touched: dartboard did not make it.
"""

import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from dartboard.stores.regular_files import open_regular

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: what is a day old is removed
    fcntl = None  # type: ignore[assignment]

_OWNER = ".owner"
_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite makes beside a file."""
_OLD_SECONDS = 24 * 3600.0


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Own ``path`` while it is made; what is there at the end is removed, unless it was moved away."""
    mark = _mark_of(path)
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
    """What a folder holds under such names and no living process owns; ``marked``: only what has a mark."""
    found = []
    for path in _candidates(folder, name, marked):
        with _seized(path) as free:
            if free:
                found.append(path if path.exists() else _mark_of(path))
    return found


def remove_leftovers(folder: Path, name: re.Pattern[str], *, marked: bool = False) -> None:
    """Remove what :func:`leftovers` lists."""
    for path in _candidates(folder, name, marked):
        with _seized(path) as free:
            if free:
                _remove(path)
                with suppress(OSError):
                    _mark_of(path).unlink(missing_ok=True)


def _candidates(folder: Path, name: re.Pattern[str], marked: bool) -> list[Path]:
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return []
    bases = {each.removesuffix(_OWNER) for each in names if not marked or each.endswith(_OWNER)}
    return [folder / each for each in sorted(bases) if name.fullmatch(each)]


@contextmanager
def _seized(path: Path) -> Iterator[bool]:
    """Whether nobody owns what is at a path; nobody else removes it meanwhile."""
    try:
        file = open_regular(_mark_of(path), os.O_RDWR)
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
    """Whether the owner of a path has died, by its open mark; one that may live elsewhere has a day."""
    try:
        locks = _lock(mark)
    except BlockingIOError:
        return False
    if locks and os.read(mark, 200) == _system():
        return True
    return _is_old(path) and _is_old(_mark_of(path))


def _lock(file: int) -> bool:
    """Lock a file, or raise where it is locked; False where there are no locks."""
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
    """Whether nothing in a file or folder was written for a day; what is gone is old."""
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


def _mark_of(path: Path) -> Path:
    return path.with_name(path.name + _OWNER)


@lru_cache(maxsize=1)
def _system() -> bytes:
    """The running system: its locks are seen by all of its processes."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return f"{socket.gethostname()} {uuid.getnode():x}".encode()
