"""Retrievers as systems: dense, BM25, ColBERT, hybrid … over all chunks of a data set.

A retriever searches the whole corpus, as it does for users, and not the candidates that triage leaves. Its
chunks lie in a store in memory, which is filled when the first question is asked.
"""

import threading
from collections.abc import Sequence

from dartboard.datasets.text_dataset import embedded_text
from dartboard.deadline import check
from dartboard.embeddings import EmbeddingModel
from dartboard.evaluation.questions import Question
from dartboard.plugins import names
from dartboard.retrievers import Retriever, retriever_by_name
from dartboard.retrievers.registry import NAMES
from dartboard.stores import Collection, Manifest, Record, open_store
from dartboard.types import Dataset

RETRIEVERS = tuple(sorted(NAMES - {"multi-vector"}))
"""What ``--systems`` takes of our own retrievers; data sets have no parts for a multi-vector one."""

_AT_ONCE = 256
"""Chunks that are indexed at a time: token vectors of a whole corpus would fill the memory."""


def is_retriever(name: str) -> bool:
    """Whether the name is a retriever's, whatever comes after the colon; a selector's name comes first."""
    kind = name.partition(":")[0]
    return kind in RETRIEVERS or (kind in names("retriever") and kind not in names("selector"))


class RetrieverSystem:
    """A retriever by name; ``model`` is the one that embedded the data set."""

    seeds: Sequence[int] = (0,)

    def __init__(self, name: str, dataset: Dataset, model: EmbeddingModel) -> None:
        self.name = name
        self._dataset = dataset
        self._model = model
        self._retriever: Retriever = retriever_by_name(name, model=model)
        self._collection: Collection | None = None
        self._lock = threading.Lock()

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The best k of the corpus."""
        found = self._retriever.retrieve(self._filled(), question.text, k).found
        return [candidate.chunk.id for candidate in found]

    def _filled(self) -> Collection:
        with self._lock:
            if self._collection is None:
                self._collection = self._index()
            return self._collection

    def _index(self) -> Collection:
        needs = self._retriever.fields()
        manifest = Manifest(
            model=self._model.fingerprint,
            dimension=self._model.embedding_dim,
            vectors=needs.vectors,
            sparse=needs.sparse,
            settings={"retrievers": self._retriever.index_settings()},
        )
        collection = open_store("memory://").create("data", manifest)
        chunks = self._dataset.chunks
        for start in range(0, len(chunks), _AT_ONCE):
            check()
            records = [
                Record(one.id, embedded_text(one.text, one.metadata.get("title", "")), one.embedding)
                for one in chunks[start : start + _AT_ONCE]
            ]
            collection.upsert(self._retriever.index(records))
        return collection


def why_not(dataset: Dataset, model: EmbeddingModel) -> str | None:
    """The reason why no retriever can search the data set with this model, if there is one."""
    made_by = dataset.metadata.get("model", {}).get("fingerprint")
    if made_by != model.fingerprint:
        return f"the questions are encoded by {model.name}, and the vectors of this data set are not"
    return None
