"""The names of corpora in files: a relative path in one must lead to the same place wherever it is read.

``package:kettle@.`` depends on the folder of whoever says it. A file that keeps it says it as seen from the
file's own folder, so that the file works from any folder, and on another machine if both move together.
"""

import os
import re
from pathlib import Path

_PARTS = re.compile(
    r"(?P<before>package:[^@]*@|folder:|store:|dataset:)(?P<path>[^#]*)(?P<after>#.*)?", re.DOTALL
)


def seen_from(folder: Path, spec: str) -> str | None:
    """The spec as seen from another folder; None where it holds anywhere: no path, or an absolute one."""
    parts = _relative(spec, Path())
    if parts is None:
        return None
    before, path, after = parts
    try:
        return f"{before}{Path(os.path.relpath(path, folder)).as_posix()}{after}"
    except ValueError:  # another drive
        return f"{before}{path.resolve()}{after}"


def resolved(folder: Path, spec: str) -> str:
    """A spec that was seen from a folder, with its path whole."""
    parts = _relative(spec, folder)
    if parts is None:
        return spec
    before, path, after = parts
    return f"{before}{path.resolve()}{after}"


def _relative(spec: str, base: Path) -> tuple[str, Path, str] | None:
    """What stands before the path, the path, and what stands after it; None without a relative path."""
    found = _PARTS.fullmatch(spec.strip())
    if found is None or "://" in found["path"]:
        return None
    before, after = found["before"], found["after"] or ""
    if before == "folder:" or before.startswith("package:"):
        path, after = found["path"] + after, ""
    else:
        path = found["path"]
    if not path or Path(path).is_absolute():
        return None
    if before == "dataset:" and not (base / path).exists():
        return None
    return before, base / path, after
