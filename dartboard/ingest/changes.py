"""What to do after a folder changed: which files are new, changed, unchanged, or gone.

Files are compared by their bytes; neither their age nor their size decides. A file or folder that cannot
be read right now is not gone: what is known of it, or of anything below it, is left as it is.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dartboard.ingest.documents import Problem
from dartboard.ingest.files import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files by what happened to them, each in the order found; ``deleted`` are sources, sorted."""

    new: tuple[Found, ...]
    changed: tuple[Found, ...]
    unchanged: tuple[Found, ...]
    deleted: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def to_read(self) -> tuple[Found, ...]:
        """New and changed files by source."""
        return tuple(sorted(self.new + self.changed, key=lambda found: found.source))


def compare(known: Mapping[str, str], found: Iterable[Found | Problem]) -> Changes:
    """What :func:`walk` found, against ``known``: the ``document_hash`` of every source in the store.

    ``known`` should hold only what came from the same place: all else counts as deleted.
    """
    new: list[Found] = []
    changed: list[Found] = []
    unchanged: list[Found] = []
    problems: list[Problem] = []
    for entry in found:
        if isinstance(entry, Found):
            try:
                hashed = hash_file(entry.path)
            except OSError as error:
                problems.append(Problem(entry.source, f"cannot be read: {error.strerror or error}"))
                continue
            before = known.get(entry.source)
            (new if before is None else unchanged if before == hashed else changed).append(entry)
        else:
            problems.append(entry)
    seen = {entry.source for entry in (*new, *changed, *unchanged)}
    unsure = tuple(problem.source for problem in problems if problem.code == "unreadable")
    deleted = sorted(source for source in known if source not in seen and not _is_below(source, unsure))
    return Changes(
        new=tuple(new),
        changed=tuple(changed),
        unchanged=tuple(unchanged),
        deleted=tuple(deleted),
        problems=tuple(problems),
    )


def hash_file(path: Path) -> str:
    """The ``document_hash`` of a file, without holding it in memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


def _is_below(source: str, folders: tuple[str, ...]) -> bool:
    return any(folder in (".", source) or source.startswith(f"{folder}/") for folder in folders)
