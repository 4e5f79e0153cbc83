"""Whether a collection has the fields that a filter compares.

A filter is false of a record that lacks the field, so a mistyped name would quietly match nothing, or, under
``not``, everything. A field that some records have is fine, and so is any field in an empty collection.
``field exists`` may ask for a field that nobody has, and says that its absence is expected: fields that a
filter asks about in this way are not checked.
"""

import re
from difflib import get_close_matches
from itertools import islice

from dartboard.errors import InvalidInputError
from dartboard.stores.base import Collection
from dartboard.stores.filters import And, Compare, Equal, Exists, Filter, In, Not, Or

_READ = 10_000
"""Records that are read to list the fields there are."""
_BATCH = 500
_SHOWN = 20
_LONGEST = 40
_PLAIN = re.compile(r"[^\W\d][\w.-]*")


def check_fields(collection: Collection, where: Filter | None, known: set[str]) -> None:
    """Refuse a filter that compares a field which no record has; the error names those there are.

    ``known`` are fields that were found before; those found now are added.
    """
    if where is None:
        return
    for field in sorted(compared_fields(where) - known):
        if any(collection.iterate(where=Exists(field), batch_size=1)):
            known.add(field)
        elif any(collection.iterate(batch_size=1)):
            raise InvalidInputError(f"filter: no chunk has the field {field!r}: {_there(collection, field)}")


def compared_fields(where: Filter) -> set[str]:
    """The fields that a filter compares and does not ask about by ``exists``."""
    compared: set[str] = set()
    expected: set[str] = set()
    left = [where]
    while left:
        match left.pop():
            case Not(part):
                left.append(part)
            case And(parts) | Or(parts):
                left += parts
            case Exists(field):
                expected.add(field)
            case Equal(field) | In(field) | Compare(field):
                compared.add(field)
    return compared - expected


def _there(collection: Collection, asked: str) -> str:
    """The fields that there are, in words, with the one that was probably meant."""
    fields: set[str] = set()
    read = 0
    for batch in islice(collection.iterate(batch_size=_BATCH), _READ // _BATCH):
        read += len(batch)
        for record in batch:
            fields |= {name for name, value in record.metadata.items() if value is not None}
    if not fields:
        return "chunks here have no metadata"
    names = sorted(fields)
    near = get_close_matches(asked, names, 1)
    more = ", …" if len(names) > _SHOWN or read == _READ else ""
    meant = f"did you mean {_name(near[0])}? " if near else ""
    return f"{meant}There are {', '.join(map(_name, names[:_SHOWN]))}{more}"


def _name(field: str) -> str:
    """A field as a filter writes it."""
    shown = field if len(field) <= _LONGEST else f"{field[:_LONGEST]}…"
    return shown if _PLAIN.fullmatch(shown) else f"`{shown}`"
