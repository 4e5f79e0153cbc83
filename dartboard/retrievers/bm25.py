"""Lexical retrieval with the collection's text search: BM25 (Robertson & Zaragoza, 2009).

    score(q, p) = Σ_t IDF(t) · f(t, p) (k1 + 1) / (f(t, p) + k1 (1 - b + b |p| / avgdl))

k1, b, stemming and stop words are settings of the collection, because its index depends on them
(``manifest.settings["lexical"]``). PostgreSQL and Milvus analyse texts themselves and use their own BM25;
order and scale of their scores differ.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dartboard.retrievers.base import Retriever, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.query import Query, check_query
from dartboard.stores import Collection, Filter

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel

DEEP = 1000
"""How many hits are requested from a store that cannot explain a score."""


class BM25Retriever(Retriever):
    """Retrieval by BM25.

    Args:
        model: The collection's embedding model. With it, candidates come with the query's vector, which
            Dartboard needs.
        name: The key of its shares in a fusion.
    """

    def __init__(self, model: "EmbeddingModel | None" = None, *, name: str = "bm25") -> None:
        super().__init__(name, model)

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The store's text search; fewer than ``k`` hits means that no other passage shares a word."""
        hits = view.search_text(query.text, k, where=where)
        return Ranked.of(hits, floor=hits[-1].score if len(hits) >= k else 0.0)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The contribution of each term, if the store supports it; otherwise the score alone."""
        check_query(query)
        one_record(collection, chunk_id)
        terms = [dict(term) for term in collection.explain_text(query, chunk_id)]
        if terms:
            return {"score": float(sum(term["score"] for term in terms)), "terms": terms}
        hits = collection.search_text(query, DEEP)
        score = next((hit.score for hit in hits if hit.id == chunk_id), None)
        return {"score": score} if score is not None else {"score": None, "beyond_rank": DEEP}
