"""Measures for a required kernel, which is a set: half of what a task needs may be worth nothing."""

import numpy as np

from dartboard.evaluation.assessed import Assessed
from dartboard.evaluation.relevance import share
from dartboard.types import FloatArray


def set_recall(run: Assessed, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |kernel|``."""
    return share(_found(run, k), run.judgements.kernel_sizes)


def success(run: Assessed, k: int | None) -> FloatArray:
    """1 where the whole kernel was picked."""
    sizes = run.judgements.kernel_sizes
    whole: FloatArray = ((_found(run, k) == sizes) & (sizes > 0)).astype(np.float64)
    return whole


def jaccard(run: Assessed, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |picks ∪ kernel|``; a copy of an earlier pick widens the union."""
    found = _found(run, k)
    picked = run.lengths if k is None else np.minimum(run.lengths, k)
    return share(found, picked + run.judgements.kernel_sizes - found)


def _found(run: Assessed, k: int | None) -> FloatArray:
    hits = run.required
    return run.count(hits[run.within(k)[hits]])
