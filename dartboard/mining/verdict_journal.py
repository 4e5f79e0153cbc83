"""Every verdict that was paid for, one line each, on disk before it is used.

The file is JSON lines: a header, then ``{"crc", "key", "usage", "verdict"}``. A line is flushed, and synced
to the disk if its call cost anything, before its verdict is handed out, so a run that is killed anywhere
repeats at most the calls under way. A line without a verdict is money that a failed call cost, or says
(``withdrawn``) that the key is to be asked for again. Times are left out, so that equal runs are equal.

The journal of :mod:`dartboard.evaluation` is another: picks cost nothing to make again, so it needs neither
checksums nor a lock nor a synced disk, and is written anew when a run goes on.
"""

import json
import logging
import os
import zlib
from dataclasses import asdict, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Self

from dartboard.errors import ConfigError, DatasetError, StoreError, StoreLockedError
from dartboard.file_lock import lock_without_waiting
from dartboard.llm.usage import Usage, total_usage
from dartboard.mining.judges.base import Verdict

logger = logging.getLogger(__name__)

FORMAT = 1


class Journal:
    """Verdicts by key, kept in a file that only grows; open it with :meth:`open`."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._lock = Lock()
        self._verdicts: dict[str, Verdict] = {}
        self._usages: list[Usage] = []
        self._end = 0

    @classmethod
    def open(cls, path: str | Path, *, resume: bool = False) -> Self:
        """A new journal, or with ``resume`` the one that is there; a second run on it is refused."""
        path = Path(path)
        file = _opened(path)
        try:
            _take(file, path)
            size = file.seek(0, os.SEEK_END)
            if size and not resume:
                check_unused(path)
            journal = cls(path, file)
            journal._read()
        except BaseException:
            file.close()
            raise
        return journal

    def get(self, key: str) -> Verdict | None:
        """The verdict of an earlier call."""
        return self._verdicts.get(key)

    def add(self, key: str, verdict: Verdict | None, usage: Usage) -> None:
        """Write a call down; when this returns it is on disk. No verdict: the call failed, but cost."""
        entry = {"key": key, "usage": asdict(usage), "verdict": verdict and plain_verdict(verdict)}
        with self._lock:
            self._append(entry, paid=usage != Usage())
            self._usages.append(usage)
            if verdict is not None:
                self._keep(key, replace(verdict, usage=usage))

    def withdraw_unanswered(self) -> int:
        """Take back the verdicts of calls that got no answer, so that they are asked for again; how many.

        What those calls cost still counts.
        """
        with self._lock:
            keys = [key for key, verdict in self._verdicts.items() if not verdict.answered]
            for number, key in enumerate(keys, start=1):
                entry = {"key": key, "usage": asdict(Usage()), "verdict": None, "withdrawn": True}
                self._append(entry, paid=number == len(keys))
                del self._verdicts[key]
        return len(keys)

    @property
    def usage(self) -> Usage:
        """All that the calls in it cost, those of earlier runs included."""
        with self._lock:
            return total_usage(self._usages)

    def __len__(self) -> int:
        return len(self._verdicts)

    def close(self) -> None:
        """Close the file and let others open it."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, entry: dict[str, Any], *, paid: bool) -> None:
        line = write_line(entry)
        if self._file.closed:
            raise StoreError(f"{self.path} is closed")
        try:
            self._file.write(line)
            self._file.flush()
            if paid:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._undo()
            raise StoreError(
                f"{self.path} cannot be written ({error.strerror}): free some space and resume"
            ) from error
        self._end += len(line)

    def _undo(self) -> None:
        """Take half a line back, so that the next one does not stand behind it."""
        try:
            os.ftruncate(self._file.fileno(), self._end)
            self._file.seek(self._end)
        except (OSError, ValueError):  # the line stays torn, and is dropped when the journal is opened
            logger.warning("%s: a torn line could not be taken back", self.path)

    def _read(self) -> None:
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        torn = lines.pop()
        entries: list[dict[str, Any]] = []
        for number, line in enumerate(lines, start=1):
            entry = read_line(line)
            if entry is None:
                if number < len(lines) or torn:
                    raise DatasetError(
                        f"{self.path}:{number}: this line is damaged and stands before others: take it out "
                        "by hand (its call will be repeated), or start a new journal"
                    )
                torn = line + b"\n"
            else:
                entries.append(entry)
                self._end += len(line) + 1
        if torn and not entries and not write_line({"journal": FORMAT}).startswith(torn.rstrip(b"\0\n")):
            raise DatasetError(f"{self.path}:1: not a journal: name another file or a new one")
        if torn:
            logger.warning("%s: the last line is torn and was dropped; its call is repeated", self.path)
            os.ftruncate(self._file.fileno(), self._end)
        self._file.seek(self._end)
        self._load(entries)

    def _load(self, entries: list[dict[str, Any]]) -> None:
        if not entries:
            self._append({"journal": FORMAT}, paid=True)
            _sync_folder(self.path.parent)
            return
        if entries[0].get("journal") != FORMAT:
            raise DatasetError(
                f"{self.path}:1: not a journal of format {FORMAT}: name another file or a new one"
            )
        for number, entry in enumerate(entries[1:], start=2):
            try:
                usage = Usage(**entry["usage"])
                if entry["verdict"] is not None:
                    self._keep(entry["key"], read_verdict(entry["verdict"], usage))
                elif entry.get("withdrawn"):
                    self._verdicts.pop(entry["key"], None)
            except (KeyError, TypeError) as error:
                raise DatasetError(f"{self.path}:{number}: not a line of a journal ({error})") from error
            self._usages.append(usage)

    def _keep(self, key: str, verdict: Verdict) -> None:
        """The first verdict of a key counts, unless it was none."""
        known = self._verdicts.get(key)
        if known is None or not known.answered:
            self._verdicts[key] = verdict


def check_unused(path: Path) -> None:
    """Refuse to begin a journal where there is one."""
    if path.is_file() and path.stat().st_size:
        raise ConfigError(f"{path} exists: resume it (resume=True, --resume) or name another journal")


def _opened(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror})") from error
    return os.fdopen(descriptor, "r+b")


def _take(file: BinaryIO, path: Path) -> None:
    try:
        lock_without_waiting(file)
    except OSError as error:
        raise StoreLockedError(
            f"{path} is being written by another run: wait until it has finished"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a new file's name last, too."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON holds it; its usage stands beside it."""
    plain = asdict(verdict)
    del plain["usage"]
    if verdict.answered:
        del plain["answered"]
    return plain


def read_verdict(plain: dict[str, Any], usage: Usage) -> Verdict:
    """The verdict again; a field that this version does not know is an error."""
    unknown = plain.keys() - {field.name for field in fields(Verdict)}
    if unknown:
        raise TypeError(f"unknown field {min(unknown)!r}")
    return Verdict(**{**plain, "votes": tuple(plain["votes"]), "usage": usage})


def write_line(entry: dict[str, Any]) -> bytes:
    """A line with its checksum and its end."""
    return (_text(entry | {"crc": _crc(entry)}) + "\n").encode()


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, separators=(",", ":"))


def _crc(entry: dict[str, Any]) -> str:
    return f"{zlib.crc32(_text(entry).encode()):08x}"


def read_line(line: bytes) -> dict[str, Any] | None:
    """A line's contents; None where it is not as it was written."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.pop("crc", None) != _crc(entry):
        return None
    return entry
