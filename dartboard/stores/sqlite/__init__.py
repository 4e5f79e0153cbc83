"""The default store: collections in one SQLite file, with plain arrays beside it."""

from dartboard.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
