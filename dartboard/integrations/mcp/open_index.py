"""The index behind the tools: opened for reading when it is first asked for, and followed as it changes.

New and changed passages are seen by the store itself. It is opened anew once its collection's settings have
changed (another calibration, another retriever) or its file was replaced; the old one is closed when the last
call that reads from it ends. Nothing is ever locked: ``dartboard index`` may run beside it.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from dartboard.engine import Engine
from dartboard.errors import StoreError
from dartboard.stores import DEFAULT_COLLECTION, Manifest
from dartboard.stores.urls import file_of, missing_index, without_password

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Opened:
    """An engine, what it was opened on, and how many calls read from it."""

    engine: Engine
    manifest: Manifest
    file: tuple[int, int] | None
    calls: int = 0


class OpenIndex:
    """One collection of one store; usable from many threads. Arguments are those of :class:`Engine`."""

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
        self._settings = {
            "collection": collection,
            "model": model,
            "retriever": retriever,
            "pair_scorer": pair_scorer,
            "trust_model": trust_model,
        }
        self._opened: _Opened | None = None
        self._lock = Lock()

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """The engine as the index is now, or an error that says what is missing."""
        with self._lock:
            opened = self._current()
            opened.engine.retriever  # noqa: B018 - loaded by whoever asks first, not by all at once
            opened.calls += 1
        try:
            yield opened.engine
        finally:
            with self._lock:
                opened.calls -= 1
                if opened is not self._opened and not opened.calls:
                    opened.engine.close()

    def look(self) -> None:
        """See that the collection is there, without loading its model; an error says what is missing."""
        with self._lock:
            self._current()

    def close(self) -> None:
        """Give back what is open."""
        with self._lock:
            self._leave()

    def _current(self) -> _Opened:
        path = file_of(self.url)
        if path is not None and not path.exists():
            raise StoreError(missing_index(self.url))
        file = None if path is None else (path.stat().st_dev, path.stat().st_ino)
        opened = self._opened
        if opened is None or opened.file != file or opened.engine.collection.manifest != opened.manifest:
            self._leave()
            engine = Engine.open(self.url, read_only=True, **self._settings)
            try:
                self._opened = _Opened(engine, engine.collection.manifest, file)
            except BaseException:
                engine.close()
                raise
            logger.info("opened %s", without_password(self.url))
            return self._opened
        return opened

    def _leave(self) -> None:
        """Forget what is open; whoever reads from it last closes it."""
        left, self._opened = self._opened, None
        if left is not None and not left.calls:
            left.engine.close()
