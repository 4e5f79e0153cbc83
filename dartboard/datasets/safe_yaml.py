"""YAML and JSON files as nodes with line numbers; no objects are created.

Every value is checked when it is read, and every error names file and line. Aliases are rejected, because a
few hundred bytes of them can expand to more than memory holds. An unquoted value that YAML does not read as
text (``NO``, ``012``, ``1:30``) is an error, never a guess.

Pydantic would check values after YAML has converted them, and does not know lines.
"""

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.datasets.records import Place
from dartboard.errors import DatasetError, MissingExtraError

_STRING = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"
_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_PAIR = re.compile(r"(\\\\)|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_ODD = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping whose values are checked when they are read; ``keys`` are its key nodes."""

    path: Path
    node: Any
    entries: dict[str, Any]
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Where the mapping begins."""
        return place_of(self.path, self.node)

    def error(self, problem: str, node: Any = None) -> DatasetError:
        """An error at a node of this file, by default the mapping itself."""
        return place_of(self.path, node or self.node).error(problem)

    def only(self, known: Iterable[str]) -> None:
        """Reject unknown keys; the error suggests the closest known key."""
        allowed = sorted(known)
        for key, value in self.entries.items():
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(allowed)}"
                raise self.error(f"unknown key {key!r}: {advice}", self.keys.get(key, value))

    def has(self, key: str) -> bool:
        """Whether the key exists and is not null."""
        node = self.entries.get(key)
        return node is not None and node.tag != _NULL

    def string(self, key: str) -> str:
        """Text that is required and not blank."""
        node = self.entries.get(key)
        if node is None:
            raise self.error(f"{key!r} is missing")
        value = string_of(self.path, node, repr(key))
        if not value.strip():
            raise self.error(f"{key!r} is empty", node)
        return value

    def strings(self, key: str) -> list[str]:
        """A list of texts; empty if the key is missing or null."""
        return [string_of(self.path, node, f"each of {key!r}") for node in self.items(key)]

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        """A number within bounds; the default if the key is missing or null."""
        if not self.has(key):
            return default
        node = self.entries[key]
        value = _number(node)
        if value is None or not least <= value <= most:
            raise self.error(f"{key!r} must be a number in [{least:g}, {most:g}]", node)
        return value

    def items(self, key: str) -> list[Any]:
        """The nodes of a list; none if the key is missing or null."""
        node = self.entries.get(key)
        if node is None or node.tag == _NULL:
            return []
        if node.id != "sequence":
            raise self.error(f"{key!r} must be a list", node)
        nodes: list[Any] = node.value
        return nodes

    def mappings(self, key: str) -> "list[Fields]":
        """The mappings of a list."""
        return [fields_of(self.path, node, f"each of {key!r}") for node in self.items(key)]

    def mapping(self, key: str) -> "Fields":
        """The mapping under a required key."""
        if key not in self.entries:
            raise self.error(f"{key!r} is missing")
        return fields_of(self.path, self.entries[key], repr(key))


def read_fields(path: Path, expected: str) -> Fields:
    """The mapping in a YAML or JSON file; ``expected`` describes its content for error messages."""
    try:
        import yaml
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("pyyaml", "eval", "A YAML or JSON file of data") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = _text(path)
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise place_of(path, event).error(
                    f"alias *{event.anchor}: write the value out, aliases are refused"
                )
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Place(path, line).error(f"not YAML ({reason})") from None
    if root is None:
        raise Place(path, 1).error(f"the file is empty: expected {expected}")
    return fields_of(path, root, "the file")


def fields_of(path: Path, node: Any, what: str) -> Fields:
    """A node that must be a mapping with unique text keys."""
    if node.id != "mapping":
        raise place_of(path, node).error(f"{what} must be a mapping, got a {node.id}")
    entries: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for key, value in node.value:
        name = string_of(path, key, "a key")
        if name in entries:
            raise place_of(path, key).error(f"key {name!r} occurs twice")
        entries[name], keys[name] = value, key
    return Fields(path, node, entries, keys)


def string_of(path: Path, node: Any, what: str) -> str:
    """A string; YAML reads ``NO``, ``012`` and ``1:30`` without quotes as something else."""
    if node.id != "scalar":
        raise place_of(path, node).error(f"{what} must be a string, got a {node.id}")
    if node.tag != _STRING:
        kind = node.tag.rpartition(":")[2]
        raise place_of(path, node).error(
            f"{what} must be a string, but {node.value!r} is {kind}: put it in quotes"
        )
    if path.suffix == ".json" and not node.style:
        # JSON strings are quoted; an unquoted value that is not a number to YAML is NaN or Infinity.
        raise place_of(path, node).error(f"{what} must be a string, but {node.value} is a number")
    value: str = node.value
    return value


def odd_character(text: str) -> str | None:
    """The first character that ids may not contain: control characters, line ends, lone surrogates."""
    return next((one for one in text if unicodedata.category(one) in _ODD), None)


def refused_id(identity: str, odd: str) -> str:
    """The error message for an id."""
    return f"id {identity!r} holds the control character U+{ord(odd):04X}: take it out"


def place_of(path: Path, node: Any) -> Place:
    """The line on which a node or an event begins."""
    return Place(path, node.start_mark.line + 1)


def _text(path: Path) -> str:
    """The file's text for YAML: in JSON, tabs become spaces and surrogate pairs become characters."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    if path.suffix != ".json":
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Place(path, getattr(error, "lineno", 1)).error(f"not JSON ({error})") from None
    return _PAIR.sub(_character, text.replace("\t", " "))


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    high, low = int(match[2], 16), int(match[3], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _number(node: Any) -> float | None:
    if node.id != "scalar" or node.tag not in (_INTEGER, _FLOAT):
        return None
    try:
        return float(node.value)
    except ValueError:  # 1:30, 0x1f and the like
        return None
