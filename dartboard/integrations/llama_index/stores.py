"""The vectors that the vector store of a LlamaIndex index has, by the ids of nodes."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.vector_stores import SimpleVectorStore

from dartboard.errors import ConfigError


def store_of(index: Any) -> Any:
    """The vector store of an index."""
    store = getattr(index, "vector_store", None)
    if store is None:
        raise ConfigError(
            f"index must be a LlamaIndex VectorStoreIndex, or another index with a vector store, got "
            f"{type(index).__name__}"
        )
    return store


def model_of(index: Any) -> Any:
    """The embedding that made the index's vectors."""
    model = getattr(index, "_embed_model", None)
    if model is None:
        raise ConfigError(
            f"the {type(index).__name__} does not say which model made its vectors: say it with embed_model, "
            "so that the query is embedded alike"
        )
    return model


def read_vectors(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    """Id → vector, of those that the store has and can return.

    LlamaIndex's own default store keeps vectors alone; others may give them with their nodes.
    """
    if isinstance(store, SimpleVectorStore):
        kept = store.data.embedding_dict
        return {id: kept[id] for id in ids if id in kept}
    try:
        nodes = store.get_nodes(node_ids=list(ids))
    except (AttributeError, NotImplementedError):
        return {}
    return {node.node_id: node.embedding for node in nodes if node.embedding is not None}
