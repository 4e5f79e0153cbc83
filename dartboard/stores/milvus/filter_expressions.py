"""Filters as Milvus expressions that have the same meaning in every Milvus release.

Milvus releases differ in how ``not`` treats a comparison with a missing JSON key, and in how they compare 1
with 1.0 or true. So filters never read the metadata itself. A record carries

- ``terms``: one digest for each (field, value) that equality can match and for each field that exists.
  Each list member counts. 1 and 1.0 are the same value, and true is another;
- a dynamic field for each number or text at the top level, for ranges: ``n_…`` or ``t_…`` plus the digest
  of the field's name. Numbers are doubles, and text is unchanged.

Every record has ``terms``, so "does not contain" is true or false and never unknown. ``not`` is pushed down
to the comparisons first, so that Milvus never negates an unknown: ``not year < 5`` becomes "there is no
number year, or it is >= 5". Field names and values of equality appear only as digests; texts in ranges and
ids are quoted.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

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

Layout = Literal["array", "text"]
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def digest(text: str, size: int = 12) -> str:
    """The first ``size`` bytes of a hash, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size].hex()


def terms_of(metadata: Mapping[str, Any]) -> list[str]:
    """The sorted digests of everything that equality and ``exists`` can match."""
    found = set()
    for field, value in metadata.items():
        if value is None:
            continue
        found.add(exists_term(field))
        members = value if isinstance(value, list) else [value]
        found |= {equal_term(field, member) for member in members if isinstance(member, Value)}
    return sorted(found)


def ranges_of(metadata: Mapping[str, Any]) -> dict[str, str | float]:
    """Dynamic fields for the numbers and texts at the top level."""
    found: dict[str, str | float] = {}
    for field, value in metadata.items():
        if isinstance(value, str):
            found[range_key(field, value)] = value
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[range_key(field, value)] = float(value)
    return found


def equal_term(field: str, value: Value) -> str:
    """The digest for "the field has this value, or contains it"."""
    if isinstance(value, bool):
        kind, text = "b", str(value)
    elif isinstance(value, str):
        kind, text = "t", value
    else:
        kind, text = "n", float(value).hex() if value else "0"
    return digest(f"{kind}{len(field)}:{field}={text}")


def exists_term(field: str) -> str:
    """The digest for "the field exists and is not null"."""
    return digest(f"e{field}")


def vector_term(name: str) -> str:
    """The digest for "the record has this further vector"."""
    return digest(f"v{name}")


def range_key(field: str, value: str | float) -> str:
    """The dynamic field with a field's number or text, depending on the type of ``value``."""
    return f"{'t' if isinstance(value, str) else 'n'}_{digest(field)}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A Milvus expression; ``text`` "" matches every record, None matches none."""

    text: str | None

    def __and__(self, other: "Expression") -> "Expression":
        return _joined("and", [self, other])


EVERYTHING = Expression("")
NOTHING = Expression(None)


def quoted(text: str) -> str:
    """A string literal."""
    return f'"{text.translate(_ESCAPES)}"'


def contains(layout: Layout, terms: list[str], *, negated: bool = False) -> Expression:
    """The record's terms contain one of ``terms``; negated: none of them."""
    if layout == "array":
        listed = ", ".join(quoted(term) for term in terms)
        text = f"array_contains_any(terms, [{listed}])"
    else:
        text = " or ".join(f'terms like "%{term}%"' for term in terms)
        text = f"({text})" if len(terms) > 1 else text
    return Expression(f"not ({text})" if negated else text)


def compile_filter(where: Filter | None, layout: Layout) -> Expression:
    """The expression that matches the same records as the filter."""
    if where is None:
        return EVERYTHING
    check_filter(where)
    return _compile(where, layout, negated=False)


def _compile(where: Filter, layout: Layout, *, negated: bool) -> Expression:
    match where:
        case Not(part):
            return _compile(part, layout, negated=not negated)
        case And(parts) | Or(parts):
            word = "and" if isinstance(where, And) != negated else "or"
            return _joined(word, [_compile(part, layout, negated=negated) for part in parts])
        case Among(ids):
            return among(ids, negated=negated)
        case Exists(field):
            return contains(layout, [exists_term(field)], negated=negated)
        case Equal(field, value):
            return _one_of(field, (value,), layout, negated)
        case In(field, values):
            return _one_of(field, values, layout, negated)
        case Compare():
            return _range(where, negated)


def _joined(word: str, parts: list[Expression]) -> Expression:
    neutral, decisive = (EVERYTHING, NOTHING) if word == "and" else (NOTHING, EVERYTHING)
    if decisive in parts:
        return decisive
    texts = [part.text for part in parts if part != neutral and part.text]
    if not texts:
        return neutral
    return Expression(texts[0] if len(texts) == 1 else f"({f' {word} '.join(texts)})")


def _one_of(field: str, values: tuple[Value, ...], layout: Layout, negated: bool) -> Expression:
    terms = sorted({equal_term(field, value) for value in values})
    if not terms:
        return EVERYTHING if negated else NOTHING
    return contains(layout, terms, negated=negated)


def among(ids: Iterable[str], *, negated: bool = False) -> Expression:
    """The record's id is one of these; negated: none of them."""
    listed = ", ".join(map(quoted, dict.fromkeys(ids)))
    if not listed:
        return EVERYTHING if negated else NOTHING
    return Expression(f"id {'not in' if negated else 'in'} [{listed}]")


def _range(where: Compare, negated: bool) -> Expression:
    operator, value = where.operator, where.value
    literal = quoted(value) if isinstance(value, str) else repr(float(value))
    key = f'$meta["{range_key(where.field, value)}"]'
    if negated:
        return Expression(f"(not (exists {key}) or {key} {_OPPOSITE[operator]} {literal})")
    return Expression(f"{key} {operator} {literal}")
