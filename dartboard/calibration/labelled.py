"""Queries whose passages are known, as vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.selection.kernels import unit_rows
from dartboard.types import Dataset, FloatArray, IntArray, check_matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Queries with what they mean, by vectors: the corpus ``(N, d)``, the queries ``(m, d)``.

    ``targets`` are the names of each query's passages, and ``names`` the name of each row of the corpus;
    near-copies bear the name of their original, so that any of them counts. ``texts`` are those of the rows,
    where selection may read them. ``facets`` are, for each query, its facets, each given by the names of the
    passages that cover it; a query without facets has one, its targets.
    """

    corpus: FloatArray
    queries: FloatArray
    names: Sequence[str]
    targets: Sequence[Sequence[str]]
    texts: Sequence[str] | None = None
    facets: Sequence[Sequence[Sequence[str]]] | None = None

    def __post_init__(self) -> None:
        dim = check_matrix(self.corpus, name="corpus").shape[1]
        check_matrix(self.queries, name="queries", dim=dim)
        if len(self.names) != len(self.corpus) or len(self.targets) != len(self.queries):
            raise InvalidInputError(
                f"{len(self.names)} names for {len(self.corpus)} passages, "
                f"{len(self.targets)} target lists for {len(self.queries)} queries: need one each"
            )
        if self.facets is not None and len(self.facets) != len(self.queries):
            raise InvalidInputError(
                f"facets of {len(self.facets)} queries for {len(self.queries)} queries: need one list each"
            )
        for name in ("corpus", "queries"):
            object.__setattr__(self, name, unit_rows(getattr(self, name)))

    @property
    def has_shared_facets(self) -> bool:
        """Whether several passages cover the same facet, so that one of them is enough."""
        return any(len(set(names)) > 1 for facets in self.facets or () for names in facets)

    def nearest(self, query: int, count: int) -> IntArray:
        """Rows of the corpus nearest to a query by cosine, nearest first."""
        cosine = self.corpus @ self.queries[query]
        count = min(count, len(cosine))
        near = np.argpartition(-cosine, count - 1)[:count]
        return near[np.lexsort((near, -cosine[near]))]


def labelled_by(dataset: Dataset) -> Labelled:
    """The pairs of a data set: each query with its kernel where it has one, else with all that is relevant.

    Query vectors are those in ``metadata["query_embeddings"]``, facets those in ``metadata["facets"]``.
    """
    vectors = dataset.metadata.get("query_embeddings")
    if vectors is None:
        raise InvalidInputError(f"data set {dataset.name!r} has no query vectors: prepare it with a model")
    if not dataset.queries:
        raise InvalidInputError(
            f"data set {dataset.name!r} has no judged query: there is nothing to fit σ on"
        )
    kernels = dataset.metadata.get("kernels", {})
    names = [str(chunk.metadata.get("base_id", chunk.id)) for chunk in dataset.chunks]
    name_of = dict(zip((chunk.id for chunk in dataset.chunks), names, strict=True))
    targets = [
        sorted(
            {
                name_of[chunk_id]
                for chunk_id in kernels.get(query_id) or dataset.ground_truth.get(query_id, [])
            }
        )
        for query_id in dataset.query_ids
    ]
    known = dataset.metadata.get("facets") or {}
    facets = [
        [sorted({name_of.get(one, one) for one in ids}) for ids in known.get(query_id, {}).values() if ids]
        or [wanted]
        for query_id, wanted in zip(dataset.query_ids, targets, strict=True)
    ]
    return Labelled(
        corpus=np.stack([chunk.embedding for chunk in dataset.chunks]),
        queries=np.asarray(vectors),
        names=names,
        targets=targets,
        texts=[chunk.text for chunk in dataset.chunks] if dataset.worded else None,
        facets=facets if known else None,
    )
