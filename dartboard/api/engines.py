"""The collections that are open, each behind one engine; the models that they share.

A store that is a file is opened when it is there, and made with the first collection. What another process
changes (new documents, a new calibration, a collection made anew) is seen by the next request: documents by
the store itself, all else because an engine is replaced once its collection's settings have changed.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, RLock

from dartboard.api.errors import Conflict, ReadOnly
from dartboard.api.metrics import Metrics
from dartboard.api.query_vectors import SharedQueryModel
from dartboard.api.settings import ServiceSettings
from dartboard.datasets import demo
from dartboard.deadline import check
from dartboard.embeddings import CachedModel, EmbeddingModel
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.by_name import model_by_name, pair_scorer_by_name
from dartboard.embeddings.vectors import Vectors
from dartboard.engine import Engine
from dartboard.engine.trust import confirm, names_in
from dartboard.errors import CollectionError, ConfigError, StoreLockedError
from dartboard.search_options import SearchOptions
from dartboard.stores import Manifest, Record, Store, open_store
from dartboard.stores.checks import missing
from dartboard.stores.memory import MemoryStore
from dartboard.stores.records import with_fingerprints
from dartboard.stores.sqlite import SqliteStore
from dartboard.stores.urls import is_there

logger = logging.getLogger(__name__)

DEMO = "demo"
"""The collection that is the small corpus of the package."""
_IN_THIS_PROCESS = (SqliteStore, MemoryStore)
_GLANCE = 0.05
"""Seconds between looks at the deadline of a search that waits."""


class Engines:
    """Engines by the name of their collection; usable from many threads."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._read_only = settings.processes > 1
        self._metrics = metrics
        self._models: dict[tuple[str, bool], SharedQueryModel] = {}
        self._trusted = names_in(settings.trust_models)
        self._open: dict[str, tuple[Engine, Manifest]] = {}
        self._store: Store | None = None
        self._demo: Engine | None = None
        self._pair_scorer: PairScorer | None = None
        self._lock = RLock()
        # Half of this process's share of the processors encodes, the other half searches and selects.
        self._half = max(1, (os.cpu_count() or 1) // (2 * settings.processes))
        self._search_slots = BoundedSemaphore(self._half)
        self._pair_slots = BoundedSemaphore(1)
        self.ready = False
        """Whether the model is loaded and the default collection is open."""

    def start(self) -> None:
        """Open the store, load the model and warm both, so that the first request finds them ready."""
        self._scorer()
        try:
            engine = self.get(None)
        except CollectionError:
            self.model.encode_query("warm")
        else:
            engine.model.encode_query("warm")
            if engine.stats().records:
                engine.search("warm", k=1)
        self.ready = True

    @property
    def model(self) -> SharedQueryModel:
        """The model of the settings, or the default one: what new collections are made with."""
        return self._model(self._settings.model or "default")

    @property
    def model_name(self) -> str:
        """How that model is called in settings and manifests."""
        return self._settings.model or "default"

    @property
    def default(self) -> str:
        """The collection of requests that name none: that of the settings, or the demo until it exists."""
        store = self.store()
        there = store is not None and self._settings.collection in store.collections()
        return self._settings.collection if there or not self._settings.demo else DEMO

    @contextmanager
    def search_slot(self, engine: Engine, options: SearchOptions) -> Iterator[None]:
        """The time of one search; where the store is a server, which does the work, there is no limit.

        Python runs one thread at a time, and threads that hand the interpreter to each other after every
        short NumPy call lose more than they gain: a few searches at a time are done sooner. One search with a
        pair scorer takes all processors.
        """
        quick = options.reranker == "cosine"
        if quick and not isinstance(engine.store, _IN_THIS_PROCESS):
            yield
            return
        slots = self._search_slots if quick else self._pair_slots
        while not slots.acquire(timeout=_GLANCE):
            check()
        try:
            yield
        finally:
            slots.release()

    def names(self) -> list[str]:
        """The collections that can be asked, sorted."""
        store = self.store()
        there = set(store.collections()) if store is not None else set()
        return sorted(there | {DEMO} if self._settings.demo else there)

    def get(self, name: str | None = None) -> Engine:
        """The engine of a collection, opened once; one that does not exist is a ``CollectionError``."""
        name = self.default if name is None else name
        if self.is_demo(name):
            return self._demo_engine()
        store = self.store()
        if store is None:
            raise missing(name, self.names())
        try:
            manifest = store.open(name).manifest
        except CollectionError:
            self.forget(name)
            raise
        known = self._open.get(name)
        if known is not None and known[1] == manifest:
            return known[0]
        with self._lock:
            known = self._open.get(name)
            if known is not None and known[1] == manifest:  # another thread was first
                return known[0]
            engine = self._engine(store, name, manifest)
            engine.retriever  # noqa: B018 - loaded by whoever asks first, not by all at once
            self._open[name] = (engine, manifest)
            return engine

    def new(self, name: str) -> Engine:
        """An engine for a collection that does not exist yet; the store is made where there is none."""
        store = self.store(create=True)
        assert store is not None  # noqa: S101 - asked for with create
        return Engine(
            store,
            collection=name,
            model=self.model,
            retriever=self._settings.retriever,
            pair_scorer=self._scorer(),
        )

    def forget(self, name: str) -> None:
        """Open the collection afresh next time: it was dropped, or made."""
        with self._lock:
            self._open.pop(name, None)

    def is_demo(self, name: str) -> bool:
        """Whether the name means the package's own corpus, which nobody writes to; a store's goes first."""
        if name != DEMO or not self._settings.demo:
            return False
        store = self.store()
        return store is None or DEMO not in store.collections()

    def writable(self, name: str) -> Engine:
        """The engine of a collection that may be changed; ``Conflict`` for the package's own corpus."""
        engine = self.get(name)
        self.check_writable(name)
        return engine

    def check_writable(self, name: str) -> None:
        """``Conflict`` for a change of the package's own corpus, and in several processes for any change."""
        if self._read_only:
            raise ReadOnly()
        if not self.is_writable(name):
            raise Conflict(
                "the demo collection cannot be changed: make one of your own first", code="read_only"
            )

    def is_writable(self, name: str) -> bool:
        """Whether documents can be added to a collection through the service."""
        return not self._read_only and not self.is_demo(name)

    def store(self, *, create: bool = False) -> Store | None:
        """The store, opened when it is first there; None where it is a file that does not exist yet."""
        if create and self._read_only:
            raise ReadOnly()
        if self._store is None:
            with self._lock:
                if self._store is None and (create or is_there(self._settings.store)):
                    self._store = _opened(self._settings.store, read_only=self._read_only)
        return self._store

    def close(self) -> None:
        """Give back the store, and end the encoders' threads."""
        self.ready = False
        for model in self._models.values():
            model.close()
        if self._store is not None:
            self._store.close()

    def _engine(self, store: Store, name: str, manifest: Manifest) -> Engine:
        if self._settings.model:
            model = self.model
        else:
            made_with = str(manifest.settings.get("model", "default"))
            send_key = confirm(store, "model", made_with, collection=name, trust=self._trusted)
            model = self._model(made_with, send_key)
        return Engine(
            store,
            collection=name,
            model=model,
            retriever=self._settings.retriever,
            pair_scorer=self._scorer(),
            trust_model=self._trusted,
        )

    def pair_scorer(self) -> PairScorer:
        """What reads pairs of texts that belong to no collection."""
        return self._scorer() or pair_scorer_by_name("late-interaction", self.model)

    def _scorer(self) -> PairScorer | None:
        """The cross-encoder of the settings, loaded once; None where each model's token vectors are used."""
        named = self._settings.pair_scorer
        if named in (None, "none", "late-interaction"):
            return None
        with self._lock:
            if self._pair_scorer is None:
                self._pair_scorer = pair_scorer_by_name(named, self.model)
            return self._pair_scorer

    def _model(self, name: str, send_key: bool = True) -> SharedQueryModel:
        with self._lock:
            if (name, send_key) not in self._models:
                self._models[name, send_key] = SharedQueryModel(
                    model_by_name(name, threads=self._half, send_key=send_key),
                    cached=self._settings.cached_queries,
                    metrics=self._metrics,
                )
            return self._models[name, send_key]

    def _demo_engine(self) -> Engine:
        if self._demo is None:
            with self._lock:
                if self._demo is None:
                    self._demo = demo_engine(self.model, self._settings.retriever, self._scorer())
        return self._demo


def _opened(url: str, *, read_only: bool) -> Store:
    try:
        return open_store(url, read_only=read_only)
    except StoreLockedError:
        logger.warning("another process writes to the store: it is open for reading only")
        return open_store(url, read_only=True)


def demo_engine(
    model: EmbeddingModel, retriever: str | None = None, pair_scorer: PairScorer | str | None = None
) -> Engine:
    """An engine over the demo corpus, in memory: something to ask before anything is indexed."""
    engine = Engine(MemoryStore(), collection=DEMO, model=model, retriever=retriever, pair_scorer=pair_scorer)
    collection = engine.create()
    records = [
        Record(chunk.id, chunk.text, chunk.embedding, chunk.metadata)
        for chunk in demo.chunks(_encoded(model, demo.texts()))
    ]
    collection.upsert(with_fingerprints(engine.retriever.index(records)))
    collection.prepare()
    return engine


def _encoded(model: EmbeddingModel, texts: list[str]) -> Vectors:
    """Through the cache on disk where there is one: a second start takes no time."""
    try:
        with CachedModel(model) as cached:
            return cached.encode_documents(texts)
    except ConfigError as error:
        logger.warning("%s; the demo is encoded at every start", error)
        return model.encode_documents(texts)
