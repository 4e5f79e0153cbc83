"""Finished work, one line per question and system, appended as it is made.

An interrupted evaluation resumes from here. The first line describes the settings of the picks; picks for
other settings are rejected, and a line torn by a crash is dropped. Verdicts, which cost money, have their own
stricter journal (:mod:`dartboard.llm.journal`).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self, TextIO

from dartboard.errors import ConfigError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Part:
    """The picks of one system for one question, one list per seed, and the seconds that they took."""

    system: str
    query_id: str
    lists: Sequence[Sequence[str]]
    seconds: float


class Journal:
    """Finished parts in a file; ``made_for`` identifies data, depth and triage."""

    def __init__(self, path: Path, made_for: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._lock = Lock()
        self.parts: dict[tuple[str, str], Part] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"format": FORMAT, **made_for}
        if resume and path.exists():
            self._read(head)
        self._file: TextIO = path.open("w", encoding="utf-8", newline="\n")
        self._write(head)
        for part in self.parts.values():
            self._write_part(part)
        self._file.flush()

    def add(self, part: Part) -> None:
        """Append a finished part; thread-safe."""
        with self._lock:
            self.parts[part.system, part.query_id] = part
            self._write_part(part)
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _read(self, head: Mapping[str, Any]) -> None:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(_parsed, lines) if row is not None]
        if not rows:
            return
        if rows[0] != head:
            changed = sorted(key for key in {*rows[0], *head} if rows[0].get(key) != head.get(key))
            raise ConfigError(
                f"{self.path} was made with other settings ({', '.join(changed)}): "
                "leave out --resume to start afresh, or choose another folder"
            )
        for row in rows[1:]:
            part = Part(row["system"], row["query"], row["lists"], row["seconds"])
            self.parts[part.system, part.query_id] = part

    def _write_part(self, part: Part) -> None:
        self._write(
            {
                "system": part.system,
                "query": part.query_id,
                "lists": [list(picks) for picks in part.lists],
                "seconds": round(part.seconds, 6),
            }
        )

    def _write(self, row: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")


def file_name(name: str) -> str:
    """A name of a data set or system as part of a path: unsafe characters become ``_``."""
    return re.sub(r"[^\w.@+-]", "_", name).lstrip(".") or "_"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None
