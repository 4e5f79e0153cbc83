"""Questions of many threads encoded together, and those asked before not at all.

One thread encodes. While it is busy questions gather, and it takes all of them (up to ``MOST_TOGETHER``) as
its next batch: an idle service encodes at once, a busy one in batches, and nobody waits for company. Vectors
are kept by the hash of task and text, so the cache has a size that no question can stretch.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

from dartboard.api.metrics import Metrics
from dartboard.deadline import check, wait_for
from dartboard.embeddings.base import EmbeddingModel, Progress, WrappedModel
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import InvalidInputError, ModelError

MOST_TOGETHER = 32
_LAST_CALL = 1.0
"""Seconds that the model gets for its last batch, when the service stops."""


class _Question:
    """A text on its way to the model."""

    __slots__ = ("abandoned", "done", "error", "task", "text", "vector")

    def __init__(self, task: TaskType, text: str) -> None:
        self.task, self.text = task, text
        self.done = Event()
        self.abandoned = False
        self.vector: Vectors | None = None
        self.error: BaseException | None = None


class SharedQueryModel(WrappedModel):
    """Another model, with single questions encoded in batches and their vectors kept, read-only.

    Passages, token vectors and all else go straight to the model.
    """

    def __init__(
        self, model: EmbeddingModel, *, cached: int = 10_000, metrics: Metrics | None = None
    ) -> None:
        self.model = model
        self._most, self._metrics = cached, metrics
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = Lock()
        self._waiting: SimpleQueue[_Question | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._closed = False

    def encode(self, texts: str | Sequence[str], batch_size: int = 32, **options: Any) -> Vectors:
        """As the model encodes."""
        return self.model.encode(texts, batch_size, **options)

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """As the model encodes."""
        return self.model.encode_task(texts, task, batch_size=batch_size, progress=progress)

    def encode_query(self, text: str, *, task: TaskType = TaskType.RETRIEVAL_QUERY) -> Vectors:
        """The vector of one question, ``(d,)``: from the cache, or encoded with those of others."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a query is one string, got {type(text).__name__}: see encode_queries")
        (text,) = check_texts(text)
        task = TaskType(task)
        check()
        key = _key(task, text)
        if (found := self._get(key)) is not None:
            return found
        question = _Question(task, text)
        self._ask(question)
        try:
            wait_for(question.done)
        except BaseException:
            question.abandoned = True
            raise
        if question.error is not None:
            raise question.error
        assert question.vector is not None  # noqa: S101 - the thread sets one of the two
        return self._put(key, question.vector)

    def encode_queries(
        self,
        texts: Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_QUERY,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """The vectors of many questions, ``(n, d)``: a batch already; only unknown ones are encoded."""
        listed, task = check_texts(texts), TaskType(task)
        keys = [_key(task, text) for text in listed]
        found = {key: self._get(key) for key in keys}
        missing = {key: text for key, text in zip(keys, listed, strict=True) if found[key] is None}
        if missing:
            fresh = self.model.encode_queries(list(missing.values()), task=task, batch_size=batch_size)
            found |= {key: self._put(key, vector) for key, vector in zip(missing, fresh, strict=True)}
        if progress:
            progress(len(listed))
        return np.array([found[key] for key in keys], np.float32).reshape(len(keys), self.embedding_dim)

    def close(self) -> None:
        """Encode what is waiting, then end the thread; later questions are refused.

        A model elsewhere that does not answer is not waited for: the thread ends with the process.
        """
        with self._lock:
            self._closed = True
            thread = self._thread
        self._waiting.put(None)
        if thread is not None:
            thread.join(_LAST_CALL)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def _get(self, key: bytes) -> Vectors | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if self._metrics is not None:
            self._metrics.cache(hit=found is not None)
        return found

    def _put(self, key: bytes, vector: Vectors) -> Vectors:
        """Its own copy, so that one row does not keep its whole batch alive."""
        own: Vectors = np.array(vector, dtype=np.float32)
        own.flags.writeable = False
        with self._lock:
            if self._most:
                self._kept[key] = own
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return own

    def _ask(self, question: _Question) -> None:
        with self._lock:
            if self._closed:
                raise ModelError(f"model {self.name!r} is closed: the service is stopping")
            if self._thread is None:
                self._thread = Thread(target=self._work, name="dartboard-encoder", daemon=True)
                self._thread.start()
            self._waiting.put(question)

    def _work(self) -> None:
        """The thread: all that wait, batch after batch, until closed."""
        last = False
        while not last:
            batch = [self._waiting.get()]
            while len(batch) < MOST_TOGETHER and not self._waiting.empty():
                batch.append(self._waiting.get())
            last = None in batch
            wanted = [one for one in batch if one is not None and not one.abandoned]
            for task in dict.fromkeys(one.task for one in wanted):
                self._encode([one for one in wanted if one.task is task], task)

    def _encode(self, batch: list[_Question], task: TaskType) -> None:
        try:
            vectors = self.model.encode_queries([one.text for one in batch], task=task)
            for one, vector in zip(batch, vectors, strict=True):
                one.vector = vector
            if self._metrics is not None:
                self._metrics.batch(len(batch))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait
            for one in batch:
                one.error = error
        for one in batch:
            one.done.set()


def _key(task: TaskType, text: str) -> bytes:
    return hashlib.sha256(f"{task.value}\0{text}".encode()).digest()
