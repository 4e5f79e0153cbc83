"""Measures of relevance over all queries at once; each gives ``(Q,)`` floats.

What counts as one, a chunk or a base with its copies, is the business of the assessed run: see
:attr:`~dartboard.evaluation.assessed.Assessed.plain`.

Hand-written, and held to trec_eval by the tests: pytrec_eval cannot count copies of a chunk as one, takes
gains of ``rel`` where the specification has ``2^rel - 1``, re-ranks lists by score, and is slower.
"""

import numpy as np

from dartboard.evaluation.assessed import Assessed
from dartboard.types import FloatArray, IntArray


def precision(run: Assessed, k: int | None) -> FloatArray:
    """Relevant picks / k, however short the list; without k, / the picks there are."""
    found = run.count(run.relevant_within(k))
    return share(found, run.lengths if k is None else np.full(len(run), k))


def recall(run: Assessed, k: int | None) -> FloatArray:
    """Relevant picks / all relevant."""
    return share(run.count(run.relevant_within(k)), run.judgements.relevant_counts)


def hit_rate(run: Assessed, k: int | None) -> FloatArray:
    """1 where at least one pick is relevant."""
    return (run.count(run.relevant_within(k)) > 0).astype(np.float64)


def reciprocal_rank(run: Assessed, k: int | None) -> FloatArray:
    """1 / the rank of the first relevant pick; 0 where there is none."""
    hits = run.relevant_within(k)
    queries, first = np.unique(run.query[hits], return_index=True)
    values = np.zeros(len(run))
    values[queries] = 1.0 / (run.rank[hits[first]] + 1.0)
    return values


def average_precision(run: Assessed, k: int | None) -> FloatArray:
    """The sum of the precisions at each relevant pick / all relevant."""
    hits = run.relevant_within(k)
    precisions = (order_within(run.query[hits]) + 1.0) / (run.rank[hits] + 1.0)
    return share(run.count(hits, precisions), run.judgements.relevant_counts)


def ndcg(run: Assessed, k: int | None) -> FloatArray:
    """``Σ (2^rel - 1) / log2(rank + 2)`` over its largest possible value; ranks count from 0."""
    hits = run.relevant_within(k)
    gained = run.count(hits, (np.exp2(run.grade[hits]) - 1.0) / discount(run.rank[hits]))
    query, rank, grade = run.judgements.ideal
    within = rank < (len(rank) if k is None else k)
    gains = (np.exp2(grade[within]) - 1.0) / discount(rank[within])
    return share(gained, np.bincount(query[within], gains, minlength=len(run)))


def discount(rank: IntArray) -> FloatArray:
    """What a gain at each rank, counted from 0, is divided by."""
    divisors: FloatArray = np.log2(rank + 2.0)
    return divisors


def share(part: FloatArray, whole: FloatArray | IntArray) -> FloatArray:
    """``part / whole``; 0 where there is nothing to be had."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0)


def order_within(groups: IntArray) -> IntArray:
    """For each entry of sorted groups, its place within its group, from 0."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
