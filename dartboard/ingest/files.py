"""Find the files below folders, as git would list them.

Hidden files and folders are skipped, and so are files that ``.gitignore`` excludes (including those of the
folders above, up to the repository's root; deeper rules win) or that ``excludes`` matches, in the same
syntax (pathspec reads it). With ``includes``, a file must match one of them. A link to a target outside of
its root is not followed. A link to a target inside is followed unless the target is found anyway. Files are
sorted by source. A file or folder that the caller names is read even if a rule would exclude it.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.deadline import check
from dartboard.errors import ConfigError, IngestError
from dartboard.ingest.documents import Problem

ALWAYS_LEFT_OUT = ("__pycache__/", "node_modules/", "*.pyc", "*.egg-info/")
"""Files that are skipped in folders; such a file is read if it is named explicitly."""


_LARGEST_GITIGNORE = 100_000
"""Maximum bytes of a list of rules; a larger file was not written by a person."""
_MOST_STARS = 3
"""Maximum stars between two slashes: the time of a match grows with a power of their number, and a folder may
hold anybody's ``.gitignore``.
"""


class IgnoreRules:
    """The rules of a ``.gitignore``; the last match wins. ``skipped`` are those with too many stars."""

    def __init__(self, lines: Iterable[str], *, strict: bool = False) -> None:
        """``strict``: a rule that is not valid raises ``IngestError``; otherwise it is skipped."""
        from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

        self._patterns: list[Any] = []
        self.skipped: list[str] = []
        for line in lines:
            check()
            parts = line.split("/")
            if parts.count("**") > _MOST_STARS or any(part.count("*") > _MOST_STARS for part in parts):
                self.skipped.append(line.strip())
                continue
            try:
                pattern = GitIgnoreSpecPattern(line.rstrip("\r\n"))
            except ValueError as error:
                if strict:
                    raise IngestError(f"the pattern {line!r} is not valid: {error}") from error
            else:
                if pattern.include is not None:
                    self._patterns.append(pattern)
        if strict and self.skipped:
            raise IngestError(f"the pattern {self.skipped[0]!r} has more than {_MOST_STARS} stars in a row")
        self._patterns.reverse()

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Whether a rule matches this path: False for a rule with ``!``, None without a match."""
        name = f"{path}/" if is_dir else path
        found = (bool(one.include) for one in self._patterns if one.match_file(name) is not None)
        return next(found, None)

    def covers(self, path: str, *, is_dir: bool) -> bool:
        """Whether the rules match a path or a folder above it."""
        return bool(self.verdict(path, is_dir=is_dir))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, and its name in the index: relative to its root, with forward slashes."""

    path: Path
    source: str

    @property
    def size(self) -> int:
        """Bytes; 0 for a file that was deleted in the meantime."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def check_paths(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Check that all paths exist, before a store is created."""
    listed = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not listed:
        raise ConfigError("nothing to index: name files or folders")
    for path in listed:
        if not os.path.lexists(path):
            raise IngestError(f"there is no file or folder {path}: check the name and the current folder")
    return listed


def hash_file(path: Path) -> str:
    """The ``document_hash`` of a file, computed in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:32]


def walk(
    paths: Iterable[str | Path],
    *,
    excludes: Sequence[str] = (),
    includes: Sequence[str] = (),
    root: str | Path | None = None,
    gitignore: bool = True,
    hidden: bool = False,
) -> Iterator[SourceFile | Problem]:
    """Find the files below some paths.

    Args:
        paths: Files and folders.
        excludes: Patterns of files to skip, as in a ``.gitignore``.
        includes: Patterns; a file must match at least one.
        root: The folder to which sources are relative; None is each folder itself. Needed if two of the
            paths contain files with the same relative name.
        gitignore: Whether ``.gitignore`` files apply.
        hidden: Whether hidden files are found too.

    Returns:
        Files and problems, path by path, sorted by source.

    Raises:
        IngestError: a pattern is not valid, or a path is not below ``root``.
    """
    wanted = IgnoreRules(includes, strict=True) if includes else None
    unwanted = IgnoreRules([*ALWAYS_LEFT_OUT, *excludes], strict=True)
    rules = _Rules(unwanted, wanted, gitignore, hidden)
    seen: dict[str, Path] = {}
    for name in paths:
        path = absolute(name)
        base = absolute(root) if root is not None else path if path.is_dir() else path.parent
        for found in _below(path, base, rules):
            if isinstance(found, SourceFile) and seen.setdefault(found.source, found.path) != found.path:
                other = seen[found.source]
                reason = f"{found.path} and {other} have the same name in the index: give a common root"
                yield Problem(found.source, reason, "clash")
            else:
                yield found


@dataclass(frozen=True, slots=True)
class _Rules:
    excludes: IgnoreRules
    includes: IgnoreRules | None
    gitignore: bool
    hidden: bool


@dataclass(slots=True)
class _Walk:
    """The walk of one root: found files, and links to be followed at the end."""

    root: Path
    base: Path
    rules: _Rules
    found: list[SourceFile | Problem] = field(default_factory=list)
    links: list[tuple[Path, list[tuple[Path, IgnoreRules]]]] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)

    def source(self, path: Path) -> str:
        try:
            name = path.relative_to(self.base).as_posix()
        except ValueError:
            raise IngestError(f"{path} is not below the root {self.base}") from None
        return name.encode("utf-8", "backslashreplace").decode()  # file names may be invalid Unicode

    def problem(self, path: Path, reason: str, code: Any = "unreadable") -> None:
        self.found.append(Problem(self.source(path), reason, code))

    def folder(self, folder: Path, ignores: list[tuple[Path, IgnoreRules]]) -> None:
        """Visit everything below a folder; its real path is recorded to prevent loops."""
        pending = [(folder, os.path.realpath(folder), ignores)]
        while pending:
            here, real, above = pending.pop()
            if real in self.reached:
                continue
            self.reached.add(real)
            try:
                entries = sorted(os.scandir(here), key=lambda entry: entry.name)
            except OSError as error:
                self.problem(here, f"folder cannot be read: {error.strerror or error}")
                continue
            has_rules = self.rules.gitignore and any(entry.name == ".gitignore" for entry in entries)
            rules = above + self.gitignore(here) if has_rules else above
            stem = real.rstrip(os.sep) + os.sep
            for entry in entries:
                check()
                path = here / entry.name
                is_dir = entry.is_dir(follow_symlinks=False)
                if entry.is_symlink():
                    self.links.append((path, rules))
                elif self.left_out(path, rules, is_dir=is_dir):
                    continue
                elif is_dir:
                    pending.append((path, stem + entry.name, rules))
                else:
                    self.file(path, stem + entry.name, entry.is_file(follow_symlinks=False))

    def gitignore(self, folder: Path) -> list[tuple[Path, IgnoreRules]]:
        """The rules of a folder; those that are skipped become a problem."""
        rules = _gitignore_of(folder)
        if skipped := [line for _, one in rules for line in one.skipped]:
            reason = f"rules with more than {_MOST_STARS} stars in a name are skipped: {skipped[0]!r}"
            self.problem(folder / ".gitignore", reason, "rule")
        return rules

    def file(self, path: Path, real: str, is_file: bool) -> None:
        """Add a file, unless it was already found by another path."""
        if real in self.reached:
            return
        self.reached.add(real)
        if is_file:
            self.found.append(SourceFile(path, self.source(path)))
        else:
            self.problem(path, "is a device, socket or pipe, not a file", "special")

    def follow(self) -> None:
        """Follow the links found so far, and the links behind them."""
        inside = Path(os.path.realpath(self.root))
        while self.links:
            path, rules = self.links.pop(0)
            is_dir = path.is_dir()
            if self.left_out(path, rules, is_dir=is_dir):
                continue
            real = os.path.realpath(path)
            if not path.exists():
                self.problem(path, "is a broken link", "link")
            elif not Path(real).is_relative_to(inside):
                self.problem(path, "is a link to a target outside of the folder: not followed", "link")
            elif is_dir:
                self.folder(path, rules)
            else:
                self.file(path, real, path.is_file())

    def left_out(self, path: Path, ignores: list[tuple[Path, IgnoreRules]], *, is_dir: bool) -> bool:
        if path.name.startswith(".") and not self.rules.hidden:
            return True
        name = path.relative_to(self.root).as_posix()
        said = self.rules.excludes.verdict(name, is_dir=is_dir)
        for folder, rules in reversed(ignores):
            if said is not None:
                break
            said = rules.verdict(path.relative_to(folder).as_posix(), is_dir=is_dir)
        if said:
            return True
        wanted = self.rules.includes
        return wanted is not None and not is_dir and not wanted.covers(name, is_dir=False)


def absolute(path: str | Path) -> Path:
    """The absolute path without ``..``; links are not resolved."""
    return Path(os.path.normpath(Path(path).absolute()))


def _below(path: Path, base: Path, rules: _Rules) -> Iterator[SourceFile | Problem]:
    if not path.exists():
        yield Problem(path.name, f"there is no such file or folder: {path}")
        return
    folder = path if path.is_dir() else path.parent
    walk = _Walk(folder, base, rules)
    walk.source(path)
    if path.is_dir():
        walk.folder(path, _ignores_above(path) if rules.gitignore else [])
        walk.follow()
    else:
        walk.file(path, os.path.realpath(path), path.is_file())
    yield from sorted(walk.found, key=lambda found: (found.source, isinstance(found, Problem)))


def _gitignore_of(folder: Path) -> list[tuple[Path, IgnoreRules]]:
    path = folder / ".gitignore"
    try:
        if path.stat().st_size > _LARGEST_GITIGNORE:
            return []
        lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError:
        return []
    return [(folder, IgnoreRules(lines))]


def _ignores_above(folder: Path) -> list[tuple[Path, IgnoreRules]]:
    """The rules of the folders above, if they are part of a repository."""
    if (folder / ".git").exists():
        return []
    rules: list[tuple[Path, IgnoreRules]] = []
    for parent in folder.parents:
        rules = _gitignore_of(parent) + rules
        if (parent / ".git").exists():
            named = any(said.covers(folder.relative_to(at).as_posix(), is_dir=True) for at, said in rules)
            return [] if named else rules
    return []
