"""A model and a pair scorer small enough to reason about: texts are bags of words."""

import hashlib

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.types import Chunk


class WordBag(EmbeddingModel):
    """Each word a fixed random direction; a text is the sum of its words."""

    def __init__(self, dim=32):
        self._dim = dim

    def encode(self, texts, batch_size=32):
        return np.stack([self._of(t) for t in ([texts] if isinstance(texts, str) else texts)]).astype(
            np.float32
        )

    @property
    def embedding_dim(self):
        return self._dim

    def _of(self, text):
        return sum(self._word(w) for w in text.lower().replace("?", "").split())

    def _word(self, word):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4])
        return np.random.default_rng(seed).standard_normal(self._dim)


class SharedWords:
    """The share of words that two texts have in common, and how it was asked."""

    bounds = (0.0, 1.0)

    def __init__(self):
        self.asked = []

    def score(self, query, passages):
        self.asked.append(("score", len(passages)))
        return np.array([self._shared(query, p) for p in passages])

    def score_matrix(self, passages):
        self.asked.append(("matrix", len(passages)))
        return np.array([[self._shared(a, b) for b in passages] for a in passages])

    def _shared(self, a, b):
        left, right = set(a.lower().split()), set(b.lower().split())
        return len(left & right) / len(left | right)


class Favourite:
    """+10 for one passage and -10 for all others, whatever the query: an order that no retriever has."""

    bounds = (-11.6, 11.4)

    def __init__(self, text):
        self.text = text

    def score(self, query, passages):
        return np.where(np.array(passages) == self.text, 10.0, -10.0)

    def score_matrix(self, passages):
        return np.where(np.eye(len(passages), dtype=bool), 10.0, -10.0)


def chunks_of(texts, model=None):
    vectors = (model or WordBag()).encode(list(texts))
    return [
        Chunk(f"c{i}", text, vector, {"source": f"s{i % 3}"})
        for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
