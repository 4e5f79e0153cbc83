"""Ground truth of a data set: judgements of queries, and vectors and clusters of chunks.

Judgements are grades, facets, required kernels, and which chunks are copies of one another. Near-duplicates
share a *base*. Facets, kernels and the ``distinct_…`` measures use bases: any copy of a base counts, and each
base counts once. A chunk without a base is its own base. The plain measures of relevance use chunk ids, as in
the specification: :attr:`Judgements.plain`.

All judged queries count, even if a run does not answer them; queries without judgements never do. A query
without facets has one facet, its relevant chunks; one without a kernel needs all of its relevant chunks. Each
alternative of a kernel answers the query as well as the kernel.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.types import Dataset, FloatArray, IntArray
from dartboard.utils import unit_rows

Qrels = Mapping[str, Mapping[str, float]]
Facets = Mapping[str, Mapping[Hashable, Sequence[str]]]
Kernels = Mapping[str, Sequence[str]]
Alternatives = Mapping[str, Sequence[Sequence[str]]]

MINIMAL = 1e-9
"""The default level of relevance: any grade above 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Judgements:
    """Judgements by query id.

    Args:
        qrels: For each query, grades of chunk ids; a grade of 0 or below is not relevant.
        facets: For each query, the chunks that cover each of its facets.
        kernels: For each query, the set of chunks that it requires.
        base_of: The base of each copy.
        alternatives: For each query, sets of chunks that answer it as well as its kernel.
        least_grade: The lowest grade that precision, recall, MAP, MRR and the hit rate count as relevant; it
            is 2 in TREC's Deep Learning tracks. nDCG counts every grade.

    Raises:
        InvalidInputError: a query has facets, kernels or alternatives, but no qrels.

    >>> Judgements(qrels={"q": {"a": 2.0, "b": 0.0}}).grades
    [{'a': 2.0}]
    """

    qrels: Qrels
    facets: Facets = field(default_factory=dict)
    kernels: Kernels = field(default_factory=dict)
    base_of: Mapping[str, str] = field(default_factory=dict)
    alternatives: Alternatives = field(default_factory=dict)
    least_grade: float = MINIMAL

    def __post_init__(self) -> None:
        for kind in ("facets", "kernels", "alternatives"):
            if unknown := getattr(self, kind).keys() - self.qrels.keys():
                raise InvalidInputError(
                    f"{kind} for query {min(unknown)!r}, which has no qrels: judge it too"
                )

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The judgements of a data set; without grades, its ground truth is used."""
        known = dataset.metadata
        plain = {query: dict.fromkeys(ids, 1.0) for query, ids in dataset.ground_truth.items()}
        qrels = known.get("qrels") or plain
        bases = {chunk.id: chunk.metadata.get("base_id") for chunk in dataset.chunks}
        names = [chunk_id if base is None else str(base) for chunk_id, base in bases.items()]
        copies = len(set(names)) < len(names)
        kernels = {q: ids for q, ids in known.get("kernels", {}).items() if q in qrels and ids}
        return cls(
            qrels={query: qrels[query] for query in dataset.query_ids if query in qrels},
            facets={q: f for q, f in known.get("facets", {}).items() if q in qrels and f},
            kernels=kernels,
            base_of={one: str(base) for one, base in bases.items() if copies and base is not None},
            alternatives={q: sets for q, sets in known.get("alternatives", {}).items() if q in kernels},
            least_grade=known.get("least_grade", MINIMAL),
        )

    @cached_property
    def grouped(self) -> bool:
        """Whether some chunk is a copy of another."""
        return any(chunk_id != base for chunk_id, base in self.base_of.items())

    @cached_property
    def plain(self) -> Self:
        """The same judgements by chunk ids, without bases."""
        return replace(self, base_of={}) if self.grouped else self

    @cached_property
    def query_ids(self) -> list[str]:
        """The judged queries, in order."""
        return list(self.qrels)

    @cached_property
    def grades(self) -> list[dict[str, float]]:
        """For each query, its relevant bases with the best grade of their copies."""
        graded = []
        for query_id in self.query_ids:
            best: dict[str, float] = {}
            for chunk_id, grade in self.qrels[query_id].items():
                base = self.base_of.get(chunk_id, chunk_id)
                if grade > best.get(base, 0.0):
                    best[base] = float(grade)
            graded.append(best)
        return graded

    @cached_property
    def kernel_bases(self) -> list[frozenset[str]]:
        """For each query, the required bases."""
        return [
            frozenset(self.bases(self.kernels[query_id])) if query_id in self.kernels else relevant
            for query_id, relevant in zip(self.query_ids, self.relevant, strict=True)
        ]

    @cached_property
    def relevant(self) -> list[frozenset[str]]:
        """For each query, the bases whose grade counts as relevant."""
        return [frozenset(b for b, g in grades.items() if g >= self.least_grade) for grades in self.grades]

    @cached_property
    def sufficient(self) -> list[tuple[frozenset[str], ...]]:
        """For each query, the sets of bases that answer it: the kernel, then its alternatives."""
        return [
            (kernel, *(frozenset(self.bases(ids)) for ids in self.alternatives.get(query_id, ())))
            for query_id, kernel in zip(self.query_ids, self.kernel_bases, strict=True)
        ]

    @cached_property
    def set_queries(self) -> IntArray:
        """``(S,)``: the query of each sufficient set, over all queries."""
        return np.repeat(np.arange(len(self.sufficient)), [len(sets) for sets in self.sufficient])

    @cached_property
    def set_sizes(self) -> IntArray:
        """``(S,)``: the number of bases in each sufficient set."""
        return np.array([len(one) for sets in self.sufficient for one in sets], dtype=np.intp)

    @cached_property
    def facets_of(self) -> list[dict[str, tuple[int, ...]]]:
        """For each query, which facets (numbered from 0) each base covers; empty facets are dropped."""
        covering = []
        for query_id, relevant in zip(self.query_ids, self.relevant, strict=True):
            named = [frozenset(self.bases(ids)) for ids in self.facets.get(query_id, {}).values()]
            covers: dict[str, tuple[int, ...]] = {}
            for number, bases in enumerate([b for b in named if b] or [relevant]):
                for base in bases:
                    covers[base] = (*covers.get(base, ()), number)
            covering.append(covers)
        return covering

    @cached_property
    def known(self) -> list[frozenset[str]]:
        """For each query, all bases that any measure could count."""
        if not self.facets and not self.kernels:
            return [frozenset(grades) for grades in self.grades]
        return [
            frozenset().union(*sets, grades, covers)
            for sets, grades, covers in zip(self.sufficient, self.grades, self.facets_of, strict=True)
        ]

    @cached_property
    def relevant_counts(self) -> IntArray:
        """``(Q,)``: the number of relevant bases."""
        return np.array([len(found) for found in self.relevant], dtype=np.intp)

    @cached_property
    def facet_counts(self) -> IntArray:
        """``(Q,)``: the number of non-empty facets."""
        return np.array(
            [len({f for fs in covers.values() for f in fs}) for covers in self.facets_of], dtype=np.intp
        )

    @cached_property
    def ideal(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The best possible lists, flat: query, rank from 0, grade."""
        counts = np.array([len(grades) for grades in self.grades], dtype=np.intp)
        query = np.repeat(np.arange(len(counts)), counts)
        rank = np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        grade = [g for grades in self.grades for g in sorted(grades.values(), reverse=True)]
        return query, rank, np.array(grade, dtype=np.float64)

    def bases(self, chunk_ids: Iterable[str]) -> list[str]:
        """The base of each chunk."""
        return [self.base_of.get(chunk_id, chunk_id) for chunk_id in chunk_ids]


@dataclass(frozen=True, kw_only=True)
class Content:
    """Vectors ``(n, d)`` with each chunk's row, and the clusters of chunks."""

    vectors: FloatArray
    row_of: Mapping[str, int]
    clusters: Mapping[str, Hashable] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The content of a data set."""
        labels = ((chunk.id, chunk.metadata.get("cluster")) for chunk in dataset.chunks)
        return cls(
            vectors=np.stack([chunk.embedding for chunk in dataset.chunks]),
            row_of={chunk.id: row for row, chunk in enumerate(dataset.chunks)},
            clusters={chunk_id: label for chunk_id, label in labels if label is not None},
        )

    def unit_vectors(self, chunk_ids: Sequence[str]) -> FloatArray:
        """``(n, d)`` float64 unit vectors."""
        try:
            rows = [self.row_of[chunk_id] for chunk_id in chunk_ids]
        except KeyError as error:
            raise InvalidInputError(
                f"the run names chunk {error.args[0]!r}, which the data set lacks"
            ) from None
        return unit_rows(self.vectors[rows], np.float64)
