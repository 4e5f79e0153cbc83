"""Filters as SQL over JSON metadata, with the same results as ``Filter.matches``.

Each leaf tests the JSON type first, so that values of different types are never compared. Two cases call
back into Python, for the rows in question: numbers with a fraction, because SQLite does not always parse a
decimal to the nearest double, and field names that JSON has to escape. With many such parts, Python evaluates
the whole filter, so that it parses each row once.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from dartboard.deadline import check, remaining
from dartboard.stores.filters import (
    Among,
    And,
    Compare,
    Equal,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Value,
    check_filter,
)

_LARGEST = 2**53
"""Whole numbers in metadata lie within ±2**53."""
_FUNCTION = "dartboard_matches"

_LONGEST_SQL = 100_000
"""Longer conditions are evaluated in Python: SQLite limits length and depth."""

_MOST_LEFT = 8
"""Up to this many parts are evaluated in Python one by one."""
_INSTRUCTIONS = 2000
"""SQLite instructions between two checks of the deadline: less than a millisecond of a usual scan."""


class _Left:
    """A part that Python evaluates."""

    __slots__ = ("__weakref__", "where")

    def __init__(self, where: Filter) -> None:
        self.where = where


_numbers = count()
_in_use: WeakValueDictionary[int, _Left] = WeakValueDictionary()
"""Parts by number: SQL passes the number, since a filter's text would be parsed again for each row."""


class Parameters(dict[str, str | int]):
    """Named parameters. They own the parts for Python: keep them until the last row is read."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[_Left] = []


def filter_sql(where: Filter, column: str = "metadata") -> tuple[str, Parameters]:
    """An SQL condition on a column of JSON objects, and its named parameters (``f0``, ``f1``, …)."""
    check_filter(where)
    writer = _Writer(column)
    condition = writer.write(where)
    if len(condition) > _LONGEST_SQL or len(writer.parameters.left) > _MOST_LEFT:
        writer = _Writer(column)
        condition = writer.in_python(where)
    return condition, writer.parameters


def install_functions(connection: sqlite3.Connection) -> None:
    """Register the Python functions that :func:`filter_sql` calls."""
    for given in (2, 3):  # the third argument is the record's id, for filters on ids
        connection.create_function(_FUNCTION, given, _matches, deterministic=True)


@contextmanager
def ending_in_time(connection: sqlite3.Connection) -> Iterator[None]:
    """Interrupt the statements inside at the deadline; the connection belongs to one thread."""
    if remaining() is None:
        yield
        return
    connection.set_progress_handler(check, _INSTRUCTIONS)
    try:
        yield
    except sqlite3.OperationalError:  # SQLite replaces the error that the deadline check raised
        check()
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _matches(metadata: str, number: int, id: str | None = None) -> bool:
    check()
    return _in_use[number].where.matches(_parsed(metadata), id)


@lru_cache(maxsize=32)
def _parsed(metadata: str) -> Any:
    """Cached: all parts of a filter look at one row before the next, so a few rows are enough."""
    return json.loads(metadata)


class _Writer:
    def __init__(self, column: str) -> None:
        self.parameters = Parameters()
        self._column = column

    def write(self, where: Filter) -> str:
        match where:
            case And(parts):
                return self._joined(parts, "AND", "1")
            case Or(parts):
                return self._joined(parts, "OR", "0")
            case Not(part):
                return f"(NOT {self.write(part)})"
            case Among(ids):
                return f"(id IN {self._set([id for id in ids if _is_text(id)])})"
            case Exists(field) if _is_plain(field):
                return f"(coalesce({self._type(field)}, 'null') <> 'null')"
            case Equal(field, value) if _is_plain(field):
                return self._one_of(where, field, (value,))
            case In(field, values) if _is_plain(field):
                return self._one_of(where, field, values)
            case Compare(field, _, _) if _is_plain(field):
                return self._range(where)
            case _:
                return self.in_python(where)

    def in_python(self, where: Filter) -> str:
        """Evaluate a part with :func:`_matches`."""
        own = ", id" if _asks_for_ids(where) else ""
        left, number = _Left(where), next(_numbers)
        self.parameters.left.append(left)
        _in_use[number] = left
        return f"{_FUNCTION}({self._column}, {self._mark(number)}{own})"

    def _joined(self, parts: tuple[Filter, ...], sign: str, of_none: str) -> str:
        """Join the parts as a balanced tree, because SQLite limits the depth."""
        if not parts:
            return of_none
        if len(parts) == 1:
            return self.write(parts[0])
        half = len(parts) // 2
        left, right = (self._joined(part, sign, of_none) for part in (parts[:half], parts[half:]))
        return f"({left} {sign} {right})"

    def _one_of(self, where: Filter, field: str, values: tuple[Value, ...]) -> str:
        """The field is one of the values, or a list that contains one."""
        if not values:
            return "0"
        numeric = any(isinstance(value, (int, float)) for value in values)
        python = f"WHEN 'real' THEN {self.in_python(where)}" if numeric else "WHEN 'real' THEN 0"
        members = f"json_each({self._column}, {self._mark(_path(field))}) AS member"
        alone = f"{self._equals(self._value(field), values)} {python}"
        inside = f"CASE member.type {self._equals('member.value', values)} {python} ELSE 0 END"
        listed = f"EXISTS (SELECT 1 FROM {members} WHERE {inside})"  # noqa: S608 - values are parameters
        return f"(CASE {self._type(field)} {alone} WHEN 'array' THEN {listed} ELSE 0 END)"

    def _equals(self, found: str, values: tuple[Value, ...]) -> str:
        """The branches of a CASE over JSON types."""
        texts, numbers, truths = _by_type(values)
        branches = [f"WHEN '{truth}' THEN 1" for truth in truths]
        if texts:
            branches.append(f"WHEN 'text' THEN {found} IN {self._set(texts)}")
        if numbers:
            branches.append(f"WHEN 'integer' THEN {found} IN {self._set(numbers)}")
        return " ".join(branches)

    def _range(self, where: Compare) -> str:
        if isinstance(where.value, str):
            if not _is_text(where.value):
                return self.in_python(where)
            branches = (
                f"WHEN 'text' THEN {self._value(where.field)} {where.operator} {self._mark(where.value)}"
            )
        else:
            operator, number = _whole_bound(where.operator, where.value)
            branches = (
                f"WHEN 'integer' THEN {self._value(where.field)} {operator} {self._mark(number)} "
                f"WHEN 'real' THEN {self.in_python(where)}"
            )
        return f"(CASE {self._type(where.field)} {branches} ELSE 0 END)"

    def _type(self, field: str) -> str:
        return f"json_type({self._column}, {self._mark(_path(field))})"

    def _value(self, field: str) -> str:
        return f"json_extract({self._column}, {self._mark(_path(field))})"

    def _set(self, values: list[str] | list[int]) -> str:
        if len(values) == 1:
            return f"({self._mark(values[0])})"
        return f"(SELECT value FROM json_each({self._mark(json.dumps(values))}))"  # noqa: S608

    def _mark(self, value: str | int) -> str:
        name = f"f{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"


def _asks_for_ids(where: Filter) -> bool:
    match where:
        case Among():
            return True
        case And(parts) | Or(parts):
            return any(map(_asks_for_ids, parts))
        case Not(part):
            return _asks_for_ids(part)
        case _:
            return False


def _by_type(values: tuple[Value, ...]) -> tuple[list[str], list[int], list[str]]:
    """Texts, whole numbers that metadata can hold, and truth values by their JSON types."""
    texts = [value for value in values if isinstance(value, str) and _is_text(value)]
    truths = sorted({str(value).lower() for value in values if isinstance(value, bool)})
    numbers = [
        int(value)
        for value in values
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and value == int(value)
        and abs(value) <= _LARGEST
    ]
    return texts, numbers, truths


def _path(field: str) -> str:
    return f'$."{field}"'


def _whole_bound(operator: str, value: int | float) -> tuple[str, int]:
    """The same range for whole numbers within ±2**53, with a whole bound that SQLite can store."""
    below = int(value // 1)
    if value != below:  # n < 2.5 is n <= 2, and n > 2.5 is n > 2
        operator = "<=" if operator in ("<", "<=") else ">"
    return operator, max(-_LARGEST - 1, min(_LARGEST + 1, below))


def _is_plain(field: str) -> bool:
    """Whether the name needs no escaping in JSON and in SQLite's paths."""
    return field.isprintable() and not set(field) & {'"', "\\"} and _is_text(field)


def _is_text(value: str) -> bool:
    """Whether the text is valid UTF-8; a lone surrogate is not, and equals nothing stored."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
