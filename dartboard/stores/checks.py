"""Argument checks with the same error messages for every store."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import islice

import numpy as np

from dartboard.errors import CollectionError, ConfigError, InvalidInputError, StoreError
from dartboard.stores.base import Collection
from dartboard.stores.filters import Compare, Equal, Exists, Filter, In, comparisons
from dartboard.stores.manifest import Manifest, Metric
from dartboard.types import FloatArray, as_float32, check_vector

_LONGEST_NAME = 200
_LISTED_FROM = 1000
"""The metadata of so many records are read to list the existing fields."""
_SHOWN = 20
_LONGEST_SHOWN = 40
_PLAIN_FIELD = re.compile(r"[^\W\d][\w.-]*")


def check_name(name: str) -> str:
    """Check a collection's name: printable, and safe in a URL path (``.`` and ``..`` would vanish)."""
    typed = isinstance(name, str) and name.strip() and name not in (".", "..")
    if not typed or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ConfigError(
            f"a collection's name is 1 to {_LONGEST_NAME} printable characters and neither . nor .., "
            f"got {name!r:.60}"
        )
    return name


def check_k(k: int, name: str = "k") -> int:
    """Check that ``k`` is a whole number >= 1."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ConfigError(f"{name} must be a whole number >= 1, got {k!r}")
    return int(k)


def check_query_vector(manifest: Manifest, query: FloatArray, field: str | None) -> tuple[FloatArray, Metric]:
    """The query as ``(d,)`` float32, unit length for cosines, and the field that it searches."""
    if field is not None and field not in manifest.vectors:
        raise InvalidInputError(
            f"no vector {field!r} in this collection: it has "
            f"{sorted(manifest.vectors) or 'the embedding only'}"
        )
    described = manifest.vector_field(field)
    asked = check_vector(query, name="query vector", dim=described.dimension).astype(np.float64)
    if described.metric == "cosine":
        asked = np.ldexp(asked, -np.frexp(np.abs(asked).max())[1])  # by a power of 2: squares stay in range
        asked /= np.linalg.norm(asked)
    return as_float32(asked, "query vector"), described.metric


def check_sparse_field(manifest: Manifest, field: str, collection: str) -> None:
    """Check that the collection has this sparse vector."""
    if field not in manifest.sparse:
        raise InvalidInputError(
            f"no sparse vector {field!r} in collection {collection!r}: it has {list(manifest.sparse)}"
        )


def check_deletion(ids: Sequence[str] | None, where: Filter | None) -> None:
    """Check that either ids or a filter is given."""
    if (ids is None) == (where is None):
        raise InvalidInputError("delete takes ids or a filter: give one of the two")


def exists_already(name: str) -> CollectionError:
    """The error for a collection name that is taken."""
    return CollectionError(f"collection {name!r} exists already: open it, drop it, or choose another name")


def only_readable(name: str) -> StoreError:
    """The error for a write to a read snapshot."""
    return StoreError(
        f"collection {name!r} is open as a read snapshot: write to it, and ask for its statistics, outside "
        "of the snapshot"
    )


def missing(name: str, known: Sequence[str]) -> CollectionError:
    """The error for a collection that does not exist."""
    there = f"there are {', '.join(map(repr, known))}" if known else "there are none yet"
    return CollectionError(f"no collection {name!r}: {there}")


def check_fields(collection: Collection, where: Filter | None, known: set[str]) -> None:
    """Reject a filter on a field that no record has; the error lists the existing fields.

    A comparison is false for a record without the field. So a mistyped name would silently match nothing or,
    under ``not``, everything. In an empty collection any field is accepted. ``field exists`` shows that a
    missing field is expected, so fields that the filter tests in this way are not checked.

    Args:
        collection: The collection to be searched.
        where: The filter; None is accepted.
        known: Cache of fields that exist; fields found now are added.

    Raises:
        InvalidInputError: no record has one of the fields.
    """
    if where is None:
        return
    for field in sorted(compared_fields(where) - known):
        if next(iter(collection.iterate_metadata(where=Exists(field))), None) is not None:
            known.add(field)
        elif next(iter(collection.iterate_metadata()), None) is not None:
            raise InvalidInputError(
                f"filter: no chunk has the field {field!r}: {_fields_there(collection, field)}"
            )


def compared_fields(where: Filter) -> set[str]:
    """The fields that a filter compares without testing ``exists``."""
    found = list(comparisons(where))
    compared = {part.field for part in found if isinstance(part, Equal | In | Compare)}
    return compared - {part.field for part in found if isinstance(part, Exists)}


def _fields_there(collection: Collection, asked: str) -> str:
    """The existing fields as text, with the closest name as a suggestion."""
    listed = list(islice(collection.iterate_metadata(), _LISTED_FROM))
    fields = {name for metadata in listed for name, value in metadata.items() if value is not None}
    if not fields:
        return "chunks here have no metadata"
    names = sorted(fields)
    near = get_close_matches(asked, names, 1)
    more = ", …" if len(names) > _SHOWN or len(listed) == _LISTED_FROM else ""
    meant = f"did you mean {_name(near[0])}? " if near else ""
    return f"{meant}There are {', '.join(map(_name, names[:_SHOWN]))}{more}"


def _name(field: str) -> str:
    """A field as a filter writes it."""
    shown = field if len(field) <= _LONGEST_SHOWN else f"{field[:_LONGEST_SHOWN]}…"
    return shown if _PLAIN_FIELD.fullmatch(shown) else f"`{shown}`"
