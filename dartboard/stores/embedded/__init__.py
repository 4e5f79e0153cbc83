"""Records in one file: SQLite is the truth, indexes beside it are derived."""

from dartboard.stores.embedded.derived_index import Tuning
from dartboard.stores.embedded.store import EmbeddedStore
from dartboard.stores.embedded.store_file import accept_loss

__all__ = ["EmbeddedStore", "Tuning", "accept_loss"]
