"""Every answer that was paid for, one JSON line each, on disk before it is used.

A line is ``{"key", "text", "trouble", "usage"}``; the key is a hash of model, address, system prompt, prompt,
attempt and limit of output. A run that is killed anywhere repeats at most the calls under way: as many as are
made at once. What is concluded from an answer is worked out again from its text, so a better parser reads
paid answers anew. An answer with trouble (refused, empty, cut short) is asked for again when a run goes on.
"""

import hashlib
import json
import logging
import os
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Self

from dartboard.errors import ConfigError, DatasetError, StoreError, StoreLockedError
from dartboard.file_lock import lock_without_waiting
from dartboard.llm.chat import ChatAnswer, CompletionModel
from dartboard.llm.usage import Usage, spending

logger = logging.getLogger(__name__)


class Journal:
    """Answers by key, kept in a file that only grows; open it with :meth:`open`."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._lock = Lock()
        self._answers: dict[str, ChatAnswer] = {}
        self.usage = Usage()
        """All that the calls in it took, those of earlier runs included."""

    @classmethod
    def open(cls, path: str | Path, *, resume: bool = False) -> Self:
        """A new journal, or with ``resume`` the one that is there; a second run on it is refused.

        Raises:
            ConfigError: there is a journal, and ``resume`` is not given.
            DatasetError: the file is no journal.
            StoreLockedError: another run writes it.
        """
        path = Path(path)
        if not resume:
            check_unused(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")
        except OSError as error:
            raise StoreError(f"{path} cannot be written ({error.strerror})") from error
        journal = cls(path, file)
        try:
            journal._load()
        except BaseException:
            file.close()
            raise
        return journal

    def get(self, key: str) -> ChatAnswer | None:
        """The answer of an earlier call."""
        return self._answers.get(key)

    def add(self, key: str, answer: ChatAnswer) -> None:
        """Write a call down; when this returns it is on disk."""
        entry = {"key": key, "text": answer.text, "trouble": answer.trouble, "usage": asdict(answer.usage)}
        with self._lock:
            self._write(json.dumps(entry).encode() + b"\n")
            self._answers[key] = answer
            self.usage = self.usage + answer.usage

    def __len__(self) -> int:
        return len(self._answers)

    def close(self) -> None:
        """Close the file and let others open it."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        try:
            lock_without_waiting(self._file)
        except OSError as error:
            raise StoreLockedError(
                f"{self.path} is being written by another run: wait until it has finished"
            ) from error
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        readable = 0
        for line in lines:
            try:
                entry = json.loads(line)
                answer = ChatAnswer(
                    text=entry["text"], trouble=entry["trouble"], usage=Usage(**entry["usage"])
                )
                key = entry["key"]
            except (ValueError, KeyError, TypeError):
                logger.warning("%s: a torn line is skipped; its call is repeated", self.path)
                continue
            readable += 1
            self.usage = self.usage + answer.usage
            if not answer.trouble:
                self._answers[key] = answer
        if lines and not readable:
            raise DatasetError(
                f"{self.path} is not a journal: name another file, or a new one", field="journal"
            )
        if torn:  # what is written next begins a line of its own
            self._write(b"\n")

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StoreError(f"{self.path} cannot be written ({why}): free some space and resume") from error


class JournaledChat:
    """A chat model whose answers are written down; one that is known is not asked for."""

    def __init__(self, chat: CompletionModel, journal: Journal) -> None:
        self.chat = chat
        self._journal = journal

    @property
    def full_name(self) -> str:
        """The model's own name."""
        return self.chat.full_name

    def complete(self, text: str, *, system: str = "", attempt: int = 0) -> ChatAnswer:
        """From the journal, or asked and written down; so is what a call took that failed."""
        key = self._key(text, system, attempt)
        known = self._journal.get(key)
        if known is not None:
            return known
        with spending() as spent:
            try:
                answer = self.chat.complete(text, system=system, attempt=attempt)
            except BaseException as error:
                if spent.usage != Usage():
                    failed = ChatAnswer(text="", usage=spent.usage, trouble=str(error) or "interrupted")
                    self._journal.add(key, failed)
                raise
        self._journal.add(key, answer)
        return answer

    def known(self, text: str, *, system: str = "", attempt: int = 0) -> bool:
        """Whether the journal has the answer."""
        return self._journal.get(self._key(text, system, attempt)) is not None

    def expected(self, text: str, system: str = "") -> Usage:
        """What one answer will probably take; nothing where it is known."""
        if self.known(text, system=system):
            return Usage()
        return self.chat.expected(text, system)

    def close(self) -> None:
        """Close the model's connections."""
        self.chat.close()

    def _key(self, text: str, system: str, attempt: int) -> str:
        limit = getattr(self.chat, "max_output_tokens", None)
        parts = [self.full_name, system, text, attempt, limit]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def check_unused(path: Path) -> None:
    """Refuse to begin a journal where there is one."""
    if path.is_file() and path.stat().st_size:
        raise ConfigError(
            f"{path} exists: resume it (resume=True, --resume) or name another journal", field="journal"
        )
