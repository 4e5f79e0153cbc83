"""Problems of a file, gathered while it is read on: all of them are told, not the first alone."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from dartboard.datasets.safe_yaml import Fields, place_of
from dartboard.errors import DatasetError

Level = Literal["error", "warning"]

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong, or odd, at a line of the file."""

    line: int
    level: Level
    message: str
    pair: str = ""


@dataclass(slots=True)
class Found:
    """Problems so far, and what was seen of the whole file."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    pair: str = ""

    def add(self, node: Any, message: str, level: Level = "error") -> None:
        """A problem where a node begins."""
        self.problems.append(Problem(place_of(self.path, node).line, level, message, self.pair))

    def tried(
        self, read: Callable[Params, Result], *args: Params.args, **more: Params.kwargs
    ) -> Result | None:
        """What ``read`` gives; its complaint becomes a problem."""
        try:
            return read(*args, **more)
        except DatasetError as error:
            told = re.fullmatch(re.escape(str(self.path)) + r", line (\d+): (.*)", str(error), re.DOTALL)
            line, message = (int(told[1]), told[2]) if told else (1, str(error))
            self.problems.append(Problem(line, "error", message, self.pair))
            return None

    def unknown(self, fields: Fields, known: Sequence[str], what: str) -> None:
        """An error for each key that nobody knows, with the one that was meant, if it is near."""
        for key, node in fields.keys.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.add(node, f"unknown key {key!r}{what}: {advice}")

    def mapping(self, fields: Fields, key: str) -> Fields | None:
        """The mapping under a key, if it is there and is one."""
        return self.tried(fields.mapping, key) if fields.has(key) else None
