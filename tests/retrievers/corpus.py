"""A small corpus in a memory store, and models small enough to reason about."""

import numpy as np

from dartboard.retrievers import Fields
from dartboard.stores import Manifest, Record
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag

TEXTS = {
    "jwt": "JWT tokens are validated with the verify method",
    "session": "A session cookie is validated on the server",
    "database": "The database connection is configured in one file",
    "pool": "A connection pool keeps database connections open",
    "tokens": "Tokens expire after one hour and must be refreshed",
    "cache": "The cache keeps recent answers in memory",
    "memory": "Memory is freed when the cache is full",
    "logging": "Logging writes one line for every request",
    "request": "Every request carries a token in its header",
    "deploy": "Deploy the server with one command",
    "copy": "The cache keeps recent answers in memory",
    "refresh": "Refresh tokens are kept in a database table",
}


def records_of(texts=TEXTS, model=None):
    vectors = (model or WordBag()).encode(list(texts.values()))
    return [
        Record(id, text, vector, {"length": len(text), "kind": "even" if number % 2 == 0 else "odd"})
        for number, ((id, text), vector) in enumerate(zip(texts.items(), vectors, strict=True))
    ]


def collection_for(*retrievers, texts=TEXTS, model=None, records=None, settings=None):
    """A collection with the texts, indexed by all of the retrievers."""
    model = model or WordBag()
    needs = [retriever.fields() for retriever in retrievers] or [Fields()]
    manifest = Manifest(
        model=model.fingerprint,
        dimension=model.embedding_dim,
        vectors={name: field for need in needs for name, field in need.vectors.items()},
        sparse=tuple(name for need in needs for name in need.sparse),
        settings=settings or {},
    )
    collection = MemoryStore().create("docs", manifest)
    filled = records or records_of(texts, model)
    for retriever in retrievers:
        filled = retriever.index(filled)
    collection.upsert(filled)
    return collection


class WordTokens:
    """A token model: each word a unit vector, the same wherever it stands."""

    fingerprint = "word-tokens:1"

    def __init__(self, dim=32):
        self._bag = WordBag(dim)
        self.embedding_dim = dim
        self.calls = 0

    def token_vectors(self, texts, *, task=None, batch_size=32):
        self.calls += 1
        listed = [texts] if isinstance(texts, str) else list(texts)
        rows = [np.stack([self._bag._word(word) for word in text.lower().split()]) for text in listed]
        return [(row / np.linalg.norm(row, axis=1, keepdims=True)).astype(np.float32) for row in rows]

    def tokens(self, texts, *, task=None):
        return [text.lower().split() for text in texts]


class CountedBag(WordBag):
    """A word bag that counts how often it is asked for queries."""

    def __init__(self, dim=32):
        super().__init__(dim)
        self.queries = 0

    def encode_query(self, text, **options):
        self.queries += 1
        return super().encode_query(text, **options)
