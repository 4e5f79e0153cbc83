"""The file store: records in one SQLite file, with derived indexes beside it."""

from dartboard.stores.embedded.derived_index import Tuning
from dartboard.stores.embedded.store import EmbeddedStore
from dartboard.stores.embedded.store_file import accept_loss

__all__ = ["EmbeddedStore", "Tuning", "accept_loss"]
