"""Several named vectors per passage (its code, its comments, its prose), each with a weight.

    score(q, p) = Σ_a w_a · cos(E_a(q), E_a(a-part of p)) / Σ_a w_a

A missing part has a cosine of 0, neither close nor far. The candidates are the nearest by any part; each is
scored exactly on every part, from the vectors in its blob. If the cosines of parts vary differently, they can
be normalised per query before the sum (``minmax``, ``zscore``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, StoreFormatError
from dartboard.retrievers.base import Fields, Retriever, best, cosines, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.hybrid import check_normalisation, weighted_sum
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter, Record, VectorField
from dartboard.types import FloatArray

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel

Extractor = Callable[[Record], str | None]
Scores = npt.NDArray[np.float64]

DEPTH = 100

_COMMENT = re.compile(
    r"""
      "{3}(?P<double>.*?)"{3}            # Python docstrings
    | '{3}(?P<single>.*?)'{3}
    | /\*+(?P<block>.*?)\*/              # C and similar languages
    | <!--(?P<markup>.*?)-->
    | (?:^|(?<=\s))(?:\#(?!\!|include|define)|//|--)(?P<line>[^\n]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_FENCE = re.compile(r"^(?:```|~~~)[^\n]*\n(?P<code>.*?)^(?:```|~~~)[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """The text for one of a record's vectors; None or "" if the record has none.

    ``model`` encodes it; by default the retriever's model.
    """

    extract: Extractor
    weight: float = 1.0
    model: "EmbeddingModel | None" = None


class MultiVectorRetriever(Retriever):
    """Retrieval with several vectors per passage.

    Args:
        model: The collection's embedding model.
        parts: By name of the collection's field: which text of a record is encoded, and its weight.
        normalise: ``minmax`` or ``zscore`` if the cosines of one part vary more than those of another.
        depth: How many of the nearest by each part are scored; at least ``k``.
        name: The key of its shares, and the name of its blob.

    Example:
        >>> MultiVectorRetriever(model, {"code": Part(code, 1.0), "comments": Part(comments, 2.0)})
    """

    # Part vectors are also in the record's blob, because stores do not return further vectors with a record.

    def __init__(
        self,
        model: "EmbeddingModel",
        parts: Mapping[str, Part | tuple[Extractor, float]],
        *,
        normalise: str = "none",
        depth: int = DEPTH,
        name: str = "multi-vector",
    ) -> None:
        super().__init__(name, model)
        if not parts:
            raise ConfigError("a multi-vector retriever needs one part or more: name → Part(extract, weight)")
        self.parts = {label: part if isinstance(part, Part) else Part(*part) for label, part in parts.items()}
        weights = [part.weight for part in self.parts.values()]
        if not all(0 <= weight < float("inf") for weight in weights) or sum(weights) == 0:
            raise ConfigError(f"weights must be finite numbers >= 0, not all 0, got {weights}")
        if depth < 1:
            raise ConfigError(f"depth must be >= 1, got {depth}")
        self.weights = np.array(weights, dtype=np.float64) / sum(weights)
        self.normalise = check_normalisation(normalise)
        self.depth = depth

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parts and their models; weights may differ between searches."""
        return {"parts": {label: self._encoder(label).fingerprint for label in self.parts}}

    @property
    def spelt(self) -> str:
        """The registry name with parts and weights, for searching; if that is impossible, the plain name."""
        plain = all(part.model is None and not {*",="} & {*label} for label, part in self.parts.items())
        if not plain or self.normalise != "none" or self.name != "multi-vector":
            return self.name
        return "multi-vector:" + ",".join(f"{label}={part.weight:g}" for label, part in self.parts.items())

    def fields(self) -> Fields:
        """One vector per part, and the blob with all of them."""
        dimensions = {label: self._encoder(label).embedding_dim for label in self.parts}
        vectors = {label: VectorField(dimension=dimension) for label, dimension in dimensions.items()}
        return Fields(vectors=vectors, blobs=(self.name,))

    def index(self, records: Sequence[Record]) -> list[Record]:
        """Add the vectors of the parts to the records."""
        made: list[dict[str, FloatArray]] = [{} for _ in records]
        for label, part in self.parts.items():
            texts = {at: text for at, record in enumerate(records) if (text := part.extract(record))}
            present = {at: text for at, text in texts.items() if text.strip()}
            vectors = self._encoder(label).encode_documents(list(present.values()))
            for at, vector in zip(present, vectors, strict=True):
                made[at][label] = vector
        return [self._filled(record, vectors) for record, vectors in zip(records, made, strict=True)]

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The nearest by any part, scored on all."""
        depth = max(k, self.depth)
        lists = {
            label: view.search_vector(self._asked(label, query), depth, where=where, field=label)
            for label in self.parts
        }
        ids = sorted({hit.id for hits in lists.values() for hit in hits})
        records = view.get(ids, blobs=(self.name,))
        total = weighted_sum(self._cosines(query, records), self.weights, self.normalise)
        ranked = best([record.id for record in records], total, k, float(total.min()) if total.size else 0.0)
        return ranked._replace(members={label: Ranked.of(near) for label, near in lists.items()})

    def scores(
        self, view: Collection, query: Query, ids: Sequence[str], vectors: FloatArray
    ) -> FloatArray | None:
        """The weighted sum of cosines; None if they are normalised over the candidates of a query."""
        if self.normalise != "none":
            return None
        records = view.get(ids, blobs=(self.name,))
        made = weighted_sum(self._cosines(query, records), self.weights, self.normalise).tolist()
        found = dict(zip([record.id for record in records], made, strict=True))
        return np.array([found.get(id, 0.0) for id in ids], dtype=np.float64)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Each part's cosine and weight, and which parts the passage lacks."""
        record = one_record(collection, chunk_id, blobs=(self.name,))
        there = self._unpacked(record)
        by_part = self._cosines(Query(query), [record])[:, 0]
        parts = {
            label: {"cosine": float(cosine) if label in there else None, "weight": float(weight)}
            for label, cosine, weight in zip(self.parts, by_part, self.weights, strict=True)
        }
        return {"score": float(self.weights @ by_part), "parts": parts}

    def _encoder(self, label: str) -> "EmbeddingModel":
        return self.parts[label].model or self._model

    def _asked(self, label: str, query: Query) -> FloatArray:
        return query.vector(self._encoder(label))

    def _cosines(self, query: Query, records: Sequence[Record]) -> Scores:
        """``(parts, n)``; 0 if a record lacks a part."""
        found = np.zeros((len(self.parts), len(records)))
        unpacked = [self._unpacked(record) for record in records]
        for row, label in enumerate(self.parts):
            present = [at for at, vectors in enumerate(unpacked) if label in vectors]
            if present:
                vectors = np.stack([unpacked[at][label] for at in present])
                found[row, present] = cosines(self._asked(label, query), vectors)
        return found

    def _filled(self, record: Record, vectors: Mapping[str, FloatArray]) -> Record:
        """The blob: one byte per part (present or not), then the present vectors as float32."""
        there = bytes(label in vectors for label in self.parts)
        packed = b"".join(vectors[label].astype("<f4").tobytes() for label in self.parts if label in vectors)
        return replace(
            record,
            vectors={**record.vectors, **vectors},
            blobs={**record.blobs, self.name: there + packed},
        )

    def _unpacked(self, record: Record) -> dict[str, FloatArray]:
        data = record.blobs.get(self.name)
        labels = list(self.parts)
        present = [] if data is None else [name for name, on in zip(labels, data, strict=False) if on]
        sizes = [self._encoder(label).embedding_dim for label in present]
        if data is None or len(data) != len(labels) + 4 * sum(sizes):
            raise StoreFormatError(
                f"chunk {record.id!r} has no part vectors {self.name!r} of these parts: index the documents "
                "again with this retriever"
            )
        numbers = np.frombuffer(data, "<f4", offset=len(labels))
        return dict(zip(present, np.split(numbers, np.cumsum(sizes)[:-1]), strict=True))


def whole_text(record: Record) -> str:
    """The unchanged text."""
    return record.text


def comments(record: Record) -> str:
    """The comments and docstrings of source code, without their markers."""
    found = (next(filter(None, match.groups()), "") for match in _COMMENT.finditer(record.text))
    return "\n".join(line for text in found if (line := text.strip()))


def code(record: Record) -> str:
    """Source code without comments and docstrings; for Markdown with fenced code, only that code."""
    if fenced := [match["code"] for match in _FENCE.finditer(record.text)]:
        return "\n".join(fenced).strip()
    bare = _COMMENT.sub("", record.text)
    return "\n".join(line.rstrip() for line in bare.splitlines() if line.strip())


def prose(record: Record) -> str:
    """Markdown without its fenced code."""
    return _FENCE.sub("", record.text).strip()


def not_by_name(record: Record) -> str | None:
    """Placeholder for the extractors of a retriever opened by name: they are code and are not stored."""
    raise ConfigError(
        "a multi-vector retriever that was opened by name can search, but not index, because the extractors "
        "of its parts are code. Pass retriever=MultiVectorRetriever(model, {…}) with the extractors"
    )


def metadata_field(name: str) -> Callable[[Record], str | None]:
    """An extractor of the metadata field of that name, if it is text."""

    def extract(record: Record) -> str | None:
        value = record.metadata.get(name)
        return value if isinstance(value, str) else None

    return extract
