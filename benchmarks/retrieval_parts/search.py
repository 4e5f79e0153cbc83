"""A whole search over 100k chunks, but for the model: find 100, fetch them, choose 5, hand them over."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, questions, say, timed

from dartboard.embeddings import EmbeddingModel
from dartboard.engine import Engine
from dartboard.stores import Manifest, Record, open_store

TRIAGE, K = 100, 5
VOCABULARY = 30_000
WORDS_A_PASSAGE = 60


class Given(EmbeddingModel):
    """A model that costs nothing: the text of a query is its number, its vector is given."""

    fingerprint = "given"

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors

    def encode(self, texts: Any, batch_size: int = 32) -> np.ndarray:
        listed = [texts] if isinstance(texts, str) else texts
        return self._vectors[[int(text.split()[0]) for text in listed]]

    @property
    def embedding_dim(self) -> int:
        return DIM


def measure(*, quick: bool) -> dict[str, Any]:
    count, asked = (10_000, 50) if quick else (100_000, 200)
    vectors = np.concatenate(list(passages(count)))
    queries = questions(asked)
    texts = made_up_texts(count)
    found: dict[str, Any] = {"chunks": count, "triage": TRIAGE, "k": K, "systems": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "search.dartboard")
        stored(path, vectors, texts)
        for name, system in (
            ("dartboard, dense", lambda *given: ours(path, queries, retriever="dense")),
            ("dartboard, hybrid", lambda *given: ours(path, queries, retriever="hybrid")),
            ("LangChain, FAISS and MMR", langchain),
            ("LlamaIndex, FAISS and MMR", llama_index),
        ):
            say(name)
            try:
                result = system(vectors, texts, queries)
            except ImportError as error:
                found["systems"][name] = {"missing": str(error)}
                continue
            result.pop("found")
            found["systems"][name] = result
    return found


def made_up_texts(count: int) -> list[str]:
    """Made-up words, as often as words are: the n-th commonest n times as rare as the commonest."""
    rng = np.random.default_rng(3)
    shares = 1 / np.arange(1, VOCABULARY + 1)
    drawn = rng.choice(VOCABULARY, (count, WORDS_A_PASSAGE), p=shares / shares.sum())
    return [" ".join(f"w{word}" for word in row) for row in drawn.tolist()]


def _asked(count: int) -> list[str]:
    """Queries of four words that are neither the commonest nor the rarest, after their number."""
    rng = np.random.default_rng(4)
    drawn = np.exp(rng.uniform(np.log(50), np.log(5000), (count, 4))).astype(int)
    return [f"{number} " + " ".join(f"w{word}" for word in row) for number, row in enumerate(drawn.tolist())]


def stored(path: str, vectors: np.ndarray, texts: list[str]) -> None:
    with open_store(path) as store:
        collection = store.create("default", Manifest(model="given", dimension=DIM))
        for start in range(0, len(vectors), 5000):
            rows = range(start, min(start + 5000, len(vectors)))
            collection.upsert(
                [Record(str(row), texts[row], vectors[row], {"source": f"f{row % 100}"}) for row in rows]
            )


def ours(path: str, queries: np.ndarray, *, retriever: str) -> dict[str, Any]:
    with Engine.open(path, read_only=True, model=Given(queries), retriever=retriever) as engine:
        asked = _asked(len(queries))
        parts: dict[str, list[float]] = {}

        def ask(text: str) -> list[str]:
            result = engine.search(text, k=K, triage_k=TRIAGE)
            for name, seconds in result.metadata["seconds"].items():
                parts.setdefault(name, []).append(1000 * seconds)
            return [chunk.text for chunk in result.chunks]

        result = timed(ask, asked)
    return result | {"stages_ms": {name: round(float(np.median(ms)), 3) for name, ms in parts.items()}}


def langchain(vectors: np.ndarray, texts: list[str], queries: np.ndarray) -> dict[str, Any]:
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import DeterministicFakeEmbedding

    pairs = list(zip(texts, vectors.tolist(), strict=True))
    store = FAISS.from_embeddings(pairs, DeterministicFakeEmbedding(size=DIM))

    def ask(query: list[float]) -> list[str]:
        chosen = store.max_marginal_relevance_search_by_vector(query, k=K, fetch_k=TRIAGE)
        return [document.page_content for document in chosen]

    return timed(ask, queries.tolist())


def llama_index(vectors: np.ndarray, texts: list[str], queries: np.ndarray) -> dict[str, Any]:
    import faiss
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores.types import VectorStoreQuery
    from llama_index.vector_stores.faiss import FaissVectorStore

    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(DIM))
    nodes = [
        TextNode(text=text, embedding=vector) for text, vector in zip(texts, vectors.tolist(), strict=True)
    ]
    ids = store.add(nodes)
    by_id = dict(zip(ids, nodes, strict=True))

    def ask(query: list[float]) -> list[str]:
        found = store.query(VectorStoreQuery(query_embedding=query, similarity_top_k=TRIAGE))
        pool = [by_id[id] for id in found.ids or []]
        _, chosen = get_top_k_mmr_embeddings(
            query, [node.embedding for node in pool], similarity_top_k=K, embedding_ids=range(len(pool))
        )
        return [pool[at].text for at in chosen]

    return timed(ask, queries.tolist())
