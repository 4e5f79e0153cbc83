"""Measures of how different the picks of a list are from one another, whatever their relevance.

With unit vectors u the mean cosine over all pairs of m picks is ``(‖Σ u‖² - m) / (m (m-1))``: no pair is
looked at, and a thousand lists are one sum.
"""

from collections.abc import Sequence

import numpy as np

from dartboard.errors import ConfigError
from dartboard.evaluation.assessed import Assessed
from dartboard.evaluation.content import Content
from dartboard.evaluation.relevance import precision, share
from dartboard.types import FloatArray


def diversity(run: Assessed, k: int | None) -> FloatArray:
    """1 - mean cosine over pairs of picks, kept in [0, 1]; 0 for fewer than two picks."""
    kept: FloatArray = np.clip(2.0 * intra_list_distance(run, k), 0.0, 1.0)
    return kept


def intra_list_distance(run: Assessed, k: int | None) -> FloatArray:
    """The mean scaled cosine distance ``(1 - cos) / 2`` over pairs of picks; 0 for fewer than two."""
    content = content_of(run)
    distances = np.zeros(len(run))
    for place, picks in enumerate(_cut(run, k)):
        if len(picks) > 1:
            distances[place] = (1.0 - _mean_cosine(content.unit_vectors(picks))) / 2.0
    return distances


def cluster_coverage(run: Assessed, k: int | None) -> FloatArray:
    """Clusters among the picks / all clusters of the data set."""
    labels = content_of(run).clusters
    if not labels:
        raise ConfigError("cluster_coverage needs clusters: no chunk has metadata['cluster']")
    covered = [len({labels[pick] for pick in picks if pick in labels}) for picks in _cut(run, k)]
    return np.array(covered, dtype=np.float64) / len(set(labels.values()))


def distinct_share(run: Assessed, k: int | None) -> FloatArray:
    """Distinct bases / picks: 1 where no pick is a copy of another, 0 for an empty list."""
    lists = _cut(run, k)
    distinct = [len(set(run.judgements.bases(picks))) for picks in lists]
    return share(np.array(distinct, dtype=np.float64), np.array([len(picks) for picks in lists]))


def f1_diversity(run: Assessed, k: int | None) -> FloatArray:
    """The harmonic mean of precision and diversity."""
    return harmonic(precision(run.plain, k), diversity(run, k))


def harmonic(left: FloatArray, right: FloatArray) -> FloatArray:
    """``2ab / (a + b)``; 0 where both are."""
    return share(2.0 * left * right, left + right)


def content_of(run: Assessed) -> Content:
    """The vectors behind a run, or what to do without them."""
    if run.content is None:
        raise ConfigError("this measure looks at vectors: pass content=Content.of(dataset)")
    return run.content


def _cut(run: Assessed, k: int | None) -> list[Sequence[str]]:
    return [picks[:k] for picks in run.lists]


def _mean_cosine(unit: FloatArray) -> float:
    count = len(unit)
    total = unit.sum(axis=0)
    return float((total @ total - count) / (count * (count - 1)))
