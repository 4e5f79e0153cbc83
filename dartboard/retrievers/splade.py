"""Learned sparse retrieval: a masked language model weights the terms of a vocabulary (Formal et al., 2021).

    w_t(x) = max over tokens i of x of log(1 + relu(logit_i,t))        score(q, p) = Σ_t w_t(q) · w_t(p)

Texts can match on terms that they do not contain, and an inverted index searches them as for BM25.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.retrievers.base import Fields, Retriever, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter, Record, SparseVector

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel
    from dartboard.embeddings.torch_models import SparseModel


class SpladeRetriever(Retriever):
    """Retrieval by the dot product of sparse vectors.

    Args:
        encoder: Makes the sparse vectors of texts and queries.
        model: The collection's embedding model, for the query's vector.
        batch_size: How many texts are encoded at once.
        name: The key of its shares, and the collection's field of sparse vectors.
    """

    def __init__(
        self,
        encoder: "SparseModel",
        *,
        model: "EmbeddingModel | None" = None,
        batch_size: int = 16,
        name: str = "splade",
    ) -> None:
        super().__init__(name, model)
        self._encoder = encoder
        self._batch_size = batch_size

    @property
    def settings(self) -> Mapping[str, Any]:
        """The encoder's fingerprint."""
        return {"encoder": self._encoder.fingerprint}

    def fields(self) -> Fields:
        """One sparse vector per record."""
        return Fields(sparse=(self.name,))

    def index(self, records: Sequence[Record]) -> list[Record]:
        """Add the sparse vectors of the texts to the records."""
        made = self._encoder.encode_documents(
            [record.text for record in records], batch_size=self._batch_size
        )
        return [
            replace(record, sparse={**record.sparse, self.name: SparseVector(weights.terms, weights.weights)})
            for record, weights in zip(records, made, strict=True)
        ]

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The store's sparse search; fewer than ``k`` hits means that no other passage shares a term."""
        asked = self._asked(query)
        if not asked.terms.size:
            return Ranked.of([])
        hits = view.search_sparse(asked, k, field=self.name, where=where)
        return Ranked.of(hits, floor=hits[-1].score if len(hits) >= k else 0.0)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The shared terms, with both weights and their product, heaviest first.

        Stores do not return single sparse vectors, so the passage is encoded again.
        """
        asked = self._asked(Query(query))
        (found,) = self._encoder.encode_documents([one_record(collection, chunk_id).text])
        shared, at_query, at_passage = np.intersect1d(
            asked.terms, found.terms, assume_unique=True, return_indices=True
        )
        products = asked.weights[at_query] * found.weights[at_passage]
        order = np.lexsort((shared, -products))
        terms = [
            {
                "term": self._encoder.term(int(shared[at])),
                "query": float(asked.weights[at_query[at]]),
                "passage": float(found.weights[at_passage[at]]),
                "score": float(products[at]),
            }
            for at in order
        ]
        return {"score": float(products.sum()), "terms": terms}

    def _asked(self, query: Query) -> SparseVector:
        made = query.once("sparse", self._encoder, lambda: self._encoder.encode_query(query.text))
        return SparseVector(made.terms, made.weights)
