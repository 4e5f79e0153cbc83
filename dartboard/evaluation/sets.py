"""Measures for a required kernel, which is a set: half of what a task needs may be worth nothing.

Where other sets answer as well as the kernel, the one that the picks come closest to counts.
"""

import numpy as np

from dartboard.evaluation.assessed import Assessed
from dartboard.evaluation.relevance import share
from dartboard.types import FloatArray


def set_recall(run: Assessed, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |kernel|``."""
    return _best(run, share(_found(run, k), run.judgements.set_sizes))


def success(run: Assessed, k: int | None) -> FloatArray:
    """1 where the whole kernel was picked."""
    sizes = run.judgements.set_sizes
    return _best(run, ((_found(run, k) == sizes) & (sizes > 0)).astype(np.float64))


def jaccard(run: Assessed, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |picks ∪ kernel|``; a copy of an earlier pick widens the union."""
    found = _found(run, k)
    picked = run.lengths if k is None else np.minimum(run.lengths, k)
    return _best(run, share(found, picked[run.judgements.set_queries] + run.judgements.set_sizes - found))


def _found(run: Assessed, k: int | None) -> FloatArray:
    """``(S,)`` picks in each sufficient set."""
    hits, sets = run.set_hits
    inside = sets[run.within(k)[hits]]
    return np.bincount(inside, minlength=len(run.judgements.set_sizes)).astype(np.float64)


def _best(run: Assessed, values: FloatArray) -> FloatArray:
    """``(Q,)`` the largest value of each query's sets."""
    largest = np.zeros(len(run))
    np.maximum.at(largest, run.judgements.set_queries, values)
    return largest
