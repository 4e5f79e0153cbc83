"""What filters look at, kept beside each record so that every Milvus answers them alike.

Milvus releases differ in what a comparison with a missing JSON key means under ``not``, and in how they
compare 1 with 1.0 or true. So filters never touch the metadata itself. A record carries

- ``terms``: one digest for each (field, value) that equality can match and for each field that exists.
  Each list member counts, 1 and 1.0 are one value, true is none of them;
- a dynamic field for each number or text at the top level, ``n_…`` or ``t_…`` and the field's digest,
  for ranges: numbers as doubles, text as it is.

``terms`` is there for every record, so "does not contain" is true or false and never unknown.
"""

from collections.abc import Mapping
from typing import Any

from dartboard.stores.milvus.names import digest

Value = str | int | float | bool


def terms_of(metadata: Mapping[str, Any]) -> list[str]:
    """The digests of all that equality and ``exists`` can match, sorted."""
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
    """The digest that says: the field has this value, or contains it."""
    if isinstance(value, bool):
        kind, text = "b", str(value)
    elif isinstance(value, str):
        kind, text = "t", value
    else:
        kind, text = "n", float(value).hex() if value else "0"
    return digest(f"{kind}{len(field)}:{field}={text}")


def exists_term(field: str) -> str:
    """The digest that says: the field is there and not null."""
    return digest(f"e{field}")


def vector_term(name: str) -> str:
    """The digest that says: the record carries this further vector."""
    return digest(f"v{name}")


def range_key(field: str, value: str | float) -> str:
    """The dynamic field that holds a field's number, or its text, whichever ``value`` is."""
    return f"{'t' if isinstance(value, str) else 'n'}_{digest(field)}"
