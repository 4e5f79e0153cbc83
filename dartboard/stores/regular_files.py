"""Open files that must be regular ones: what lies beside an index may have come from somebody else.

A symbolic link would lead a write to another file of the user, and opening a named pipe (FIFO) would wait
for ever. Neither is followed or waited for.
"""

import os
import stat
from pathlib import Path

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
    """What is at a path is no regular file; ``kind`` says what it is instead."""

    def __init__(self, path: Path, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        super().__init__(f"{path} is {self.kind}, not a regular file")


def check_regular(path: Path) -> None:
    """Refuse what is there and no regular file; a path where nothing is will do.

    Raises:
        NotRegularFileError: something else is there.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise NotRegularFileError(path, mode)


def open_regular(path: Path, flags: int, mode: int = 0o644) -> int:
    """A descriptor as ``os.open`` gives it, of a regular file only; links are not followed.

    Raises:
        NotRegularFileError: something else is there.
        OSError: as ``os.open`` does.
    """
    check_regular(path)  # before opening: that alone can have effects on a device
    file = os.open(path, flags | _FLAGS, mode)
    found = os.fstat(file).st_mode
    if not stat.S_ISREG(found):
        os.close(file)
        raise NotRegularFileError(path, found)
    return file
