"""Documents in memory that can be searched by words, by meaning, and for what together says most.

Indexes are made when they are first needed. Vectors come from the model through its cache on disk, so a
corpus is encoded once. Equal scores go by name: the same corpus gives the same answers.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from threading import RLock

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError, InvalidInputError
from dartboard.lexical import BM25Index
from dartboard.mining.documents import Document
from dartboard.selection import from_embeddings
from dartboard.selection.dartboard import Dartboard
from dartboard.selection.kernels import unit_rows
from dartboard.selection.limits import Limits
from dartboard.types import FloatArray

TRIAGE = 100
"""From so many nearest documents Dartboard selects."""


class SearchingCorpus:
    """Documents by rising name; ``model`` is the default model unless given, loaded when it is needed.

    ``spec`` is how the corpus was named to :func:`~dartboard.mining.corpora.open_corpus`, if it was.
    """

    spec: str | None = None

    def __init__(
        self, name: str, documents: Iterable[Document], *, model: EmbeddingModel | None = None
    ) -> None:
        self._name = name
        self._documents = sorted(documents, key=lambda document: document.fqn)
        self._by_name = {document.fqn: document for document in self._documents}
        if len(self._by_name) < len(self._documents):
            raise DatasetError(
                f"corpus {name!r} has two documents of one name: {_repeated(self._documents)!r}"
            )
        if not self._documents:
            raise DatasetError(f"corpus {name!r} has no documents")
        self._given_model = model
        self._lock = RLock()

    @property
    def name(self) -> str:
        """What people call it."""
        return self._name

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a name or a text does."""
        return fingerprint_of(self._documents)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def get(self, fqn: str) -> Document | None:
        """The document of that name."""
        return self._by_name.get(fqn)

    def lexical(self, query: str, k: int) -> list[Document]:
        """The best by BM25; documents that share no word with the query are not among them."""
        check_search(query, k)
        with self._lock:
            rows, _ = self._words.top(query, k)
        return [self._documents[row] for row in rows]

    def dense(self, query: str, k: int) -> list[Document]:
        """The nearest by the embedding model."""
        check_search(query, k)
        return [self._documents[row] for row in nearest(self.vectors, self.model.encode_query(query), k)]

    def dartboard(self, query: str, k: int) -> list[Document]:
        """What Dartboard selects from the nearest, in the order of selection."""
        check_search(query, k)
        asked = self.model.encode_query(query)
        near = nearest(self.vectors, asked, max(TRIAGE, k))
        picks = select_together(asked, self.vectors[near], k, self.model.sigma)
        return [self._documents[near[pick]] for pick in picks]

    @cached_property
    def model(self) -> EmbeddingModel:
        """Who makes the vectors; the default model remembers them on disk."""
        if self._given_model is not None:
            return self._given_model
        from dartboard.embeddings import CachedModel, default_model

        return CachedModel(default_model())

    @property
    def vectors(self) -> FloatArray:
        """The documents' vectors, ``(n, d)``, of unit length."""
        with self._lock:
            return self._vectors

    @cached_property
    def _vectors(self) -> FloatArray:
        return unit_rows(self.model.encode_documents([document.text for document in self._documents]))

    @cached_property
    def _words(self) -> BM25Index:
        return BM25Index.build(document.text for document in self._documents)


def nearest(vectors: FloatArray, asked: FloatArray, k: int) -> list[int]:
    """Rows of the k largest cosines, equal ones by lower row; ``vectors`` are of unit length."""
    # Not a matrix product: BLAS rounds a row by where it stands, and equal texts must come out equal.
    similarity = np.einsum("ij,j->i", vectors, unit_rows(asked[None])[0])
    order: list[int] = np.argsort(-similarity, kind="stable")[:k].tolist()
    return order


def select_together(asked: FloatArray, vectors: FloatArray, k: int, model_sigma: float | None) -> list[int]:
    """Rows that Dartboard picks, in its order."""
    pool = from_embeddings(asked, vectors, model_sigma=model_sigma)
    picks: list[int] = Dartboard().select(pool, Limits(k=min(k, len(vectors)))).indices.tolist()
    return picks


def fingerprint_of(documents: Iterable[Document]) -> str:
    """sha256 over names and texts in the given order, cut to 32 digits."""
    digest = hashlib.sha256()
    for document in documents:
        for part in (document.fqn, document.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


def check_search(query: str, k: int) -> None:
    """A question that can be searched for, and a number that can be found."""
    if not query.strip():
        raise InvalidInputError("query is empty: ask something")
    if k < 1:
        raise InvalidInputError(f"k must be >= 1, got {k}")


def _repeated(documents: list[Document]) -> str:
    names = [document.fqn for document in documents]
    return next(name for name, after in pairwise(names) if name == after)
