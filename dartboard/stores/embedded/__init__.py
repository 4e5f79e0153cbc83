"""Records in one file: SQLite is the truth, indexes beside it are derived."""

from dartboard.stores.embedded.opening import accept_loss
from dartboard.stores.embedded.store import EmbeddedStore
from dartboard.stores.embedded.tuning import Tuning

__all__ = ["EmbeddedStore", "Tuning", "accept_loss"]
