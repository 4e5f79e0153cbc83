"""The formulas of all metrics, for all queries at once: each function returns ``(Q,)`` floats.

There are four groups: relevance, required kernels (sets), facets (novelty), and diversity of the picks.
:mod:`~dartboard.evaluation.metrics` has the same for one list, and :mod:`~dartboard.evaluation.measures` the
names for commands and reports. The run decides whether chunks or bases are counted: see
:attr:`~dartboard.evaluation.judged_run.JudgedRun.plain`.

Hand-written, and tested against trec_eval and ndeval. pytrec_eval cannot count copies of a chunk as one, uses
gains of ``rel`` instead of the specification's ``2^rel - 1``, re-ranks lists by score, and is slower;
pyndeval stops at rank 20.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from dartboard.errors import ConfigError
from dartboard.evaluation.judged_run import JudgedRun
from dartboard.evaluation.judgements import Content, Judgements
from dartboard.types import FloatArray, IntArray


def precision(run: JudgedRun, k: int | None) -> FloatArray:
    """Relevant picks / k, even for a shorter list; without k, / the number of picks."""
    found = run.count(run.relevant_within(k))
    return share(found, run.lengths if k is None else np.full(len(run), k))


def recall(run: JudgedRun, k: int | None) -> FloatArray:
    """Relevant picks / all relevant."""
    return share(run.count(run.relevant_within(k)), run.judgements.relevant_counts)


def hit_rate(run: JudgedRun, k: int | None) -> FloatArray:
    """1 if at least one pick is relevant."""
    return (run.count(run.relevant_within(k)) > 0).astype(np.float64)


def reciprocal_rank(run: JudgedRun, k: int | None) -> FloatArray:
    """1 / the rank of the first relevant pick; 0 if there is none."""
    hits = run.relevant_within(k)
    queries, first = np.unique(run.query[hits], return_index=True)
    values = np.zeros(len(run))
    values[queries] = 1.0 / (run.rank[hits[first]] + 1.0)
    return values


def average_precision(run: JudgedRun, k: int | None) -> FloatArray:
    """The sum of the precisions at each relevant pick / all relevant."""
    hits = run.relevant_within(k)
    precisions = (order_within(run.query[hits]) + 1.0) / (run.rank[hits] + 1.0)
    return share(run.count(hits, precisions), run.judgements.relevant_counts)


def ndcg(run: JudgedRun, k: int | None) -> FloatArray:
    """``Σ (2^rel - 1) / log2(rank + 2)`` divided by its maximum; ranks count from 0."""
    return _ndcg(run, k, lambda grade: np.exp2(grade) - 1.0)


def ndcg_linear(run: JudgedRun, k: int | None) -> FloatArray:
    """The same with gains ``rel``: what trec_eval and BEIR report."""
    return _ndcg(run, k, lambda grade: grade)


def _ndcg(run: JudgedRun, k: int | None, gain: Callable[[FloatArray], FloatArray]) -> FloatArray:
    hits = run.graded_within(k)
    gained = run.count(hits, gain(run.grade[hits]) / discount(run.rank[hits]))
    query, rank, grade = run.judgements.ideal
    within = rank < (len(rank) if k is None else k)
    gains = gain(grade[within]) / discount(rank[within])
    return share(gained, np.bincount(query[within], gains, minlength=len(run)))


def discount(rank: IntArray) -> FloatArray:
    """The divisor of a gain at each rank, counted from 0."""
    divisors: FloatArray = np.log2(rank + 2.0)
    return divisors


def share(part: FloatArray, whole: FloatArray | IntArray) -> FloatArray:
    """``part / whole``; 0 if ``whole`` is 0."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0)


def order_within(groups: IntArray) -> IntArray:
    """For each entry of sorted groups, its position within its group, from 0."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    return np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))


def set_recall(run: JudgedRun, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |kernel|``, for the best of the sufficient sets."""
    return _best_set(run, share(_in_sets(run, k), run.judgements.set_sizes))


def success(run: JudgedRun, k: int | None) -> FloatArray:
    """1 if the whole kernel was picked."""
    sizes = run.judgements.set_sizes
    return _best_set(run, ((_in_sets(run, k) == sizes) & (sizes > 0)).astype(np.float64))


def jaccard(run: JudgedRun, k: int | None) -> FloatArray:
    """``|picks ∩ kernel| / |picks ∪ kernel|``; a copy of an earlier pick enlarges the union."""
    found = _in_sets(run, k)
    picked = run.lengths if k is None else np.minimum(run.lengths, k)
    return _best_set(run, share(found, picked[run.judgements.set_queries] + run.judgements.set_sizes - found))


def _in_sets(run: JudgedRun, k: int | None) -> FloatArray:
    """``(S,)``: picks in each sufficient set."""
    hits, sets = run.set_hits
    inside = sets[run.within(k)[hits]]
    return np.bincount(inside, minlength=len(run.judgements.set_sizes)).astype(np.float64)


def _best_set(run: JudgedRun, values: FloatArray) -> FloatArray:
    """``(Q,)``: the largest value of each query's sets."""
    largest = np.zeros(len(run))
    np.maximum.at(largest, run.judgements.set_queries, values)
    return largest


ALPHA = 0.5


def subtopic_recall(run: JudgedRun, k: int | None) -> FloatArray:
    """The share of the facets that a pick covers."""
    hits, facets = run.facet_hits
    inside = run.within(k)[hits]
    pairs = np.unique(np.stack([run.query[hits[inside]], facets[inside]]), axis=1)
    covered = np.bincount(pairs[0], minlength=len(run)).astype(np.float64)
    return share(covered, run.judgements.facet_counts)


def alpha_ndcg(run: JudgedRun, k: int | None, alpha: float = ALPHA) -> FloatArray:
    """α-nDCG over the facets of the judgements (Clarke et al., SIGIR 2008).

    ``α-DCG@k = Σ_r ( Σ_{facets f of pick r} (1-α)^(earlier picks that cover f) ) / log2(r + 2)``, divided by
    the value of an ideal list. The best list is NP-hard to find; as in TREC's ndeval, the ideal takes the
    largest gain at every rank, ties by the larger id.
    """
    check_alpha(alpha)
    hits, facets = run.facet_hits
    order = np.lexsort((run.rank[hits], facets, run.query[hits]))
    hits, facets = hits[order], facets[order]
    width = int(facets.max(initial=0)) + 1
    before = order_within(run.query[hits] * width + facets)
    inside = run.within(k)[hits]
    hits, before = hits[inside], before[inside]
    gained = run.count(hits, (1.0 - alpha) ** before / discount(run.rank[hits]))
    return share(gained, _ideal_alpha_dcg(run.judgements, k, alpha))


def check_alpha(alpha: float) -> None:
    """Check α: 0 is relevance alone, 1 is novelty alone."""
    if not 0.0 <= alpha <= 1.0:
        raise ConfigError(f"alpha must be in [0, 1], got {alpha!r}")


@lru_cache(maxsize=64)
def _ideal_alpha_dcg(judgements: Judgements, k: int | None, alpha: float) -> FloatArray:
    """``(Q,)``: the α-DCG of ideal lists, computed once for all systems."""
    by_id = (sorted(covers.items(), reverse=True) for covers in judgements.facets_of)
    return np.array([_ideal_gain([facets for _, facets in covers], k, alpha) for covers in by_id])


def _ideal_gain(left: list[tuple[int, ...]], k: int | None, alpha: float) -> float:
    """The α-DCG of a greedy list of documents, given by their facets in decreasing order of id."""
    worth = dict.fromkeys((facet for facets in left for facet in facets), 1.0)
    total = 0.0
    for rank in range(len(left) if k is None else min(k, len(left))):
        gains = [sum(worth[facet] for facet in facets) for facets in left]
        best = gains.index(max(gains))
        total += gains[best] / math.log2(rank + 2)
        for facet in left.pop(best):
            worth[facet] *= 1.0 - alpha
    return total


def diversity(run: JudgedRun, k: int | None) -> FloatArray:
    """1 - mean cosine over pairs of picks, clipped to [0, 1]; 0 for fewer than two picks."""
    kept: FloatArray = np.clip(2.0 * intra_list_distance(run, k), 0.0, 1.0)
    return kept


def intra_list_distance(run: JudgedRun, k: int | None) -> FloatArray:
    """The mean scaled cosine distance ``(1 - cos) / 2`` over pairs of picks; 0 for fewer than two."""
    content = content_of(run)
    distances = np.zeros(len(run))
    for place, picks in enumerate(_cut(run, k)):
        if len(picks) > 1:
            distances[place] = (1.0 - _mean_cosine(content.unit_vectors(picks))) / 2.0
    return distances


def cluster_coverage(run: JudgedRun, k: int | None) -> FloatArray:
    """Clusters of the picks / all clusters of the data set."""
    labels = content_of(run).clusters
    if not labels:
        raise ConfigError("cluster_coverage needs clusters: no chunk has metadata['cluster']")
    covered = [len({labels[pick] for pick in picks if pick in labels}) for picks in _cut(run, k)]
    return np.array(covered, dtype=np.float64) / len(set(labels.values()))


def distinct_share(run: JudgedRun, k: int | None) -> FloatArray:
    """Distinct bases / picks: 1 if no pick is a copy of another, 0 for an empty list."""
    lists = _cut(run, k)
    distinct = [len(set(run.judgements.bases(picks))) for picks in lists]
    return share(np.array(distinct, dtype=np.float64), np.array([len(picks) for picks in lists]))


def f1_diversity(run: JudgedRun, k: int | None) -> FloatArray:
    """The harmonic mean of precision and diversity."""
    return harmonic(precision(run.plain, k), diversity(run, k))


def harmonic(left: FloatArray, right: FloatArray) -> FloatArray:
    """``2ab / (a + b)``; 0 if both are 0."""
    return share(2.0 * left * right, left + right)


def content_of(run: JudgedRun) -> Content:
    """The vectors of a run, or an error."""
    if run.content is None:
        raise ConfigError("this measure needs vectors: pass content=Content.of(dataset)")
    return run.content


def _cut(run: JudgedRun, k: int | None) -> list[Sequence[str]]:
    return [picks[:k] for picks in run.lists]


def _mean_cosine(unit: FloatArray) -> float:
    count = len(unit)
    total = unit.sum(axis=0)
    return float((total @ total - count) / (count * (count - 1)))
