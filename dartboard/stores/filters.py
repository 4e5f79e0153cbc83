"""Filters on metadata: one small language for every store.

    year >= 2020 and lang in ["en", "de"] and not draft = true
    source exists or title = "Release notes"

A filter is true or false for a record, never unknown. A comparison with a missing (or null) field is false,
and ``not`` makes that true; ``!=`` means ``not … =``. Numbers compare with numbers, text with text (by code
point), and true and false only with ``=``. Values of different types are never equal. ``=`` and ``in`` match
a list if they match one of its members; ranges never match a list. Only fields at the top
level of the metadata can be filtered on.

As JSON: ``{"field": "year", "op": ">=", "value": 2020}``, ``{"field": "source", "op": "exists"}``,
``{"and": […]}``, ``{"or": […]}``, ``{"not": …}``; and, in JSON only, ``{"ids": […]}``: records by their ids.

A filter may have 256 comparisons and 30,000 list values, so that one filter cannot block a store. A store may
have to test every comparison on every record: 256 comparisons on 100,000 records in one file take about ten
seconds. List values are looked up in a set and cost almost nothing; their limit bounds what is parsed, sent
to a server and cached.
"""

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dartboard.errors import InvalidInputError

Value = str | int | float | bool
RangeOperator = Literal["<", "<=", ">", ">="]

_LARGEST = 10**300  # limit of what stores with doubles can compare
_WHOLE = 2**53  # larger whole numbers are not exact as doubles
_RANGE: tuple[str, ...] = get_args(RangeOperator)
_HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
DEEPEST = 50
"""Levels of brackets: SQLite's parser takes about 60."""
OPERATORS = ("=", "!=", *_RANGE, "in", "exists")
MOST_COMPARISONS = 256
MOST_VALUES = 30_000


def _derived() -> Any:
    """A dataclass field computed from the others."""
    return field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Equal:
    """The field has the value, or is a list that contains it."""

    field: str
    value: Value

    def __post_init__(self) -> None:
        _check_field(self.field)
        object.__setattr__(self, "value", _checked(self.value))

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        found = metadata.get(self.field)
        if isinstance(found, list):
            return any(_same(member, self.value) for member in found)
        return _same(found, self.value)


@dataclass(frozen=True, slots=True)
class In:
    """The field equals one of the values; false for an empty list."""

    field: str
    values: tuple[Value, ...]
    _wanted: frozenset[tuple[str | None, Value]] = _derived()

    def __post_init__(self) -> None:
        _check_field(self.field)
        object.__setattr__(self, "values", tuple(map(_checked, self.values)))
        object.__setattr__(self, "_wanted", frozenset((_kind(value), value) for value in self.values))

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        found = metadata.get(self.field)
        members = found if isinstance(found, list) else (found,)
        return any((kind, member) in self._wanted for member in members if (kind := _kind(member)))


@dataclass(frozen=True, slots=True)
class Compare:
    """The field is a number (or text) on the given side of a number (or text)."""

    field: str
    operator: RangeOperator
    value: str | int | float
    _own: str | None = _derived()

    def __post_init__(self) -> None:
        _check_field(self.field)
        object.__setattr__(self, "value", _checked(self.value))
        if self.operator not in _RANGE:
            raise InvalidInputError(f"filter: unknown range {self.operator!r}: use {', '.join(_RANGE)}")
        if isinstance(self.value, bool):
            raise InvalidInputError(
                f"filter: {self.field!r} {self.operator} needs a number or text, not true/false"
            )
        object.__setattr__(self, "_own", _kind(self.value))

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        found = metadata.get(self.field)
        if found is None or _kind(found) != self._own:
            return False
        return bool(_HOLDS[self.operator](found, self.value))


@dataclass(frozen=True, slots=True)
class Exists:
    """The field is there and not null."""

    field: str

    def __post_init__(self) -> None:
        _check_field(self.field)

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        return metadata.get(self.field) is not None


@dataclass(frozen=True, slots=True)
class Among:
    """The record's own id is one of these; false for an empty list."""

    ids: tuple[str, ...]
    _wanted: frozenset[str] = _derived()

    def __post_init__(self) -> None:
        if not all(isinstance(id, str) and id and "\x00" not in id for id in self.ids):
            raise InvalidInputError('filter: "ids" takes ids, which are non-empty text')
        for id in self.ids:
            _check_unicode(id)
        object.__setattr__(self, "_wanted", frozenset(self.ids))

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        return id in self._wanted


@dataclass(frozen=True, slots=True)
class And:
    """All parts are true; an empty ``and`` is true."""

    parts: "tuple[Filter, ...]"

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        return all(part.matches(metadata, id) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part is true; an empty ``or`` is false."""

    parts: "tuple[Filter, ...]"

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        return any(part.matches(metadata, id) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false."""

    part: "Filter"

    def matches(self, metadata: Mapping[str, Any], id: str | None = None) -> bool:
        """Whether a record with this metadata and this id passes."""
        return not self.part.matches(metadata, id)


Filter = Equal | In | Compare | Exists | Among | And | Or | Not


def filter_from_json(value: Any) -> Filter:
    """Read a filter from parsed JSON.

    Args:
        value: ``{"field": …, "op": …, "value": …}``, ``{"and": […]}``, ``{"or": […]}``, ``{"not": …}`` or
            ``{"ids": […]}``.

    Raises:
        InvalidInputError: the filter is malformed, too large, or nested more than 50 deep.

    Example:
        >>> filter_from_json({"not": {"field": "draft", "op": "=", "value": True}})
        Not(part=Equal(field='draft', value=True))
    """
    where = _from_json(value, 0)
    check_filter(where)
    return where


def comparisons(where: Filter) -> Iterator[Filter]:
    """The comparisons of a filter, in no particular order; an empty ``and`` or ``or`` counts as one."""
    left = [where]
    while left:
        match left.pop():
            case Not(part):
                left.append(part)
            case And(parts) | Or(parts) if parts:
                left += parts
            case comparison:
                yield comparison


def check_filter(where: Filter) -> None:
    """Reject a filter with more comparisons, list values or levels than allowed."""
    count = values = 0
    left: list[tuple[Filter, int]] = [(where, 0)]
    while left:
        part, depth = left.pop()
        if depth > DEEPEST:
            raise InvalidInputError(f"filter is nested more than {DEEPEST} deep")
        match part:
            case Not(inner):
                left.append((inner, depth + 1))
                continue
            case And(parts) | Or(parts) if parts:
                left += ((inner, depth + 1) for inner in parts)
                continue
            case In(_, listed) | Among(listed):
                values += len(listed)
        count += 1
        if count > MOST_COMPARISONS:
            raise InvalidInputError(
                f"filter: more than {MOST_COMPARISONS} comparisons, which is the most allowed: ask for "
                "several values of one field with in […], or search in parts"
            )
        if values > MOST_VALUES:
            raise InvalidInputError(
                f"filter: more than {MOST_VALUES:,} values in its lists, which is the most allowed: keep "
                "what they have in common as a field of its own, or search in parts"
            )


def filter_to_json(where: Filter) -> dict[str, Any]:
    """The filter as JSON data for :func:`filter_from_json`."""
    match where:
        case Equal(field, value):
            return {"field": field, "op": "=", "value": value}
        case In(field, values):
            return {"field": field, "op": "in", "value": list(values)}
        case Compare(field, operator, value):
            return {"field": field, "op": operator, "value": value}
        case Exists(field):
            return {"field": field, "op": "exists"}
        case Among(ids):
            return {"ids": list(ids)}
        case And(parts):
            return {"and": [filter_to_json(part) for part in parts]}
        case Or(parts):
            return {"or": [filter_to_json(part) for part in parts]}
        case Not(part):
            return {"not": filter_to_json(part)}


def _from_json(value: Any, depth: int) -> Filter:
    if depth > DEEPEST:
        raise InvalidInputError(f"filter is nested more than {DEEPEST} deep")
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            'filter must be an object such as {"field": "year", "op": ">=", "value": 2020}'
        )
    keys = set(value)
    if keys == {"not"}:
        return Not(_from_json(value["not"], depth + 1))
    if keys == {"ids"}:
        if not isinstance(value["ids"], list):
            raise InvalidInputError('filter: "ids" takes a list of ids')
        return Among(tuple(value["ids"]))
    if keys in ({"and"}, {"or"}):
        (key,) = keys
        if not isinstance(value[key], list):
            raise InvalidInputError(f'filter: "{key}" takes a list of filters')
        parts = tuple(_from_json(part, depth + 1) for part in value[key])
        return And(parts) if key == "and" else Or(parts)
    if value.get("op") == "exists" and "value" in keys:
        raise InvalidInputError(
            'filter: "exists" takes no value: write {"not": {"field": …, "op": "exists"}} for none'
        )
    if not {"field", "op"} <= keys <= {"field", "op", "value"}:
        raise InvalidInputError(
            'filter: expected "field", "op" and "value", or one of "and", "or", "not", "ids"; '
            f"got {sorted(map(str, value))}"
        )
    return comparison(value["field"], value["op"], value.get("value"))


def comparison(field: Any, operator: Any, value: Any) -> Filter:
    """``field operator value`` as a filter."""
    if operator == "exists":
        return Exists(field)
    if operator == "in":
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise InvalidInputError(f"filter: {field!r} in takes a list of values")
        return In(field, tuple(value))
    if operator in ("=", "=="):
        return Equal(field, value)
    if operator == "!=":
        return Not(Equal(field, value))
    if operator in _RANGE:
        return Compare(field, operator, value)
    raise InvalidInputError(f"filter: unknown operator {operator!r}: use {', '.join(OPERATORS)}")


def _check_field(field: Any) -> None:
    if not isinstance(field, str) or not field or "\x00" in field:
        raise InvalidInputError("filter: a field is a non-empty name")
    _check_unicode(field)


def _checked(value: Any) -> Any:
    """The value; a whole number that metadata cannot hold becomes the nearest double, in every store."""
    if _kind(value) is None:
        raise InvalidInputError("filter: values are text, finite numbers, true or false")
    if isinstance(value, str) and "\x00" in value:
        raise InvalidInputError("filter: text must not contain the character U+0000")
    if isinstance(value, str):
        _check_unicode(value)
    return float(value) if isinstance(value, int) and abs(value) > _WHOLE else value


def _check_unicode(text: str) -> None:
    """Refuse half of a surrogate pair: no store can hold it, and databases fail on it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"filter: text is not valid Unicode ({error.reason})") from error


def _kind(value: Any) -> str | None:
    """The type class of a value: only values of the same class compare."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "number" if abs(value) <= _LARGEST else None
    if isinstance(value, float):
        return "number" if math.isfinite(value) else None
    return None


def _same(found: Any, value: Value) -> bool:
    return bool(found == value) and _kind(found) == _kind(value)
