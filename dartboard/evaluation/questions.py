"""A query for selection systems: its vector and its candidates after triage.

All systems select from the same candidates, the ``triage_k`` nearest chunks by cosine, so that a comparison
measures selection only. Data that several systems share is computed once per query.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Pool, from_embeddings
from dartboard.selection.kernel import Auto
from dartboard.types import Chunk, Dataset, FloatArray, IntArray, check_matrix
from dartboard.utils import unit_rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Question:
    """``candidates`` are sorted nearest first, with ``vectors``, ``(n, d)``, and ``similarity``, ``(n,)``.

    Copies made by noise on vectors have the texts of their originals, which would reveal them: such a
    question is not ``worded``, and selection uses only vectors.
    """

    query_id: str
    text: str
    vector: FloatArray
    candidates: Sequence[Chunk]
    vectors: FloatArray
    similarity: FloatArray
    worded: bool = True
    _pools: dict[float | Auto, Pool] = field(default_factory=dict, repr=False)

    def pool(self, sigma: float | Auto = "auto") -> Pool:
        """The candidates as a pool for selection."""
        if sigma not in self._pools:
            self._pools[sigma] = from_embeddings(self.vector, self.vectors, sigma=sigma, groups=self._groups)
        return self._pools[sigma]

    @cached_property
    def _groups(self) -> IntArray | None:
        texts = [chunk.text for chunk in self.candidates]
        return candidate_groups(self.vectors, texts) if self.worded else None


class Triage:
    """Makes the questions of a data set with vectors."""

    def __init__(self, dataset: Dataset, triage_k: int = 100) -> None:
        if not dataset.chunks:
            raise InvalidInputError(f"data set {dataset.name!r} has no chunks")
        self.dataset = dataset
        self.triage_k = triage_k
        self._vectors = np.stack([chunk.embedding for chunk in dataset.chunks])
        self._units = unit_rows(self._vectors)
        names = np.array([chunk.id for chunk in dataset.chunks])
        self._by_name = np.empty(len(names), dtype=np.intp)
        self._by_name[names.argsort()] = np.arange(len(names))
        self._asked = _query_vectors(dataset, self._vectors.shape[1])
        self._found: dict[str, dict[str, float]] = {}
        self._place = {query_id: place for place, query_id in enumerate(dataset.query_ids)}

    def question(self, query_id: str) -> Question:
        """One query with its candidates; ties by id, so that a run is reproducible."""
        place = self._place[query_id]
        asked = self._asked[place]
        # Not a matrix product: BLAS rounds by position, and copies must have equal similarities.
        similarity = np.einsum("ij,j->i", self._units, unit_rows(asked[None])[0])
        count = min(self.triage_k, len(similarity))
        floor = np.partition(similarity, len(similarity) - count)[len(similarity) - count]
        near = np.flatnonzero(similarity >= floor)
        rows = near[np.lexsort((self._by_name[near], -similarity[near]))][:count]
        ids = (self.dataset.chunks[row].id for row in rows)
        self._found[query_id] = dict(zip(ids, similarity[rows].tolist(), strict=True))
        return Question(
            query_id=query_id,
            text=self.dataset.queries[place],
            vector=asked,
            candidates=[self.dataset.chunks[row] for row in rows],
            vectors=self._vectors[rows],
            similarity=similarity[rows].astype(np.float64),
            worded=self.dataset.worded,
        )

    def candidates(self, query_id: str) -> dict[str, float]:
        """The ids of a query's candidates with their cosine, nearest first."""
        if query_id not in self._found:
            self.question(query_id)
        return self._found[query_id]


def _query_vectors(dataset: Dataset, dim: int) -> FloatArray:
    given = dataset.metadata.get("query_embeddings")
    if given is None:
        raise InvalidInputError(
            f"data set {dataset.name!r} has no metadata['query_embeddings']: load it with dartboard.datasets"
        )
    vectors = check_matrix(given, name="query_embeddings", dim=dim)
    if len(vectors) != len(dataset.queries):
        raise InvalidInputError(
            f"data set {dataset.name!r}: {len(vectors)} query_embeddings for {len(dataset.queries)} queries"
        )
    return vectors
