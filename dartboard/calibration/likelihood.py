"""Maximum likelihood for the spread of a query around its target, and for two relatives.

Dartboard takes ``P(t|q) ∝ exp(-d(q,t)² / 2σ²)`` over the candidates. In ``β = 1/2σ²`` the likelihood of known
targets is that of an exponential family with the statistic ``-d²``: it is concave and has one maximum, where
the expected squared distance under the model equals the one observed. The relatives differ only in the
statistic:

* the divisor of the label-free rule ``σ = width of the pool / divisor``: ``-(d / width)²``;
* the temperature τ of pair scores in the hybrid variant, ``P ∝ exp(score / τ)``: ``score``.

Intervals are bootstrapped over queries.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray, IntArray

FEWEST_PAIRS = 20
"""Fewer pairs than this say too little."""

WIDEST = 3.0
"""An interval whose ends differ by more than this factor settles nothing."""

_STEEPNESS = np.geomspace(1e-6, 1e12, 721)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A parameter by maximum likelihood, with a 95 % bootstrap interval over queries.

    ``at_edge`` says that the pairs set no limit on one side: targets are always the nearest candidate
    (any smaller σ explains them better still), or no nearer than the others.
    """

    value: float
    low: float
    high: float
    pairs: int
    at_edge: bool = False

    @property
    def settled(self) -> bool:
        """Whether the interval is narrow enough to rely on."""
        return not self.at_edge and self.high <= WIDEST * self.low


@dataclass(frozen=True, slots=True)
class Evidence:
    """The candidates of one query: a statistic that is larger for likelier ones, and which are targets."""

    statistic: FloatArray
    targets: IntArray


def fit_sigma(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """σ from evidence whose statistic is the *squared* distance, negated."""
    return _fit(evidence, lambda steepness: math.sqrt(0.5 / steepness), resamples, seed)


def fit_divisor(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """The divisor of the rule, from squared distances over the squared width of their pool, negated."""
    return _fit(evidence, lambda steepness: math.sqrt(2.0 * steepness), resamples, seed)


def fit_temperature(
    scores: Sequence[FloatArray], targets: Sequence[Sequence[int]], *, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """τ of ``softmax(score / τ)`` from the pair scores of each query's candidates and its targets' places."""
    evidence = [
        Evidence(np.asarray(given, dtype=np.float64), np.asarray(places, dtype=np.intp))
        for given, places in zip(scores, targets, strict=True)
    ]
    return _fit(evidence, lambda steepness: 1.0 / steepness, resamples, seed)


def _fit(
    evidence: Sequence[Evidence], parameter: Callable[[float], float], resamples: int, seed: int
) -> Estimate:
    """The parameter at which the expected statistic equals the observed one."""
    useful = [e for e in evidence if len(e.targets)]
    if not useful:
        raise InvalidInputError("no query has a known target among its candidates: nothing to calibrate on")
    excess = np.stack([_excess(e) for e in useful])
    values, at_edge = _roots(excess.sum(axis=0)[None])
    weights = np.random.default_rng(seed).multinomial(
        len(useful), np.full(len(useful), 1 / len(useful)), size=resamples
    )
    spread = np.sort([parameter(root) for root in _roots(weights @ excess)[0]])
    low, high = np.quantile(spread, [0.025, 0.975], method="nearest")
    return Estimate(
        value=parameter(float(values[0])),
        low=float(low),
        high=float(high),
        pairs=sum(len(e.targets) for e in useful),
        at_edge=bool(at_edge[0]),
    )


def _excess(evidence: Evidence) -> FloatArray:
    """The slope of the log-likelihood at every steepness: ``Σ_targets (observed - expected statistic)``."""
    statistic = evidence.statistic - evidence.statistic.max()
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(_STEEPNESS[:, None] * statistic)
    expected = weights @ statistic / weights.sum(axis=1)
    observed = statistic[evidence.targets]
    slope: FloatArray = observed.sum() - len(observed) * expected
    return slope


def _roots(slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where each falling row crosses zero, between grid points by the logarithm; and which never do."""
    positive = (slopes > 0).sum(axis=1)
    edge = (positive == 0) | (slopes.min(axis=1) >= 0)
    right = np.clip(positive, 1, slopes.shape[1] - 1)
    rows = np.arange(len(slopes))
    above, below = slopes[rows, right - 1], slopes[rows, right]
    share = np.where(edge | (above == below), 0.5, above / np.where(above == below, 1.0, above - below))
    grid = np.log(_STEEPNESS)
    return np.exp(grid[right - 1] + np.clip(share, 0, 1) * (grid[right] - grid[right - 1])), edge
