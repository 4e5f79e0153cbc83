"""What every store checks in the same words."""

from collections.abc import Sequence

import numpy as np

from dartboard.errors import CollectionError, ConfigError, InvalidInputError
from dartboard.stores.filters import Filter
from dartboard.stores.records import Manifest, Metric
from dartboard.types import FloatArray, as_float32, check_vector

_LONGEST_NAME = 200


def check_name(name: str) -> str:
    """A collection's name: something a person can type, and an address can hold (``.`` and ``..`` vanish)."""
    typed = isinstance(name, str) and name.strip() and name not in (".", "..")
    if not typed or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ConfigError(
            f"a collection's name is 1 to {_LONGEST_NAME} printable characters and neither . nor .., "
            f"got {name!r:.60}"
        )
    return name


def check_k(k: int, name: str = "k") -> int:
    """A count of at least one."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ConfigError(f"{name} must be a whole number >= 1, got {k!r}")
    return int(k)


def check_query_vector(manifest: Manifest, query: FloatArray, field: str | None) -> tuple[FloatArray, Metric]:
    """The query as float32, ``(d,)``, of unit length for cosines, and what its field compares."""
    if field is None:
        dimension, metric = manifest.dimension, "cosine"
    elif field in manifest.vectors:
        dimension, metric = manifest.vectors[field].dimension, manifest.vectors[field].metric
    else:
        raise InvalidInputError(
            f"no vector {field!r} in this collection: it has "
            f"{sorted(manifest.vectors) or 'the embedding only'}"
        )
    asked = check_vector(query, name="query vector", dim=dimension).astype(np.float64)
    if metric == "cosine":
        asked = np.ldexp(asked, -np.frexp(np.abs(asked).max())[1])  # exact; squares stay in range
        asked /= np.linalg.norm(asked)
    return as_float32(asked, "query vector"), metric  # type: ignore[return-value]


def check_sparse_field(manifest: Manifest, field: str, collection: str) -> None:
    """A sparse vector that the collection has."""
    if field not in manifest.sparse:
        raise InvalidInputError(
            f"no sparse vector {field!r} in collection {collection!r}: it has {list(manifest.sparse)}"
        )


def check_deletion(ids: Sequence[str] | None, where: Filter | None) -> None:
    """What to delete, said in one way."""
    if (ids is None) == (where is None):
        raise InvalidInputError("delete takes ids or a filter: give one of the two")


def exists_already(name: str) -> CollectionError:
    """The error for a name that is taken."""
    return CollectionError(f"collection {name!r} exists already: open it, drop it, or choose another name")


def missing(name: str, known: Sequence[str]) -> CollectionError:
    """The error for a name that is not there."""
    there = f"there are {', '.join(map(repr, known))}" if known else "there are none yet"
    return CollectionError(f"no collection {name!r}: {there}")
