"""Maximum likelihood for σ, the rule's divisor and the temperature; and a paired permutation test.

Dartboard uses ``P(t|q) ∝ exp(-d(q,t)² / 2σ²)`` over the candidates. In ``β = 1/2σ²``, the likelihood of known
targets is that of an exponential family with the statistic ``-d²``. It is concave; its maximum is where the
expected squared distance equals the observed one. Two more parameters differ only in the statistic:

* the divisor of the label-free rule ``σ = width of the pool / divisor``: ``-(d / width)²``;
* the temperature τ of pair scores in the hybrid variant, ``P ∝ exp(score / τ)``: ``score``.

Intervals are bootstrapped over queries. The likelihood has no maximum if targets are always the nearest
candidate, or never nearer than others. Then all resamples agree, and the interval is the set of values that
the pairs do not rule out: those whose log-likelihood is at most 1.92 (95 %) below the supremum.

The permutation test asks whether a difference on held-out queries could be chance. It flips the sign of each
query's difference at random: p is how often the mean difference is then at least as large as observed, in
either direction. The test is two-sided, so a value that is no better than the rule is adopted with a
probability of half the level, and the better of two such values with at most the level.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, FloatArray, IntArray

FEWEST_PAIRS = 20
"""Fewer pairs than this carry too little information."""

WIDEST = 3.0
"""An interval whose ends differ by more than this factor is too wide to use."""

LEVEL = 0.05
"""Significance level: a fitted value must beat the rule with a smaller p."""

Recalls = dict[str, dict[str, FloatArray]]
"""``{kind: {corpus: (Q,)}}``: the recall of each held-out query."""

_LOSS = 1.92
"""Half of the 95th percentile of χ² with one degree of freedom."""

_STEEPNESS = np.geomspace(1e-6, 1e12, 721)
_DRAWS = 10_000
_TIE = 1e-9
"""Smaller differences are rounding errors."""

_EXACT_UP_TO = 12
"""Up to this many differing queries, all sign patterns (4,096) are tried."""

_BLOCK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A parameter by maximum likelihood, with a 95 % interval.

    ``at_edge``: there is no maximum; targets are always the nearest candidate (a smaller σ always fits
    better), or not nearer than the others. ``open_below`` and ``open_above``: the pairs set no limit on that
    side, and the end of the interval is only the last value tried.
    """

    value: float
    low: float
    high: float
    pairs: int
    at_edge: bool = False
    open_below: bool = False
    open_above: bool = False

    @property
    def settled(self) -> bool:
        """Whether the interval is narrow enough to use."""
        return not self.at_edge and self.high <= WIDEST * self.low

    @property
    def interval(self) -> str:
        """The interval as text."""
        if self.open_below and self.open_above:
            return "no limit on either side"
        if self.open_below:
            return f"at most {self.high:.3g}, no lower limit"
        if self.open_above:
            return f"at least {self.low:.3g}, no upper limit"
        return f"{self.low:.3g} to {self.high:.3g}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The candidates of one query: a statistic that is larger for more probable ones, and the targets."""

    statistic: FloatArray
    targets: IntArray


def fit_sigma(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """Fit σ; the statistic of the evidence is the negated *squared* distance.

    A value outside of the allowed range of σ counts as one at the edge.
    """
    found = _fit(evidence, lambda steepness: math.sqrt(0.5 / steepness), resamples, seed)
    usable = SMALLEST_SIGMA <= found.value <= LARGEST_SIGMA
    return found if usable else replace(found, at_edge=True)


def fit_divisor(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """Fit the rule's divisor from negated squared distances over the squared width of their pool."""
    return _fit(evidence, lambda steepness: math.sqrt(2.0 * steepness), resamples, seed)


def fit_temperature(
    scores: Sequence[FloatArray], targets: Sequence[Sequence[int]], *, resamples: int = 1000, seed: int = 0
) -> Estimate:
    """Fit τ of ``softmax(score / τ)`` from the pair scores of each query's candidates and its targets."""
    evidence = [
        Evidence(np.asarray(given, dtype=np.float64), np.asarray(places, dtype=np.intp))
        for given, places in zip(scores, targets, strict=True)
    ]
    return _fit(evidence, lambda steepness: 1.0 / steepness, resamples, seed)


def _fit(
    evidence: Sequence[Evidence], parameter: Callable[[float], float], resamples: int, seed: int
) -> Estimate:
    """The parameter for which the expected statistic equals the observed one."""
    useful = [e for e in evidence if len(e.targets)]
    if not useful:
        raise InvalidInputError("no query has a known target among its candidates: nothing to calibrate on")
    excess = np.stack([_excess(e) for e in useful])
    slope = excess.sum(axis=0)
    values, edges = _roots(slope[None])
    between = _by_likelihood(slope, edges[0]) if edges[0] else _by_bootstrap(excess, resamples, seed)
    low, high = sorted(parameter(steepness) for steepness in between)
    least, most = sorted(parameter(float(end)) for end in _STEEPNESS[[0, -1]])
    return Estimate(
        value=parameter(float(values[0])),
        low=low,
        high=high,
        pairs=sum(len(e.targets) for e in useful),
        at_edge=bool(edges[0]),
        open_below=low <= least,
        open_above=high >= most,
    )


def _by_bootstrap(excess: FloatArray, resamples: int, seed: int) -> tuple[float, float]:
    """The interval of β with 95 % of the resamples; those without a maximum lie at the ends."""
    count = len(excess)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    roots, edges = _roots(weights @ excess)
    roots = np.where(edges < 0, _STEEPNESS[0], np.where(edges > 0, _STEEPNESS[-1], roots))
    low, high = np.quantile(np.sort(roots), [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _by_likelihood(slope: FloatArray, edge: int) -> tuple[float, float]:
    """The interval of β that is not ruled out, from the edge where the likelihood is largest."""
    areas = np.abs(slope[:-1] + slope[1:]) / 2 * np.diff(_STEEPNESS)
    if edge > 0:
        lost = np.append(areas[::-1].cumsum()[::-1], 0.0)
        ruled_out = np.flatnonzero(lost >= _LOSS)
        return float(_STEEPNESS[ruled_out[-1] if len(ruled_out) else 0]), float(_STEEPNESS[-1])
    lost = np.append(0.0, areas.cumsum())
    ruled_out = np.flatnonzero(lost >= _LOSS)
    return float(_STEEPNESS[0]), float(_STEEPNESS[ruled_out[0] if len(ruled_out) else -1])


def _excess(evidence: Evidence) -> FloatArray:
    """The slope of the log-likelihood at every β: ``Σ_targets (observed - expected statistic)``."""
    statistic = evidence.statistic - evidence.statistic.max()
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(_STEEPNESS[:, None] * statistic)
    expected = weights @ statistic / weights.sum(axis=1)
    observed = statistic[evidence.targets]
    slope: FloatArray = observed.sum() - len(observed) * expected
    return slope


def _roots(slopes: FloatArray) -> tuple[FloatArray, IntArray]:
    """The zero of each decreasing row, interpolated on a log scale, and which rows have none.

    The second is -1 if the likelihood only falls, 1 if it only rises, and 0 otherwise.
    """
    positive = (slopes > 0).sum(axis=1)
    edge = np.where(positive == 0, -1, np.where(slopes.min(axis=1) >= 0, 1, 0))
    right = np.clip(positive, 1, slopes.shape[1] - 1)
    rows = np.arange(len(slopes))
    above, below = slopes[rows, right - 1], slopes[rows, right]
    level = above == below
    share = np.where((edge != 0) | level, 0.5, above / np.where(level, 1.0, above - below))
    grid = np.log(_STEEPNESS)
    return np.exp(grid[right - 1] + np.clip(share, 0, 1) * (grid[right] - grid[right - 1])), edge


def mean_gain(fitted: dict[str, FloatArray], rule: dict[str, FloatArray]) -> FloatArray:
    """The recall gain of each query over the rule, averaged over the corpora."""
    gain: FloatArray = np.mean([fitted[corpus] - rule[corpus] for corpus in rule], axis=0)
    return gain


def mean_recalls(recalls: Recalls) -> dict[str, dict[str, float]]:
    """The mean recall per kind and corpus."""
    return {
        name: {corpus: round(float(found.mean()), 6) for corpus, found in by_corpus.items()}
        for name, by_corpus in recalls.items()
    }


def nonzero(differences: FloatArray) -> FloatArray:
    """The differences without the zeros."""
    return differences[np.abs(differences) > _TIE]


def paired_permutation_test(differences: FloatArray, *, seed: int = 0) -> float:
    """Two-sided p-value of paired differences ``(Q,)``; exact if few queries differ."""
    moved = nonzero(differences)
    least = abs(float(moved.sum())) - _TIE
    if len(moved) <= _EXACT_UP_TO:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(moved))))
        return float((np.abs(signs @ moved) >= least).mean())
    rng = np.random.default_rng(seed)
    beyond = 0
    for _ in range(_DRAWS // _BLOCK):
        signs = 2.0 * rng.integers(0, 2, (_BLOCK, len(moved))) - 1.0
        beyond += int((np.abs(signs @ moved) >= least).sum())
    return (beyond + 1) / (_DRAWS + 1)


def format_p(p: float) -> str:
    """A p-value as text: three digits, never 0."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
