"""Files beside an index may come from somebody else: only regular ones are opened.

SQLite or NumPy would write through a symbolic link to another file of the user, and wait at a named pipe for
ever.
"""

import stat
from pathlib import Path

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
