"""Filters as SQL over the jsonb column ``metadata``, with the same results as ``Filter.matches``.

Containment (``@>``) means equality or list membership, by JSON type, and can use an index. jsonb stores
numbers as decimals; a double is written as its shortest decimal, which keeps order and equality. Every value
and field name is a parameter.
"""

import json
import re
from decimal import Decimal
from typing import Any

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

_FEW = 16
"""Up to this many values of ``in`` are looked up in the index one by one; more are hashed."""
_LARGE_FLOAT = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?e\+\d+')


def condition(where: Filter | None) -> tuple[str, dict[str, Any]]:
    """An SQL condition that is true or false, never unknown, and its named parameters (``f0``, ``f1`` …)."""
    if where is None:
        return "true", {}
    check_filter(where)
    writer = _Writer()
    return writer.write(where), writer.parameters


def to_json(value: Any) -> str:
    """JSON whose floats stay floats in jsonb: 1e+22 is written out with a decimal point."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _LARGE_FLOAT.sub(_written_out, text) if "e+" in text else text


def _written_out(found: re.Match[str]) -> str:
    text = found.group()
    return text if text.startswith('"') else f"{Decimal(text):f}.0"


class _Writer:
    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def write(self, where: Filter) -> str:
        match where:
            case Equal(field, value):
                return self._equal(field, value)
            case In(field, values):
                return self._in(field, values)
            case Compare(field, operator, value):
                return self._compare(field, operator, value)
            case Exists(field):
                return f"coalesce(jsonb_typeof(metadata -> {self._bind(field)}::text) <> 'null', false)"
            case Among(ids):
                return f"id = ANY({self._bind(list(ids))}::text[])"
            case And(parts):
                return self._joined(parts, "AND", "true")
            case Or(parts):
                return self._joined(parts, "OR", "false")
            case Not(part):
                return f"NOT {self.write(part)}"

    def _joined(self, parts: tuple[Filter, ...], word: str, empty: str) -> str:
        return f"({f' {word} '.join(map(self.write, parts))})" if parts else empty

    def _equal(self, field: str, value: Value) -> str:
        alone, member = self._bind(to_json({field: value})), self._bind(to_json({field: [value]}))
        return f"(metadata @> {alone}::jsonb OR metadata @> {member}::jsonb)"

    def _in(self, field: str, values: tuple[Value, ...]) -> str:
        if len(values) <= _FEW:
            return self._joined(tuple(Equal(field, value) for value in values), "OR", "false")
        found = f"metadata -> {self._bind(field)}::text"
        wanted = self._bind([to_json(value) for value in values])
        return (
            "EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof("
            f"{found}) WHEN 'array' THEN {found} ELSE jsonb_build_array({found}) END) AS member "
            f"WHERE member = ANY({wanted}::jsonb[]))"
        )

    def _compare(self, field: str, operator: str, value: str | int | float) -> str:
        name = self._bind(field)
        if isinstance(value, str):
            kind, found, wanted = "string", f'(metadata ->> {name}::text) COLLATE "C"', f"{self._bind(value)}"
        else:
            kind, found = "number", f"(metadata -> {name}::text)"
            wanted = f"{self._bind(to_json(value))}::jsonb"
        return (
            f"CASE jsonb_typeof(metadata -> {name}::text) WHEN '{kind}' THEN {found} {operator} {wanted} "
            "ELSE false END"
        )

    def _bind(self, value: Any) -> str:
        name = f"f{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"
