"""Corpora in memory: any documents, those of a folder, or the passages of a data set.

They can be searched by words, by meaning, and for what together says most. Indexes are made when they are
first needed. Vectors come from the model through its cache on disk, so a corpus is encoded once. Equal scores
go by name: the same corpus gives the same answers.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from threading import RLock

import numpy as np

from dartboard.datasets.catalogue import entry_at, load_text
from dartboard.datasets.text_dataset import TextDataset, embedded_text
from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError, InvalidInputError
from dartboard.ingest import ChunkingConfig, Problem, chunk, read_path
from dartboard.ingest import Document as Read
from dartboard.lexical import BM25Index
from dartboard.mining.corpora.base import Document
from dartboard.selection import from_embeddings
from dartboard.selection.greedy import Dartboard
from dartboard.selection.limits import Limits
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

TRIAGE = 100
"""From so many nearest documents Dartboard selects."""


class MemoryCorpus:
    """Documents by rising name.

    Args:
        name: what people call it.
        documents: each under a name of its own.
        model: makes the vectors; the default model unless given, loaded when it is needed.

    Raises:
        DatasetError: two documents of one name, or none at all.
    """

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
        raise InvalidInputError("query is empty: ask something", field="query")
    if k < 1:
        raise InvalidInputError(f"k must be >= 1, got {k}", field="k")


def _repeated(documents: list[Document]) -> str:
    names = [document.fqn for document in documents]
    return next(name for name, after in pairwise(names) if name == after)


class FolderCorpus(MemoryCorpus):
    """The documents of a folder in pieces: ``guide.md`` where it is one, else ``guide.md#1`` and so on.

    Files are found, read and cut as ``dartboard index`` does it. Names are numbered rather than hashed, so
    that people can write them as targets of their cases. ``problems`` are files that could not be read; the
    rest is there.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        chunking: ChunkingConfig | None = None,
        model: EmbeddingModel | None = None,
    ) -> None:
        folder = Path(path)
        if not folder.exists():
            raise DatasetError(f"there is no folder {folder}", field="corpus")
        self.problems: list[Problem] = []
        documents: list[Document] = []
        for found in read_path(folder):
            if isinstance(found, Problem):
                self.problems.append(found)
            else:
                documents.extend(_pieces(found, chunking or ChunkingConfig()))
        if not documents:
            raise DatasetError(
                f"{folder} holds no document that can be read ({len(self.problems)} problems)", field="corpus"
            )
        super().__init__(folder.resolve().name, documents, model=model)


def _pieces(read: Read, chunking: ChunkingConfig) -> list[Document]:
    whole = f"{read.source}:{read.key}" if read.key else read.source
    pieces = chunk(read, chunking)
    if len(pieces) == 1:
        return [Document(whole, pieces[0].text, pieces[0].metadata)]
    return [
        Document(f"{whole}#{number}", piece.text, piece.metadata)
        for number, piece in enumerate(pieces, start=1)
    ]


class LabelledCorpus(MemoryCorpus):
    """Title and text of each passage; passages that have neither are left out."""

    def __init__(self, name: str, *, split: str | None = None, model: EmbeddingModel | None = None) -> None:
        data = read_dataset(name, split=split)
        documents = [
            Document(passage.id, text, {"title": passage.title} if passage.title else {})
            for passage in data.passages
            if (text := embedded_text(passage.text, passage.title)).strip()
        ]
        super().__init__(data.name, documents, model=model)


def read_dataset(name: str, *, split: str | None = None) -> TextDataset:
    """A data set by its file or folder, or by its name in the folder of data sets; nothing is fetched."""
    path = Path(name)
    if not path.exists():
        return load_text(name, split=split, fetch=False)
    if (entry := entry_at(path)) is not None:
        return entry.load(split)
    raise DatasetError(
        f"{path} is no data set of a known format: expected a BEIR folder (corpus.jsonl, queries.jsonl, "
        "qrels/test.tsv), a retrieval_dataset.yaml, or a file of RGB",
        field="corpus",
    )
