"""Arrays in, picks out. Selection itself knows no text, no model and no store; only :func:`select`, which
takes ``texts`` for convenience, has near-duplicates found among them.

:func:`select` is the door; the methods (:class:`Dartboard`, :class:`MMR`, …) are values that all select
from a :class:`Pool` within :class:`Limits` and return a :class:`Selection`.
"""

from dartboard.selection.baselines import MMR, Exhaustive, NearDuplicateFilter, Random, TopK, explain_picks
from dartboard.selection.greedy import Dartboard
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.pool import (
    Pool,
    from_distances,
    from_embeddings,
    from_log_probs,
    in_order_of,
    log_softmax,
)
from dartboard.selection.result import Selection
from dartboard.selection.select import METHODS, Method, select, select_many

__all__ = [
    "METHODS",
    "MMR",
    "Dartboard",
    "Exhaustive",
    "LimitTracker",
    "Limits",
    "Method",
    "NearDuplicateFilter",
    "Pool",
    "Random",
    "Selection",
    "TopK",
    "explain_picks",
    "from_distances",
    "from_embeddings",
    "from_log_probs",
    "in_order_of",
    "log_softmax",
    "select",
    "select_many",
]
