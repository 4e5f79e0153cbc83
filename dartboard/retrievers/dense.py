"""Bi-encoder retrieval: a vector for each passage and one for the query (Karpukhin et al., 2020).

    score(q, p) = cos(E_q(q), E_p(p))

E_q and E_p may be one model or two of the same dimension, as in DPR. The passages' vectors are the
collection's embeddings, so there is nothing to index beside them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import ConfigError
from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import Query
from dartboard.retrievers.ranking import RankingRetriever, cosines, one_record
from dartboard.stores import Collection, Filter
from dartboard.types import FloatArray

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel


class DenseRetriever(RankingRetriever):
    """Nearest by the embedding.

    Args:
        model: the collection's embedding model.
        query_model: the question encoder, where passages have one of their own (DPR).
        exact: compare every passage, whatever index the store has.
        name: labels its shares in a fusion.

    Example:
        >>> DenseRetriever(default_model()).retrieve(collection, "How are keys rotated?", 10).ids
    """

    ranks_by_distance = True

    def __init__(
        self,
        model: "EmbeddingModel",
        *,
        query_model: "EmbeddingModel | None" = None,
        exact: bool = False,
        name: str = "dense",
    ) -> None:
        if query_model is not None and query_model.embedding_dim != model.embedding_dim:
            raise ConfigError(
                f"the query encoder {query_model.name!r} makes {query_model.embedding_dim} dimensions, the "
                f"passage encoder {model.name!r} {model.embedding_dim}: take a pair trained together"
            )
        super().__init__(name, query_model or model)
        self._exact = exact

    def rank(
        self, collection: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The nearest embeddings."""
        vector = query.vector(self._model)
        return Candidates.from_hits(collection.search_vector(vector, k, where=where, exact=self._exact))

    def scores(self, collection: Collection, query: Query, candidates: Candidates) -> FloatArray:
        """Cosines with the candidates' own embeddings."""
        return cosines(query.vector(self._model), candidates.vectors) if len(candidates) else np.empty(0)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The cosine, and whose vectors it compares."""
        embedding = one_record(collection, chunk_id).embedding
        (cosine,) = cosines(Query(query).vector(self._model), embedding[None])
        return {"score": float(cosine), "similarity": "cosine", "query_model": self._model.name}
