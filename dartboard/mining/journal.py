"""Every verdict that was paid for, one line each, on disk before it is used.

The file is JSON lines: a header, then ``{"crc", "key", "usage", "verdict"}``. A line is flushed, and synced
to the disk if its call cost anything, before its verdict is handed out, so a run that is killed anywhere
repeats at most the calls under way. A line without a verdict is money that a failed call cost, or says
(``withdrawn``) that the key is to be asked for again. Times are left out, so that equal runs are equal.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event, Lock
from typing import Any, BinaryIO, Self

from dartboard.errors import ConfigError, DatasetError, StoreError, StoreLockedError
from dartboard.llm.usage import Usage, spending, total_usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document
from dartboard.mining.journal_lines import FORMAT, plain_verdict, read_line, read_verdict, write_line
from dartboard.mining.judges.base import expected_usage, is_known, looked_at, version_of
from dartboard.mining.judges.ensemble import EnsembleJudge
from dartboard.mining.verdicts import Judge, Verdict

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: nothing keeps a second run out
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


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


class JournaledJudge:
    """A judge whose verdicts are written down, and not asked for twice.

    The members of an ensemble are journaled one by one: what one of them was paid for is kept when another
    fails.
    """

    def __init__(self, judge: Judge, journal: Journal) -> None:
        if isinstance(judge, EnsembleJudge):
            judge = judge.with_members(lambda member: JournaledJudge(member, journal))
        self._judge = judge
        self._journal = journal
        self._lock = Lock()
        self._under_way: dict[str, Event] = {}

    @property
    def name(self) -> str:
        """The judge's own."""
        return self._judge.name

    @property
    def prompt_version(self) -> str:
        """The judge's own."""
        return version_of(self._judge)

    @property
    def judges(self) -> tuple[Judge, ...]:
        """The members of an ensemble, journaled too; nobody, where it is none."""
        return self._judge.judges if isinstance(self._judge, EnsembleJudge) else ()

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """From the journal, or asked and written down."""
        if isinstance(self._judge, EnsembleJudge):
            return self._judge.judge(case, contexts, attempt=attempt)
        key = key_of(self._judge, case, contexts, attempt)
        with self._turn(key):
            known = self._journal.get(key)
            return known if known is not None else self._asked(key, case, contexts, attempt)

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """As the judge."""
        return looked_at(self._judge, case, contexts)

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """As the judge; nothing for what is in the journal."""
        return Usage() if self.known(case, contexts, 0) else expected_usage(self._judge, case, contexts)

    def known(self, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
        """Whether the journal has the verdict; of an ensemble, all of its members' verdicts."""
        if isinstance(self._judge, EnsembleJudge):
            return all(is_known(member, case, contexts, attempt) for member in self._judge.judges)
        return self._journal.get(key_of(self._judge, case, contexts, attempt)) is not None

    def _asked(self, key: str, case: Case, contexts: Sequence[Document], attempt: int) -> Verdict:
        with spending() as spent:
            try:
                verdict = self._judge.judge(case, contexts, attempt=attempt)
            except BaseException:
                if spent.usage != Usage():
                    self._journal.add(key, None, spent.usage)
                raise
        self._journal.add(key, verdict, verdict.usage)
        return verdict

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        """One call a key at a time: the second waits for the first one's verdict."""
        while True:
            with self._lock:
                event = self._under_way.get(key)
                if event is None:
                    mine = self._under_way[key] = Event()
                    break
            event.wait()
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[key]
            mine.set()


def key_of(judge: Judge, case: Case, contexts: Sequence[Document], attempt: int) -> str:
    """sha256 of everything that a verdict depends on."""
    parts = [
        judge.name,
        version_of(judge),
        case.question,
        [[context.fqn, context.text] for context in contexts],
        attempt,
        looked_at(judge, case, contexts),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


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
    if fcntl is None:  # pragma: no cover
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
