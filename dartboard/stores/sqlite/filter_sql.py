"""Filters as SQL over JSON metadata, with the same results as ``Filter.matches``.

Every leaf looks its field up by key, so no name needs quoting, and tests the JSON type first, so that values
of different types are never compared. Each leaf is true or false, never unknown.
"""

# ruff: noqa: S608 - statements are made of our own words; values are parameters

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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

_INSTRUCTIONS = 2000
"""SQLite instructions between two looks at the deadline: less than a millisecond of a usual scan."""
_NUMBER = "('integer', 'real')"


def filter_sql(where: Filter | None) -> tuple[str, dict[str, Any]]:
    """An SQL condition on the columns ``id`` and ``metadata``, and its named parameters."""
    if where is None:
        return "1", {}
    check_filter(where)
    writer = _Writer()
    return writer.write(where), writer.parameters


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


class _Writer:
    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def write(self, where: Filter) -> str:
        match where:
            case And(parts):
                return self._joined(parts, " AND ") if parts else "1"
            case Or(parts):
                return self._joined(parts, " OR ") if parts else "0"
            case Not(part):
                return f"{self.write(part)} = 0"
            case Among(ids):
                return f"(id IN {self._list(ids)})"
            case Exists(field):
                return self._leaf(field, "f.type <> 'null'")
            case Equal(field, value):
                return self._one_of(field, (value,))
            case In(field, values):
                return self._one_of(field, values) if values else "0"
            case Compare(field, operator, value):
                types = "('text')" if isinstance(value, str) else _NUMBER
                return self._leaf(field, f"f.type IN {types} AND f.value {operator} {self._mark(value)}")

    def _joined(self, parts: Sequence[Filter], word: str) -> str:
        """The deepest part comes first: SQLite's parser keeps what stands before a bracket, up to a limit."""
        return f"({word.join(map(self.write, sorted(parts, key=_depth, reverse=True)))})"

    def _leaf(self, field: str, test: str) -> str:
        key = self._mark(field)
        return f"EXISTS (SELECT 1 FROM json_each(metadata) AS f WHERE f.key = {key} AND {test})"

    def _one_of(self, field: str, values: Sequence[Value]) -> str:
        """The field is one of the values, or a list that contains one."""
        texts = self._values([value for value in values if isinstance(value, str)])
        numbers = self._values([value for value in values if not isinstance(value, (str, bool))])
        truths = ", ".join(sorted({f"'{str(value).lower()}'" for value in values if isinstance(value, bool)}))

        def test(at: str) -> str:
            tests = []
            if truths:
                tests.append(f"{at}.type IN ({truths})")
            if texts:
                tests.append(f"({at}.type = 'text' AND {at}.value {texts})")
            if numbers:
                tests.append(f"({at}.type IN {_NUMBER} AND {at}.value {numbers})")
            return f"({' OR '.join(tests)})"

        members = f"EXISTS (SELECT 1 FROM json_each(f.value) AS m WHERE {test('m')})"
        return self._leaf(field, f"({test('f')} OR (f.type = 'array' AND {members}))")

    def _values(self, values: list[Any]) -> str:
        """The right side of a comparison with these values; empty without any."""
        if not values:
            return ""
        return f"= {self._mark(values[0])}" if len(values) == 1 else f"IN {self._list(values)}"

    def _list(self, values: Sequence[Any]) -> str:
        listed = self._mark(json.dumps(list(values)))
        return f"(SELECT value FROM json_each({listed}))"

    def _mark(self, value: Any) -> str:
        name = f"f{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"


def _depth(where: Filter) -> int:
    match where:
        case And(parts) | Or(parts):
            return 1 + max(map(_depth, parts), default=0)
        case Not(part):
            return 1 + _depth(part)
        case _:
            return 0
