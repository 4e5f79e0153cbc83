"""Bi-encoder retrieval: one vector per passage and one for the query (Karpukhin et al., 2020).

    score(q, p) = cos(E_q(q), E_p(p))

E_q and E_p may be one model or, as in DPR, two of the same dimension. The passages' vectors are the
collection's embeddings, so nothing else is indexed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import ConfigError
from dartboard.retrievers.base import Retriever, cosines, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter
from dartboard.types import FloatArray

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel


class DenseRetriever(Retriever):
    """Retrieval of the nearest embeddings.

    Args:
        model: The collection's embedding model.
        query_model: A separate query encoder (DPR).
        exact: Compare every passage, even if the store has an index.
        name: The key of its shares in a fusion.

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
                f"the query encoder {query_model.name!r} has {query_model.embedding_dim} dimensions, the "
                f"passage encoder {model.name!r} {model.embedding_dim}: use a pair that was trained together"
            )
        super().__init__(name, query_model or model)
        self._exact = exact

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The nearest embeddings."""
        vector = query.vector(self._model)
        return Ranked.of(view.search_vector(vector, k, where=where, exact=self._exact))

    def scores(self, view: Collection, query: Query, ids: Sequence[str], vectors: FloatArray) -> FloatArray:
        """Cosines with the chunks' embeddings."""
        return cosines(query.vector(self._model), vectors) if len(ids) else np.empty(0)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The cosine, and the models whose vectors it compares."""
        embedding = one_record(collection, chunk_id).embedding
        (cosine,) = cosines(Query(query).vector(self._model), embedding[None])
        return {"score": float(cosine), "similarity": "cosine", "query_model": self._model.name}
