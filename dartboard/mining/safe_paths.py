"""Files that a registry names: below its own folder, and nowhere else.

A registry may come from strangers. Absolute paths, ``..`` and links that lead out are refused, so that
nothing of the reader's machine ends in a data set.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from dartboard.errors import DatasetError

LARGEST = 1_000_000
"""Bytes of one file of a case."""


@dataclass(frozen=True, slots=True)
class SafeFolder:
    """A folder beyond which no name leads; ``root`` is the registry's, ``folder`` where names begin."""

    root: Path
    folder: Path

    @classmethod
    def of(cls, folder: Path) -> "SafeFolder":
        """The folder as its own limit."""
        return cls(folder.resolve(), folder)

    def shown(self, path: Path, line: int) -> str:
        """A line of a file as cases remember it: the same wherever the registry's folder lies."""
        return f"{self.root.name}/{path.resolve().relative_to(self.root).as_posix()}, line {line}"

    def path(self, name: str) -> Path:
        """The file or folder of that name; it must exist."""
        if PurePosixPath(name).is_absolute() or PureWindowsPath(name).is_absolute() or "\\" in name:
            raise DatasetError(f"{name!r} must be relative to {self.folder}, with forward slashes")
        if ".." in PurePosixPath(name).parts:
            raise DatasetError(f"{name!r} must not contain '..': put the file below {self.folder}")
        path = self.folder / name
        try:
            inside, there = path.resolve().is_relative_to(self.root), path.exists()
        except (OSError, RuntimeError, ValueError) as error:  # too long, a circle of links, a zero byte
            raise DatasetError(f"{name!r} cannot be a path: {error}") from None
        if not inside:
            raise DatasetError(f"{name!r} is a link to outside {self.root}: put the file there itself")
        if not there:
            raise DatasetError(f"there is no {path}")
        return path

    def file(self, name: str) -> Path:
        """The path of a plain file; a pipe or a device would never end."""
        path = self.path(name)
        if not path.is_file():
            raise DatasetError(f"{path} must be a file")
        return path

    def below(self, name: str) -> "SafeFolder":
        """The same limit, names beginning at a folder in it."""
        path = self.path(name)
        if not path.is_dir():
            raise DatasetError(f"{path} must be a folder")
        return SafeFolder(self.root, path)

    def text(self, name: str) -> str:
        """What a file says."""
        path = self.file(name)
        if (size := path.stat().st_size) > LARGEST:
            raise DatasetError(f"{path} has {size:,} bytes, more than {LARGEST:,}")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise DatasetError(f"{path} is not UTF-8 ({error.reason}): convert it") from None
