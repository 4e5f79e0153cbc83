"""When a store keeps files beside its own, searches approximately, and builds anew; as measured."""

from dataclasses import dataclass

from dartboard.errors import ConfigError
from dartboard.stores.ann import RECALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Numbers of records. The defaults follow the table in ``docs/decisions.md``."""

    files_from: int = 1000
    """Smaller collections are read from the store itself: that is as quick."""
    approximate_from: int = 20_000
    """Smaller collections are compared whole."""
    recall: float = RECALL
    """Wanted of approximate search, of the 100 nearest."""
    tail_share: float = 0.1
    """How much of an index may be newer or deleted before it is built anew."""
    tail_least: int = 1000
    """Fewer than so many changes are never worth building anew."""
    compare_up_to: int = 2000
    """With a filter that leaves no more than so many, these are compared one by one."""
    words_up_to: int = 200_000
    """Up to so many, closing the store leaves a lexical index even if nobody searched for words."""

    def __post_init__(self) -> None:
        for name in ("files_from", "approximate_from", "tail_least", "compare_up_to", "words_up_to"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")
        if not 0.5 <= self.recall < 1:
            raise ConfigError(f"recall must be in [0.5, 1), got {self.recall}: search with exact=True for 1")
        if not 0 <= self.tail_share <= 1:
            raise ConfigError(f"tail_share must be in [0, 1], got {self.tail_share}")

    def too_much(self, changed: int, indexed: int) -> bool:
        """Whether so many changes to an index of so many records call for a new one."""
        return changed > max(self.tail_least, self.tail_share * indexed)
