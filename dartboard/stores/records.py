"""Records: passages as stores keep them.

A record is a chunk plus the data of other retrievers: further dense vectors, learned sparse vectors, and
blobs, each by name. Only the retriever that wrote a blob can read it (token codes).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.near_duplicates import fingerprint
from dartboard.types import Chunk, FloatArray, as_float32, check_vector

FINGERPRINT = "fingerprint"
"""The name of the blob that :func:`with_fingerprints` adds."""
LARGEST_INTEGER = 2**53
"""Larger integers are not exact as doubles, so stores would disagree on equality."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """Weights of a few terms.

    Args:
        terms: ``(m,)`` int32, >= 0, strictly increasing.
        weights: ``(m,)`` float32, finite and > 0.

    Raises:
        InvalidInputError: terms or weights are not valid.

    Example:
        >>> SparseVector.of([3, 17], [0.5, 1.25])
    """

    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        terms = np.asarray(self.terms, dtype=np.int32)
        weights = np.asarray(self.weights, dtype=np.float32)
        if terms.ndim != 1 or terms.shape != weights.shape:
            raise InvalidInputError(f"sparse vector: {terms.shape} terms with {weights.shape} weights")
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InvalidInputError("sparse vector: weights must be finite and > 0; leave other terms out")
        if terms.size and (terms[0] < 0 or (np.diff(terms) <= 0).any()):
            raise InvalidInputError("sparse vector: terms must be >= 0, unique and in increasing order")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "weights", weights)

    @classmethod
    def of(cls, terms: npt.ArrayLike, weights: npt.ArrayLike) -> Self:
        """Convert from any numbers, such as lists."""
        return cls(np.asarray(terms, dtype=np.int32), np.asarray(weights, dtype=np.float32))


@dataclass(slots=True, eq=False)
class Record:
    """A passage as a store keeps it; validated when it is made.

    Args:
        id: Unique in its collection, not empty.
        text: The passage.
        embedding: ``(d,)``, finite, not all zero; kept as float32.
        metadata: JSON: text, finite numbers, true, false, null, lists and objects of these.
        vectors: Further dense vectors by name.
        sparse: Sparse vectors by name.
        blobs: Bytes by name.

    Raises:
        InvalidInputError: one of them is not valid.

    Example:
        >>> Record("tea#1", "Tea is served at five.", [0.6, 0.8], {"source": "tea.md"})
    """

    id: str
    text: str
    embedding: FloatArray
    metadata: dict[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, FloatArray] = field(default_factory=dict)
    sparse: Mapping[str, SparseVector] = field(default_factory=dict)
    blobs: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked = Chunk(self.id, self.text, self.embedding, self.metadata)
        for words in (self.id, self.text):
            _check_text(words, f"chunk {self.id!r}")
        self.embedding = as_float32(checked.embedding, f"embedding of chunk {self.id!r}")
        check_metadata(self.metadata, self.id)
        self.vectors = {name: self._vector(name, vector) for name, vector in self.vectors.items()}
        _check_types(self.id, "sparse vector", self.sparse, SparseVector)
        _check_types(self.id, "blob", self.blobs, bytes)

    def _vector(self, name: str, vector: FloatArray) -> FloatArray:
        named = f"vector {name!r} of chunk {self.id!r}"
        return as_float32(check_vector(vector, name=named, one_row=False), named)

    @property
    def chunk(self) -> Chunk:
        """The record as a :class:`~dartboard.types.Chunk`."""
        return Chunk.trusted(self.id, self.text, self.embedding, self.metadata)


def with_fingerprints(records: Iterable[Record]) -> list[Record]:
    """Add the fingerprints of the texts, so that near-duplicates are found without reading texts.

    A fingerprint is stored as a blob. Records without one (from an older version or other code) work as well:
    the fingerprint is then computed from the text.
    """
    return [
        replace(record, blobs={**record.blobs, FINGERPRINT: fingerprint(record.text)}) for record in records
    ]


def _check_types(chunk_id: str, kind: str, fields: Mapping[str, Any], wanted: type) -> None:
    for name, value in fields.items():
        if not isinstance(value, wanted):
            raise InvalidInputError(
                f"chunk {chunk_id!r}: {kind} {name!r} must be {wanted.__name__}, got {type(value).__name__}"
            )


def check_metadata(metadata: Mapping[str, Any], chunk_id: str) -> None:
    """Check that metadata is JSON: names, text, true and false, finite numbers, lists and objects."""
    if not isinstance(metadata, dict):
        raise InvalidInputError(
            f"metadata of chunk {chunk_id!r} must be a dict, got {type(metadata).__name__}"
        )
    _check_json(metadata, f"metadata of chunk {chunk_id!r}", depth=0)


def _check_json(value: Any, where: str, depth: int) -> None:
    if depth > 16:
        raise InvalidInputError(f"{where} is nested more than 16 deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str) or not key:
                raise InvalidInputError(f"{where}: names must be non-empty strings, got {key!r}")
            _check_text(key, where)
            _check_json(inner, f"{where}, {key!r}", depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _check_json(inner, where, depth + 1)
    elif isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST_INTEGER:
            raise InvalidInputError(f"{where}: integers must lie within ±2**53; keep larger ones as text")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"{where}: numbers must be finite, got {value}")
    elif value is not None and not isinstance(value, bool):
        raise InvalidInputError(
            f"{where}: {type(value).__name__} is not JSON: use text, numbers, lists, dicts"
        )


def _check_text(text: str, where: str) -> None:
    """Check that every store can keep the text: no U+0000 and no lone surrogate."""
    if "\x00" in text:
        raise InvalidInputError(f"{where}: text must not contain the character U+0000")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"{where}: text is not valid Unicode ({error.reason})") from error
