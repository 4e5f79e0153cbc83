"""Questions of many threads encoded together, and those asked before not at all.

One thread encodes. While it is busy questions gather, and it takes all of them (up to ``max_batch``) as its
next batch: an idle service encodes at once, a busy one in batches, without anybody waiting for company. Only
after a batch of several, which shows that questions come together, does it wait ``window`` seconds for more.

Vectors are kept by the hash of task and text, so the cache has a size that no question can stretch.
"""

import copy
import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from threading import Condition, Event, Lock, Thread
from typing import Any, Protocol, Self

import numpy as np

from dartboard.deadline import check, wait_for
from dartboard.embeddings.base import EmbeddingModel, Progress, WrappedModel
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import check_batch_size, check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, EndpointError, InvalidInputError, ModelError


class Counts(Protocol):
    """Who hears about hits and batches: the service's metrics."""

    def cache(self, hit: bool) -> None:
        """A question was known, or was not."""

    def batch(self, size: int) -> None:
        """So many questions were encoded together."""


class BatchingModel(WrappedModel):
    """Another model, with the vectors of single questions batched and remembered.

    Passages, token vectors and all else go straight to the model; its name, fingerprint and σ are kept, since
    batching changes no vector. Vectors of questions are read-only.
    """

    def __init__(
        self,
        model: EmbeddingModel,
        *,
        window: float = 0.002,
        max_batch: int = 32,
        cached: int = 10_000,
        metrics: Counts | None = None,
    ) -> None:
        if not 0 <= window < float("inf"):
            raise ConfigError(f"window must be a number of seconds >= 0, got {window}")
        if cached < 0:
            raise ConfigError(f"cached must be >= 0, got {cached}")
        check_batch_size(max_batch)
        self.model = model
        self._window, self._max_batch, self._metrics = window, max_batch, metrics
        self._cache = _VectorCache(cached)
        self._waiting: deque[_Question] = deque()
        self._asked: dict[bytes, _Question] = {}
        self._changed = Condition()
        self._closed = False
        self._thread: Thread | None = None

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
        """The vector of one question, read-only ``(d,)``: cached, or encoded with those of others."""
        if not isinstance(text, str):
            raise InvalidInputError(f"a query is one string, got {type(text).__name__}: see encode_queries")
        (text,) = check_texts(text)
        task = TaskType(task)
        check()
        key = _key(task, text)
        found = self._cache.get(key)
        self._count_hit(found is not None)
        return self._ask(key, task, text) if found is None else found

    def encode_queries(
        self,
        texts: Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_QUERY,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """The vectors of many questions, ``(n, d)``: a batch already; only the unknown are encoded."""
        listed, task = check_texts(texts), TaskType(task)
        keys = [_key(task, text) for text in listed]
        found = {key: vector for key in set(keys) if (vector := self._cache.get(key)) is not None}
        for key in keys:
            self._count_hit(key in found)
        missing = {key: text for key, text in zip(keys, listed, strict=True) if key not in found}
        if missing:
            fresh = self.model.encode_queries(list(missing.values()), task=task, batch_size=batch_size)
            for key, vector in zip(missing, fresh, strict=True):
                found[key] = self._cache.put(key, vector)
        if progress:
            progress(len(listed))
        return np.array([found[key] for key in keys], np.float32).reshape(len(keys), self.embedding_dim)

    def close(self) -> None:
        """Encode what is waiting, then end the thread; later questions are refused."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "model":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model, name)

    def _count_hit(self, hit: bool) -> None:
        if self._metrics is not None:
            self._metrics.cache(hit)

    def _ask(self, key: bytes, task: TaskType, text: str) -> Vectors:
        """Put a question to the thread, or join one who asked the same, and wait as long as there is time."""
        question = self._join(key, task, text)
        try:
            wait_for(question.done)
        finally:
            with self._changed:
                question.waiters -= 1
        return question.answer()

    def _join(self, key: bytes, task: TaskType, text: str) -> "_Question":
        with self._changed:
            if self._closed:
                raise ModelError(f"model {self.name!r} is closed: the service is stopping")
            question = self._asked.get(key)
            if question is None:
                question = self._asked[key] = _Question(key, task, text)
                self._waiting.append(question)
                self._changed.notify_all()
            question.waiters += 1
            if self._thread is None:
                self._thread = Thread(target=self._work, name="dartboard-encoder", daemon=True)
                self._thread.start()
        return question

    def _work(self) -> None:
        """The thread: batch after batch until closed."""
        patient = False
        while (batch := self._next(patient)) is not None:
            for same in _by_task(batch):
                self._encode(same)
            patient = len(batch) > 1

    def _next(self, patient: bool) -> "list[_Question] | None":
        """The questions that somebody still waits for, at most ``max_batch``; None when closed and done."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if patient:
                self._gather()
            if not self._waiting:
                return None
            batch: list[_Question] = []
            while self._waiting and len(batch) < self._max_batch:
                question = self._waiting.popleft()
                if question.waiters:
                    batch.append(question)
                else:
                    del self._asked[question.key]
            return batch

    def _gather(self) -> None:
        end = time.monotonic() + self._window
        while len(self._waiting) < self._max_batch and not self._closed:
            left = end - time.monotonic()
            if left <= 0:
                return
            self._changed.wait(left)

    def _encode(self, batch: "list[_Question]") -> None:
        """Answer every question of one task; where a batch fails, each is tried alone.

        A model elsewhere that refuses a batch would refuse the others too, each after its own patience.
        """
        try:
            vectors = self.model.encode_queries(
                [question.text for question in batch], task=batch[0].task, batch_size=self._max_batch
            )
            for question, vector in zip(batch, vectors, strict=True):
                question.vector = self._cache.put(question.key, vector)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait
            if len(batch) > 1 and isinstance(error, Exception) and not isinstance(error, EndpointError):
                for question in batch:
                    self._encode([question])
            else:
                self._finish(batch, error=error)
            return
        if self._metrics is not None:
            self._metrics.batch(len(batch))
        self._finish(batch)

    def _finish(self, batch: "list[_Question]", *, error: BaseException | None = None) -> None:
        with self._changed:
            for question in batch:
                self._asked.pop(question.key, None)
        for question in batch:
            question.error = error
            question.done.set()


class _Question:
    """A text on its way to the model, and those who wait for its vector."""

    __slots__ = ("done", "error", "key", "task", "text", "vector", "waiters")

    def __init__(self, key: bytes, task: TaskType, text: str) -> None:
        self.key, self.task, self.text = key, task, text
        self.done = Event()
        self.waiters = 0
        self.vector: Vectors | None = None
        self.error: BaseException | None = None

    def answer(self) -> Vectors:
        """The vector; an error is raised as a copy, since tracebacks of several threads would mix in one."""
        if self.error is not None:
            raise _copied(self.error) from self.error
        if self.vector is None:
            raise ModelError("the model gave no vector")
        return self.vector


class _VectorCache:
    """Hash → vector, read-only; when full, what has not been asked for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Vectors | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: bytes, vector: Vectors) -> Vectors:
        """Its own copy, so that one row does not keep its whole batch alive."""
        own: Vectors = np.array(vector, dtype=np.float32)
        own.flags.writeable = False
        with self._lock:
            if self._most:
                self._kept[key] = own
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return own


def _key(task: TaskType, text: str) -> bytes:
    return hashlib.sha256(f"{task.value}\0{text}".encode()).digest()


def _by_task(batch: list[_Question]) -> list[list[_Question]]:
    groups: dict[TaskType, list[_Question]] = {}
    for question in batch:
        groups.setdefault(question.task, []).append(question)
    return list(groups.values())


def _copied(error: BaseException) -> BaseException:
    try:
        return copy.copy(error)
    except Exception:  # noqa: BLE001 - a constructor of its own making
        return error
