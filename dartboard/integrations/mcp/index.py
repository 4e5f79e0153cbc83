"""The index behind the tools: opened for reading when it is first asked for, and followed as it changes.

New and changed passages are seen by the store itself. An engine is made anew once its collection's settings
have changed (another calibration, another retriever), and a file that was replaced by another is opened anew.
Nothing is ever locked: ``dartboard index`` may run beside it.
"""

import logging
from collections.abc import Sequence
from threading import Lock

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.by_name import model_by_name
from dartboard.engine import Engine
from dartboard.engine.trust import confirm
from dartboard.errors import CollectionError, StoreError
from dartboard.stores import DEFAULT_COLLECTION, Manifest, Store, open_store
from dartboard.stores.urls import file_of, without_password

logger = logging.getLogger(__name__)


class OpenIndex:
    """One collection of one store; usable from many threads."""

    def __init__(
        self,
        url: str,
        *,
        collection: str = DEFAULT_COLLECTION,
        model: str | None = None,
        retriever: str | None = None,
        pair_scorer: str | None = None,
        trust_model: bool | Sequence[str] = False,
    ) -> None:
        self.url = url
        self.collection = collection
        self._model = model
        self._retriever = retriever
        self._pair_scorer = pair_scorer
        self._trust = trust_model
        self._models: dict[tuple[str, bool], EmbeddingModel] = {}
        self._store: Store | None = None
        self._stores: list[Store] = []
        self._file: tuple[int, int] | None = None
        self._engine: tuple[Engine, Manifest] | None = None
        self._lock = Lock()

    def engine(self) -> Engine:
        """The engine as the index is now, or an error that says what is missing."""
        with self._lock:
            store, manifest = self._manifest()
            if self._engine is None or self._engine[1] != manifest:
                name, send_key = self._model or str(manifest.settings.get("model", "default")), True
                if self._model is None:
                    send_key = confirm(store, "model", name, collection=self.collection, trust=self._trust)
                engine = Engine(
                    store,
                    collection=self.collection,
                    model=self._loaded(name, send_key),
                    retriever=self._retriever,
                    pair_scorer=self._pair_scorer,
                    trust_model=self._trust,
                )
                engine.retriever  # noqa: B018 - loaded by whoever asks first, not by all at once
                self._engine = (engine, manifest)
            return self._engine[0]

    def look(self) -> None:
        """See that the collection is there, without loading its model; an error says what is missing."""
        with self._lock:
            self._manifest()

    def model(self) -> EmbeddingModel:
        """The index's model; where there is no index yet, the one that it would be made with."""
        try:
            return self.engine().model
        except StoreError as error:
            if type(error) not in (StoreError, CollectionError):  # there is one, and it cannot be used
                raise
            with self._lock:
                return self._loaded(self._model or "default")

    def close(self) -> None:
        """Give back what is open."""
        with self._lock:
            for store in self._stores:
                store.close()
            self._stores, self._store, self._engine = [], None, None

    def _manifest(self) -> tuple[Store, Manifest]:
        store = self._current_store()
        try:
            return store, store.open(self.collection).manifest
        except CollectionError as error:
            raise CollectionError(f"{error}. Index something first: dartboard index PATH") from error

    def _current_store(self) -> Store:
        path = file_of(self.url)
        if path is not None and not path.exists():
            raise StoreError(
                f"there is no index {without_password(self.url)!r}: make one with dartboard index PATH"
            )
        file = None if path is None else (path.stat().st_dev, path.stat().st_ino)
        if self._store is None or file != self._file:
            # An older one stays open until the end: calls that began with it may still read from it.
            self._store = open_store(self.url, read_only=True)
            self._stores.append(self._store)
            self._file, self._engine = file, None
            logger.info("opened %s", without_password(self.url))
        return self._store

    def _loaded(self, name: str, send_key: bool = True) -> EmbeddingModel:
        if (name, send_key) not in self._models:
            self._models[name, send_key] = model_by_name(name, send_key=send_key)
        return self._models[name, send_key]
