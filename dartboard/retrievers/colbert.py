"""Late interaction: one vector per token, passages compared token by token (Khattab & Zaharia, 2020).

    MaxSim(q, p) = Σ over tokens i of q  max over tokens j of p  q_i · p_j

The sum, as in the paper. Token vectors have unit length and are stored as codes of 8, 4 or 2 bits per number
(:mod:`dartboard.retrievers.token_codes`) in the record's blob. There is no scan over all of them: a *triage*
finds ``triage_k`` passages by one vector each, and MaxSim is computed exactly on their codes.

    embedding   the collection's own embedding; free if its model also makes the tokens
    pooled      the mean of a passage's token vectors, a further field
    fde         a fixed-dimensional encoding (:mod:`dartboard.retrievers.fixed_dimensional`), a further field
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dartboard.embeddings.descriptions import TaskType
from dartboard.errors import ConfigError, StoreFormatError
from dartboard.retrievers.base import Fields, Retriever, best, one_record
from dartboard.retrievers.candidates import Ranked
from dartboard.retrievers.fixed_dimensional import FixedDimensional
from dartboard.retrievers.query import Query
from dartboard.retrievers.token_codes import Bits, Floats, TokenCodec
from dartboard.stores import Collection, Filter, Record, VectorField
from dartboard.types import FloatArray, Hit

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel
    from dartboard.embeddings.late_interaction import TokenModel

Triage = Literal["embedding", "pooled", "fde"]
TRIAGES: tuple[Triage, ...] = ("embedding", "pooled", "fde")

_BYTES_PER_BLOCK = 512 * 1024


class ColbertRetriever(Retriever):
    """MaxSim over token vectors.

    Args:
        tokens: Makes the token vectors: the default model, or a ColBERT checkpoint.
        model: The collection's embedding model.
        triage: How the passages to compare are found; by default ``embedding`` if ``model`` also makes the
            tokens, otherwise ``fde``.
        triage_k: How many passages are compared token by token; at least ``k``.
        bits: 8, 4 or 2 bits per number of a stored token vector.
        encoding: The parameters of fixed-dimensional encodings.
        seed: Seed of the random rotations in codes and encodings.
        batch_size: How many texts are encoded at once.
        name: The key of its shares, and the name of its fields in the collection.
    """

    def __init__(
        self,
        tokens: "TokenModel",
        *,
        model: "EmbeddingModel | None" = None,
        triage: Triage | None = None,
        triage_k: int = 200,
        bits: Bits = 4,
        encoding: FixedDimensional | None = None,
        seed: int = 0,
        batch_size: int = 32,
        name: str = "colbert",
    ) -> None:
        super().__init__(name, model)
        self._tokens = tokens
        chosen = triage or ("embedding" if model is not None and _same(tokens, model) else "fde")
        if chosen not in TRIAGES:
            raise ConfigError(f"unknown triage {chosen!r}: choose one of {', '.join(TRIAGES)}")
        if chosen == "embedding" and model is None:
            raise ConfigError("triage by the embedding needs model=…, the collection's embedding model")
        if triage_k < 1:
            raise ConfigError(f"triage_k must be >= 1, got {triage_k}")
        self.triage: Triage = chosen
        self.triage_k = triage_k
        self.codec = TokenCodec(bits=bits, seed=seed)
        self._encoding = encoding or FixedDimensional(seed=seed)
        self._batch_size = batch_size
        self._field = f"{name}_{chosen}"

    @cached_property
    def token_dim(self) -> int:
        """Dimension of the token vectors."""
        stated = getattr(self._tokens, "token_dim", None) or getattr(self._tokens, "embedding_dim", None)
        return int(stated) if stated else int(self._tokens.token_vectors(["dimension"])[0].shape[1])

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The token model and the storage format of its vectors."""
        made: dict[str, Any] = {
            "tokens": getattr(self._tokens, "fingerprint", type(self._tokens).__qualname__),
            "bits": self.codec.bits,
            "seed": self.codec.seed,
            "triage": self.triage,
        }
        return made | ({"encoding": asdict(self._encoding)} if self.triage == "fde" else {})

    def fields(self) -> Fields:
        """The codes, and the triage vector unless the embedding is used."""
        vectors = {
            "embedding": {},
            "pooled": {self._field: VectorField(dimension=self.token_dim)},
            "fde": {self._field: VectorField(dimension=self._encoding.dimension, metric="dot")},
        }
        return Fields(vectors=vectors[self.triage], blobs=(self.name,))

    def index(self, records: Sequence[Record]) -> list[Record]:
        """Add the token codes and the triage vector to the records."""
        made = self._tokens.token_vectors([record.text for record in records], batch_size=self._batch_size)
        return [self._filled(record, tokens) for record, tokens in zip(records, made, strict=True)]

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """Triage, then MaxSim on its results."""
        near = self.near(view, query, max(self.triage_k, k), where=where)
        records = view.get([hit.id for hit in near], blobs=(self.name,))
        return best([record.id for record in records], self._max_sims(self._asked(query), records), k)

    def near(self, collection: Collection, query: Query, k: int, *, where: Filter | None = None) -> list[Hit]:
        """The results of the triage alone."""
        field = None if self.triage == "embedding" else self._field
        return collection.search_vector(self._triage_vector(query), k, where=where, field=field)

    def scores(self, view: Collection, query: Query, ids: Sequence[str], vectors: FloatArray) -> FloatArray:
        """MaxSim of any chunks from their codes; a deleted one scores 0."""
        records = view.get(ids, blobs=(self.name,))
        made = self._max_sims(self._asked(query), records)
        found = dict(zip([record.id for record in records], made.tolist(), strict=True))
        return np.array([found.get(id, 0.0) for id in ids], dtype=np.float64)

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Which passage token each query token matched, with the similarity."""
        record = one_record(collection, chunk_id, blobs=(self.name,))
        similar = self.codec.decode([self._codes_of(record)]).similarities(self._asked(Query(query)))
        matched = similar.argmax(axis=1)
        asked = self._spelled(query, len(similar), asked=True)
        there = self._spelled(record.text, similar.shape[1], asked=False)
        matches = [
            {"query": word, "passage": there[at], "position": int(at), "similarity": float(row[at])}
            for word, at, row in zip(asked, matched, similar, strict=True)
        ]
        return {"score": float(sum(match["similarity"] for match in matches)), "matches": matches}

    def _filled(self, record: Record, tokens: Floats) -> Record:
        blobs = {**record.blobs, self.name: self.codec.encode(tokens)}
        if self.triage == "embedding":
            return replace(record, blobs=blobs)
        vector = tokens.mean(axis=0) if self.triage == "pooled" else self._encoding.passage(tokens)
        return replace(record, blobs=blobs, vectors={**record.vectors, self._field: vector})

    def _token_vectors(self, query: Query) -> Floats:
        return query.once(
            "tokens",
            self._tokens,
            lambda: self._tokens.token_vectors(query.text, task=TaskType.RETRIEVAL_QUERY)[0],
        )

    def _asked(self, query: Query) -> Floats:
        return self.codec.asked(self._token_vectors(query))

    def _triage_vector(self, query: Query) -> FloatArray:
        if self.triage == "embedding":
            return query.vector(self._model)
        tokens = self._token_vectors(query)
        return tokens.mean(axis=0) if self.triage == "pooled" else self._encoding.query(tokens)

    def _codes_of(self, record: Record) -> bytes:
        if self.name not in record.blobs:
            raise StoreFormatError(
                f"chunk {record.id!r} has no token codes {self.name!r}: index the documents again with "
                "this retriever"
            )
        return record.blobs[self.name]

    def _max_sims(self, asked: Floats, records: Sequence[Record]) -> FloatArray:
        """``(n,)``, in blocks whose decoded codes stay in the CPU cache."""
        found = [np.empty(0)]
        block: list[bytes] = []
        size = 0
        for record in records:
            codes = self._codes_of(record)
            if block and size + len(codes) > _BYTES_PER_BLOCK:
                found.append(self.codec.decode(block).max_sims(asked))
                block, size = [], 0
            block.append(codes)
            size += len(codes)
        if block:
            found.append(self.codec.decode(block).max_sims(asked))
        return np.concatenate(found)

    def _spelled(self, text: str, count: int, *, asked: bool) -> list[str]:
        """The tokens as words if the model supports it, otherwise their numbers."""
        spell = getattr(self._tokens, "tokens", None)
        task = TaskType.RETRIEVAL_QUERY if asked else TaskType.RETRIEVAL_DOCUMENT
        words: list[str] = spell([text], task=task)[0] if spell else []
        return words if len(words) == count else [f"#{number}" for number in range(count)]


def _same(tokens: Any, model: Any) -> bool:
    """Whether the same model, with or without a cache, makes tokens and embeddings."""
    return tokens is model or getattr(tokens, "fingerprint", None) == model.fingerprint
