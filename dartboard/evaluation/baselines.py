"""The compared systems: Dartboard, baselines, retrievers and recorded runs, each a :class:`System`.

A system ranks a question's candidates; with several seeds it gives several runs. Selection uses
:mod:`dartboard.selection`, and the pair-scorer variants use :class:`~dartboard.core.DartboardRetriever`, so
the measured code is the code that users run. :mod:`dartboard.evaluation.registry` makes systems by name.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dartboard.config import RerankerType
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets.text_dataset import embedded_text
from dartboard.deadline import check
from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.questions import Question
from dartboard.plugins import names
from dartboard.retrievers import Retriever, retriever_by_name
from dartboard.retrievers.registry import NAMES
from dartboard.selection import Limits, Method, Random
from dartboard.selection.kernel import Auto
from dartboard.stores import Collection, Manifest, Record, open_store
from dartboard.types import Dataset, FloatArray


class System(Protocol):
    """Anything with a name, seeds and a ``rank`` method can be compared.

    ``seeds`` has more than one entry if the system is random; each gives one run.
    """

    @property
    def name(self) -> str:
        """The name in reports."""

    @property
    def seeds(self) -> Sequence[int]:
        """Each seed gives one run."""

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """At most k chunk ids, best first."""


@dataclass(frozen=True)
class SelectionSystem:
    """A selection method on the candidates' vectors; only Dartboard uses ``sigma``."""

    name: str
    method: Method
    sigma: float | Auto = "auto"
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        picks = self.method.select(question.pool(self.sigma), Limits(k=k)).indices
        return [question.candidates[i].id for i in picks]


@dataclass(frozen=True)
class RandomSystem:
    """Random candidates, different for every question and seed."""

    seeds: Sequence[int] = tuple(range(10))
    name: str = "random"

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        digest = hashlib.blake2b(f"{seed}:{question.query_id}".encode(), digest_size=8).digest()
        method = Random(seed=int.from_bytes(digest))
        return SelectionSystem(self.name, method).rank(question, k, seed)


@dataclass(frozen=True)
class Oracle:
    """Perfect retrieval from the whole corpus: best grades first, among those the kernel, then new facets.

    It takes one copy of each base, then further relevant copies, and fills up with the nearest candidates.
    """

    judgements: Judgements
    name: str = "oracle"
    seeds: Sequence[int] = (0,)

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {query_id: place for place, query_id in enumerate(self.judgements.query_ids)}

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        if question.query_id not in self._place:
            return [chunk.id for chunk in question.candidates[:k]]
        row = self._place[question.query_id]
        known = self.judgements
        grades, kernel, facets = known.grades[row], known.kernel_bases[row], known.facets_of[row]
        picks: list[str] = []
        seen: dict[int, int] = {}
        left = sorted({*grades, *kernel, *facets})
        while left and len(picks) < k:
            best = max(
                left,
                key=lambda base: (
                    grades.get(base, 0.0),
                    base in kernel,
                    sum(0.5 ** seen.get(facet, 0) for facet in facets.get(base, ())),
                ),
            )
            left.remove(best)
            picks.append(self._copy_of[best])
            for facet in facets.get(best, ()):
                seen[facet] = seen.get(facet, 0) + 1
        graded = known.qrels[question.query_id]
        copies = [one for one, grade in graded.items() if grade > 0 and one not in picks]
        picks += sorted(copies, key=lambda one: (-graded[one], one))[: k - len(picks)]
        taken = set(known.bases(picks))
        for chunk in question.candidates:
            base = known.base_of.get(chunk.id, chunk.id)
            if len(picks) < k and base not in taken:
                picks.append(chunk.id)
                taken.add(base)
        return picks

    @cached_property
    def _copy_of(self) -> Mapping[str, str]:
        """One chunk of each base: the base itself if it is a chunk, otherwise the first by id."""
        known = self.judgements
        chunks = {chunk_id for judged in known.qrels.values() for chunk_id in judged}
        chunks |= {chunk_id for ids in known.kernels.values() for chunk_id in ids}
        chunks |= {c for facets in known.facets.values() for ids in facets.values() for c in ids}
        copies: dict[str, str] = {}
        for chunk_id in sorted(chunks, reverse=True):
            base = known.base_of.get(chunk_id, chunk_id)
            if copies.get(base) != base:
                copies[base] = chunk_id
        return copies


@dataclass(frozen=True)
class Pyversity:
    """A strategy of pyversity with its default parameters."""

    strategy: str
    seeds: Sequence[int] = (0,)

    @property
    def name(self) -> str:
        """As in the table of systems."""
        return f"pyversity-{self.strategy}"

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        from pyversity import Strategy, diversify

        result = diversify(question.vectors, question.similarity, k, strategy=Strategy(self.strategy))
        return [question.candidates[i].id for i in result.indices]


@dataclass(frozen=True)
class PairScorerSystem:
    """Dartboard with a pair scorer on the texts: the variants ``crossencoder`` and ``hybrid``."""

    variant: RerankerType
    scorer: PairScorer
    seeds: Sequence[int] = (0,)

    @property
    def name(self) -> str:
        """As in the table of systems."""
        return f"dartboard-{self.variant}"

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        config = DartboardConfig(
            top_k=k, triage_k=max(k, len(question.candidates)), reranker_type=self.variant
        )
        retriever = DartboardRetriever(config, KnownVector(question.vector), cross_encoder=self.scorer)
        return [chunk.id for chunk in retriever.retrieve(question.text, list(question.candidates))]


class KnownVector(EmbeddingModel):
    """A model with one vector: the question's, from the data set."""

    def __init__(self, vector: FloatArray) -> None:
        self._vector = vector.astype(np.float32)

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> FloatArray:
        """The same vector for every text."""
        count = 1 if isinstance(texts, str) else len(texts)
        return np.repeat(self._vector[None], count, axis=0)

    @property
    def embedding_dim(self) -> int:
        """The vector's dimension."""
        return self._vector.size


@dataclass(frozen=True)
class RecordedRun:
    """A run that another program made."""

    name: str
    run: Mapping[str, Sequence[str]]
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks; none if the run lacks the question."""
        return self.run.get(question.query_id, ())[:k]


def check_unique(systems: Sequence[System]) -> None:
    """Check that no two systems have the same name, because reports identify them by name."""
    names = [system.name for system in systems]
    if not names:
        raise ConfigError("no system to evaluate: name at least one")
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"two systems are called {name!r}: give each its own name")


RETRIEVERS = tuple(sorted(NAMES - {"multi-vector"}))
"""Built-in retrievers for ``--systems``; data sets have no parts for a multi-vector one."""

_INDEX_BATCH = 256
"""Chunks that are indexed at a time: token vectors of a whole corpus would fill the memory."""


def is_retriever(name: str) -> bool:
    """Whether the name, before any colon, is a retriever's; selectors take precedence."""
    kind = name.partition(":")[0]
    return kind in RETRIEVERS or (kind in names("retriever") and kind not in names("selector"))


class RetrieverSystem:
    """A retriever by name over the whole corpus instead of the triaged candidates.

    ``model`` is the one that embedded the data set. The chunks are in a memory store, which is filled with
    the first question.
    """

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
        for start in range(0, len(chunks), _INDEX_BATCH):
            check()
            records = [
                Record(one.id, embedded_text(one.text, one.metadata.get("title", "")), one.embedding)
                for one in chunks[start : start + _INDEX_BATCH]
            ]
            collection.upsert(self._retriever.index(records))
        return collection
