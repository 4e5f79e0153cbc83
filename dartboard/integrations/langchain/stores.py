"""The vectors that LangChain's vector stores have, by the ids of documents.

LangChain has no method for that, so each kind of store has its own way. A store of another kind gives none.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from dartboard.errors import ConfigError


def store_of(given: Any) -> VectorStore:
    """The vector store itself, or the one behind a retriever."""
    store = getattr(given, "vectorstore", given)
    if not isinstance(store, VectorStore):
        raise ConfigError(
            f"vectorstore must be a LangChain VectorStore or the retriever of one, got {type(given).__name__}"
        )
    return store


def model_of(store: VectorStore) -> Any:
    """The embeddings that made the store's vectors."""
    if store.embeddings is None:
        raise ConfigError(
            f"the {type(store).__name__} does not say which model made its vectors: say it with embeddings, "
            "so that the query is embedded alike"
        )
    return store.embeddings


def read_vectors(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    """Id → vector, of those that the store has and can return."""
    if isinstance(store, InMemoryVectorStore):
        return {id: store.store[id]["vector"] for id in ids if id in store.store}
    if hasattr(store, "index_to_docstore_id"):
        return _from_faiss(store, ids)
    if any(kind.__name__ == "Chroma" for kind in type(store).__mro__):
        found = store.get(ids=list(ids), include=["embeddings"])
        return dict(zip(found["ids"], found["embeddings"], strict=True))
    return {}


def _from_faiss(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    wanted = set(ids)
    rows = {id: row for row, id in store.index_to_docstore_id.items() if id in wanted}
    try:
        return {id: store.index.reconstruct(row) for id, row in rows.items()}
    except RuntimeError:  # some kinds of FAISS index do not keep the vectors
        return {}
