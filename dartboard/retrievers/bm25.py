"""Lexical retrieval by the collection's own text search: BM25 (Robertson & Zaragoza, 2009).

    score(q, p) = Σ_t IDF(t) · f(t, p) (k1 + 1) / (f(t, p) + k1 (1 - b + b |p| / avgdl))

k1, b, stemming and stop words belong to the collection, since its index is built with them:
``manifest.settings["lexical"]``. A server that splits texts in its own way (PostgreSQL, Milvus) answers with
its own BM25; only the order and the scale differ.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import Query, check_query
from dartboard.retrievers.ranking import RankingRetriever, one_record
from dartboard.stores import Collection, Filter

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel

DEEP = 1000
"""How far down its ranking a store is asked where it cannot explain a score."""


class BM25Retriever(RankingRetriever):
    """Best by words.

    Args:
        model: the collection's embedding model. With it, candidates come with the query's vector, which
            Dartboard needs.
        name: labels its shares in a fusion.
    """

    def __init__(self, model: "EmbeddingModel | None" = None, *, name: str = "bm25") -> None:
        super().__init__(name, model)

    def rank(
        self, collection: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The store's text search; a list shorter than ``k`` has every passage that shares a word."""
        hits = collection.search_text(query.text, k, where=where)
        return Candidates.from_hits(hits, floor=hits[-1].score if len(hits) >= k else 0.0)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """What each term adds, where the store can say; the score alone otherwise."""
        check_query(query)
        one_record(collection, chunk_id)
        by_term = getattr(collection, "explain_text", None)
        if by_term is not None:
            terms = [dict(term) for term in by_term(query, chunk_id)]
            return {"score": float(sum(term["score"] for term in terms)), "terms": terms}
        hits = collection.search_text(query, DEEP)
        score = next((hit.score for hit in hits if hit.id == chunk_id), None)
        return {"score": score} if score is not None else {"score": None, "beyond_rank": DEEP}
