"""A retriever: nearest by the embedding, and first what holds a "quoted phrase" of the question.

    score(q, p) = cos(E(q), E(p)) + bonus · (share of the question's quoted phrases that stand in p)

It needs nothing in the index beside text and embedding, so any collection can be asked with it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dartboard import EmbeddingModel
from dartboard.errors import ConfigError
from dartboard.retrievers import Ranked, Retriever
from dartboard.retrievers.base import best, cosines, one_record
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter

DEPTH = 200
"""How many of the nearest passages are looked at for phrases."""


class PhraseRetriever(Retriever):
    """Where the question quotes nothing, this is dense retrieval."""

    def __init__(self, model: EmbeddingModel, *, bonus: float = 0.5) -> None:
        super().__init__("phrase", model)
        self.bonus = bonus

    def rank(self, collection: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The ``k`` best, equal scores by id."""
        near = collection.search_vector(query.vector(self._model), max(k, DEPTH), where=where)
        phrases = quoted(query.text)
        texts = {record.id: record.text for record in collection.get([hit.id for hit in near])}
        there = [hit for hit in near if hit.id in texts]
        scores = np.array([hit.score + self.bonus * held(phrases, texts[hit.id]) for hit in there])
        return best([hit.id for hit in there], scores, k)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The cosine, the phrases, and what they add up to."""
        record = one_record(collection, chunk_id)
        cosine = float(cosines(Query(query).vector(self._model), record.embedding[None])[0])
        phrases = quoted(query)
        found = [phrase for phrase in phrases if held([phrase], record.text)]
        score = cosine + self.bonus * held(phrases, record.text)
        return {"score": score, "cosine": cosine, "phrases": phrases, "found": found}


def phrase_retriever(model: EmbeddingModel, argument: str) -> PhraseRetriever:
    """``phrase``, or ``phrase:0.3`` for another bonus: what the entry point names."""
    try:
        return PhraseRetriever(model, bonus=float(argument)) if argument else PhraseRetriever(model)
    except ValueError:
        raise ConfigError(f"phrase:BONUS takes a number, got {argument!r}") from None


def quoted(text: str) -> list[str]:
    """The phrases between double quotes, in lower case."""
    return [phrase.strip().lower() for phrase in re.findall(r'"([^"]+)"', text) if phrase.strip()]


def held(phrases: Sequence[str], text: str) -> float:
    """The share of the phrases that stand in a text."""
    lowered = text.lower()
    return sum(phrase in lowered for phrase in phrases) / len(phrases) if phrases else 0.0
