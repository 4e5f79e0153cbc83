"""The engines of one of several processes behind one port: the index is only read.

A process sees what ``dartboard index`` or another writer changes, as ever.
"""

from dartboard.api.engines import Engines
from dartboard.api.errors import ReadOnly
from dartboard.stores import Store, open_store
from dartboard.stores.urls import is_there


class ReadOnlyEngines(Engines):
    """Engines over a store that is opened for reading."""

    def store(self, *, create: bool = False) -> Store | None:
        """The store, opened when it is first there; it is never made."""
        if create:
            raise ReadOnly()
        if self._store is None:
            with self._lock:
                if self._store is None and is_there(self._settings.store):
                    self._store = open_store(self._settings.store, read_only=True)
        return self._store

    def check_writable(self, name: str) -> None:
        """``ReadOnly`` for every collection."""
        raise ReadOnly()
