"""Estimate σ from labelled queries: fit it on one half, keep it if it selects better on the other.

Dartboard uses ``P(t|q) ∝ exp(-d(q,t)² / 2σ²)`` over the candidates. In ``β = 1/2σ²``, the likelihood of known
targets is that of an exponential family with the statistic ``-d²``. It is concave; its maximum is where the
expected squared distance equals the observed one. Intervals are bootstrapped over queries. The likelihood has
no maximum if targets are always the nearest candidate, or never nearer than others; then the interval is the
set of values that the pairs do not rule out: those whose log-likelihood is at most 1.92 (95 %) below the
supremum.

Half of the queries is a small sample, so a fitted σ replaces the rule only if it is better on the other
half by more than chance (a permutation test over queries). What counts is the recall of the targets or, with
judged facets, the share of a query's facets that k picks cover.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Dartboard, Limits, TopK, from_embeddings
from dartboard.selection.kernel import Auto
from dartboard.statistics import TIE, permutation_tests
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, Dataset, FloatArray, IntArray, check_matrix
from dartboard.utils import unit_rows

FORMAT = 2

FEWEST_PAIRS = 20
"""Fewer pairs than this carry too little information."""

WIDEST = 3.0
"""An interval whose ends differ by more than this factor is too wide to use."""

LEVEL = 0.05
"""Significance level: a fitted σ must beat the rule with a smaller p."""

Kind = Literal["sigma", "default"]
Measure = Literal["recall", "facets"]

_MEASURES: dict[Measure, str] = {"recall": "recall", "facets": "share of facets found"}
_LOSS = 1.92
"""Half of the 95th percentile of χ² with one degree of freedom."""

_STEEPNESS = np.geomspace(1e-6, 1e12, 721)
"""The values of β at which the slope of the likelihood is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """σ by maximum likelihood, with a 95 % interval.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The value of ``sigma="auto"`` for one corpus and one model, and the reason.

    ``kind`` is ``sigma`` (``sigma.value`` for every query) or ``default`` (the rule). ``held_out`` is the
    mean of the ``measure`` for each kind on queries that were not used for fitting: on the original corpus
    and, if tried, with near-duplicates added; ``p_value`` is that of the difference. Pairs whose passage is
    not among the candidates of its query carry no information; ``missed`` counts them.
    """

    kind: Kind
    reason: str
    sigma: Estimate
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    p_value: float | None = None
    distance: str = "scaled_cosine"
    model: str = ""
    k: int = 5
    triage_k: int = 100
    seed: int = 0
    missed: int = 0
    measure: Measure = "recall"

    def __post_init__(self) -> None:
        for name, allowed in (("kind", get_args(Kind)), ("measure", get_args(Measure))):
            if (given := getattr(self, name)) not in allowed:
                raise InvalidInputError(
                    f"{name} must be one of {', '.join(allowed)}, got {given!r}", field=name
                )
        if self.kind == "sigma" and not SMALLEST_SIGMA <= self.sigma.value <= LARGEST_SIGMA:
            raise InvalidInputError(
                f"sigma must be in [{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}], got {self.sigma.value}: "
                "calibrate again",
                field="sigma",
            )

    def sigma_or_auto(self) -> float | Auto:
        """σ for selection."""
        return self.sigma.value if self.kind == "sigma" else "auto"

    def summary(self) -> str:
        """The chosen value, its interval and the reason, in a sentence."""
        if self.kind == "sigma":
            return f"σ {self.sigma.value:.3g} ({self.sigma.interval}); {self.reason}"
        return f"the default rule (σ by likelihood: {self.sigma.interval}); {self.reason}"

    def check(self, model: str, distance: str) -> None:
        """Check that model and distance are those of the calibration."""
        if self.distance != distance or (self.model and self.model != model):
            raise ConfigError(
                f"this calibration was made with model {self.model!r} and distance {self.distance!r}, not "
                f"{model!r} and {distance!r}: calibrate again"
            )

    def to_json(self) -> dict[str, Any]:
        """JSON data, for a file or the settings of an index."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], where: str = "what is stored") -> Self:
        """The calibration from :meth:`to_json`; error messages call it ``where``."""
        try:
            given = dict(stored)
            if given.pop("format") != FORMAT:
                raise InvalidInputError(f"{where}: a calibration of another format: calibrate again")
            return cls(sigma=_estimate(given.pop("sigma")), **given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"{where} is not a calibration ({error}): calibrate again") from error

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            stored = json.loads(Path(path).read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{path} is not a calibration ({error}): calibrate again") from error
        return cls.from_json(stored, str(path))


def _estimate(stored: Mapping[str, Any]) -> Estimate:
    found = Estimate(**stored)
    if not all(math.isfinite(number) and number > 0 for number in (found.value, found.low, found.high)):
        raise ValueError(f"{found.value} ({found.low} to {found.high}) is not an estimate")
    return found


@dataclass(frozen=True, slots=True)
class Evidence:
    """The candidates of one query: a statistic that is larger for more probable ones, and the targets."""

    statistic: FloatArray
    targets: IntArray


def fit_sigma(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """Fit σ; the statistic of the evidence is the negated *squared* distance.

    A value outside of the allowed range of σ counts as one at the edge.

    Raises:
        InvalidInputError: no query has a target among its candidates.
    """
    useful = [one for one in evidence if len(one.targets)]
    if not useful:
        raise InvalidInputError("no query has a known target among its candidates: nothing to calibrate on")
    slopes = np.stack([_slope(one) for one in useful])
    total = slopes.sum(axis=0)
    roots, edges = _roots(total[None])
    edge = int(edges[0])
    steep, flat = _by_likelihood(total, edge) if edge else _by_bootstrap(slopes, resamples, seed)
    value = _sigma(float(roots[0]))
    low, high = sorted((_sigma(steep), _sigma(flat)))
    return Estimate(
        value=value,
        low=low,
        high=high,
        pairs=sum(len(one.targets) for one in useful),
        at_edge=bool(edge) or not SMALLEST_SIGMA <= value <= LARGEST_SIGMA,
        open_below=low <= _sigma(float(_STEEPNESS[-1])),
        open_above=high >= _sigma(float(_STEEPNESS[0])),
    )


def _sigma(steepness: float) -> float:
    return math.sqrt(0.5 / steepness)


def _slope(evidence: Evidence) -> FloatArray:
    """The slope of the log-likelihood at every β: ``Σ_targets (observed - expected statistic)``."""
    statistic = evidence.statistic - evidence.statistic.max()
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(_STEEPNESS[:, None] * statistic)
    expected = weights @ statistic / weights.sum(axis=1)
    observed = statistic[evidence.targets]
    slope: FloatArray = observed.sum() - len(observed) * expected
    return slope


def _by_bootstrap(slopes: FloatArray, resamples: int, seed: int) -> tuple[float, float]:
    """The interval of β with 95 % of the resamples; those without a maximum lie at the ends."""
    count = len(slopes)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    roots, edges = _roots(weights @ slopes)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labelled queries as vectors: the corpus ``(N, d)`` and the queries ``(m, d)``.

    ``targets`` are the names of each query's passages, and ``names`` the name of each row of the corpus.
    Near-duplicates have the name of their original, so that any of them counts. ``texts`` are those of the
    rows, if selection may read them. ``facets`` are each query's facets, each given by the names of the
    passages that cover it; a query without facets has one, its targets.
    """

    corpus: FloatArray
    queries: FloatArray
    names: Sequence[str]
    targets: Sequence[Sequence[str]]
    texts: Sequence[str] | None = None
    facets: Sequence[Sequence[Sequence[str]]] | None = None

    def __post_init__(self) -> None:
        dim = check_matrix(self.corpus, name="corpus").shape[1]
        check_matrix(self.queries, name="queries", dim=dim)
        for name, given, wanted in (
            ("names", self.names, len(self.corpus)),
            ("targets", self.targets, len(self.queries)),
            ("facets", self.facets, len(self.queries)),
        ):
            if given is not None and len(given) != wanted:
                raise InvalidInputError(f"{name}: need one each, {wanted}, got {len(given)}", field=name)
        for name in ("corpus", "queries"):
            object.__setattr__(self, name, unit_rows(getattr(self, name)))

    @property
    def has_shared_facets(self) -> bool:
        """Whether several passages cover the same facet, so that one of them is enough."""
        return any(len(set(names)) > 1 for facets in self.facets or () for names in facets)

    def nearest(self, query: int, count: int) -> IntArray:
        """Rows of the corpus nearest to a query by cosine, nearest first."""
        cosine = self.corpus @ self.queries[query]
        count = min(count, len(cosine))
        near = np.argpartition(-cosine, count - 1)[:count]
        return near[np.lexsort((near, -cosine[near]))]


def labelled_by(dataset: Dataset) -> Labelled:
    """The labels of a data set: each query with its kernel or, without one, with all relevant passages.

    Query vectors are those in ``metadata["query_embeddings"]``, facets those in ``metadata["facets"]``.
    """
    vectors = dataset.metadata.get("query_embeddings")
    if vectors is None:
        raise InvalidInputError(f"data set {dataset.name!r} has no query vectors: prepare it with a model")
    if not dataset.queries:
        raise InvalidInputError(
            f"data set {dataset.name!r} has no judged query: there is nothing to fit σ on"
        )
    kernels = dataset.metadata.get("kernels", {})
    names = [str(chunk.metadata.get("base_id", chunk.id)) for chunk in dataset.chunks]
    name_of = dict(zip((chunk.id for chunk in dataset.chunks), names, strict=True))
    targets = [
        sorted({name_of[one] for one in kernels.get(query_id) or dataset.ground_truth.get(query_id, [])})
        for query_id in dataset.query_ids
    ]
    known = dataset.metadata.get("facets") or {}
    facets = [
        [sorted({name_of.get(one, one) for one in ids}) for ids in known.get(query_id, {}).values() if ids]
        or [wanted]
        for query_id, wanted in zip(dataset.query_ids, targets, strict=True)
    ]
    return Labelled(
        corpus=np.stack([chunk.embedding for chunk in dataset.chunks]),
        queries=np.asarray(vectors),
        names=names,
        targets=targets,
        texts=[chunk.text for chunk in dataset.chunks] if dataset.worded else None,
        facets=facets if known else None,
    )


def calibrate(
    labelled: Labelled,
    redundant: Labelled | None = None,
    *,
    measure: Measure | None = None,
    model: str = "",
    k: int = 5,
    triage_k: int = 100,
    seed: int = 0,
    resamples: int = 1000,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Fit σ; keep it if it is significantly better than the rule on held-out queries.

    With few pairs, a wide interval, or a difference that could be chance, the rule stays, and ``reason`` says
    so.

    Args:
        labelled: The queries, their targets and the corpus.
        redundant: The same queries over the corpus with near-duplicates added, for a second trial.
        measure: ``"recall"`` of the targets, or ``"facets"`` found among k picks. By default facets if
            several passages cover the same one, otherwise recall.
        model: The fingerprint of the embedding model.
        k: How many passages are selected.
        triage_k: How many candidates they are selected from.
        seed: Seed of the split, the bootstrap and the permutation test.
        resamples: Number of resamples of the bootstrap.
        progress: Called with the number of processed queries: the held-out half on each corpus.

    Example::

        calibration = calibrate(labelled_by(dataset), model=model.fingerprint)
    """
    if k < 1 or triage_k < k:
        raise ConfigError(f"k must be >= 1 and triage_k >= k, got k={k}, triage_k={triage_k}")
    measure = measure_for(labelled, measure)
    hear = progress or (lambda done: None)
    queries = [_query(labelled, number, triage_k) for number in range(len(labelled.queries))]
    order = np.random.default_rng(seed).permutation(len(queries))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    sigma = fit_sigma([one.evidence for one in queries], resamples=resamples, seed=seed)
    whole = Calibration(
        kind="default",
        reason="",
        sigma=sigma,
        measure=measure,
        model=model,
        k=k,
        triage_k=triage_k,
        seed=seed,
        missed=sum(one.missed for one in queries),
    )
    if sigma.pairs < FEWEST_PAIRS:
        pairs = f"only {sigma.pairs} pair{'s' * (sigma.pairs != 1)}"
        return replace(whole, reason=f"{pairs}, at least {FEWEST_PAIRS} are needed: the default rule stays")
    half = fit_sigma([queries[i].evidence for i in fitted], resamples=1, seed=seed).value
    corpora = {"as it is": labelled} | ({} if redundant is None else {"with near-copies": redundant})
    trials: dict[str, dict[str, Any]] = {
        "sigma": {"sigma": half},
        "default": {},
        "nearest neighbours": {"method": TopK()},
    }
    found = {name: np.zeros((len(corpora), len(held))) for name in trials}
    for row, data in enumerate(corpora.values()):
        for column, number in enumerate(map(int, held)):
            near = queries[number].candidates if data is labelled else _candidates(data, number, triage_k)
            for name, rule in trials.items():
                picked = _picked(data, number, near, k, **rule)
                found[name][row, column] = _score(data, number, picked, measure)
            hear(row * len(held) + column + 1)
    gain = (found["sigma"] - found["default"]).mean(axis=0)
    (p,) = permutation_tests(gain[:, None], seed=seed)
    kind, reason = _choose(
        float(found["sigma"].mean()), float(found["default"].mean()), sigma, gain, p, measure
    )
    return replace(
        whole,
        kind=kind,
        reason=reason,
        p_value=round(p, 6),
        held_out={
            name: dict(zip(corpora, (round(float(mean), 6) for mean in table.mean(axis=1)), strict=True))
            for name, table in found.items()
        },
    )


def measure_for(labelled: Labelled, asked: Measure | None = None) -> Measure:
    """The requested measure, or the one that fits the judgements."""
    if asked == "facets" and labelled.facets is None:
        raise ConfigError(
            "these queries have no facets, so facets cannot be counted: use recall, or judge which passages "
            "cover which facet (qrels/subtopics.txt in a BEIR folder: query, facet, passage, grade)",
            field="measure",
        )
    return asked or ("facets" if labelled.has_shared_facets else "recall")


class _Candidates(NamedTuple):
    """The nearest rows of a query, and their near-duplicate groups if texts are known."""

    rows: IntArray
    groups: IntArray | None


class _Query(NamedTuple):
    """A query's candidates, the evidence on σ, and how many of its passages are not among them."""

    candidates: _Candidates
    evidence: Evidence
    missed: int


def _candidates(data: Labelled, query: int, triage_k: int) -> _Candidates:
    rows = data.nearest(query, triage_k)
    texts = data.texts
    groups = None if texts is None else candidate_groups(data.corpus[rows], [texts[row] for row in rows])
    return _Candidates(rows, groups)


def _query(labelled: Labelled, query: int, triage_k: int) -> _Query:
    candidates = _candidates(labelled, query, triage_k)
    cosine = labelled.corpus[candidates.rows] @ labelled.queries[query]
    wanted, names = set(labelled.targets[query]), [labelled.names[row] for row in candidates.rows]
    targets = np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.intp)
    evidence = Evidence(-(((1.0 - cosine) / 2.0) ** 2), targets)
    return _Query(candidates, evidence, len(wanted.difference(names)))


def _picked(
    data: Labelled,
    query: int,
    candidates: _Candidates,
    k: int,
    *,
    method: Dartboard | TopK | None = None,
    sigma: float | Auto = "auto",
) -> set[str]:
    """The names of the k picks."""
    rows, groups = candidates
    pool = from_embeddings(data.queries[query], data.corpus[rows], groups=groups, sigma=sigma)
    return {data.names[rows[i]] for i in (method or Dartboard()).select(pool, Limits(k=k)).indices}


def _score(data: Labelled, query: int, picked: set[str], measure: Measure) -> float:
    """The share of a query's targets, or of its facets, among the picks; 0 if it has none."""
    wanted = data.targets[query]
    if measure == "facets" and data.facets is not None:
        facets = data.facets[query] or [wanted]
        return sum(not picked.isdisjoint(names) for names in facets) / len(facets)
    return len(picked.intersection(wanted)) / len(set(wanted)) if wanted else 0.0


def _choose(
    ours: float, rule: float, sigma: Estimate, gain: FloatArray, p: float, measure: Measure
) -> tuple[Kind, str]:
    what, chance = _MEASURES[measure], "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if ours <= rule:
        return "default", f"the fitted σ does not beat the rule on held-out queries ({what} {rule:.3f})"
    if p >= LEVEL:
        return "default", (
            f"the fitted σ gets a {what} of {ours:.3f} on held-out queries, the rule {rule:.3f}, but the "
            f"difference could be chance ({chance}; {int((np.abs(gain) > TIE).sum())} of {len(gain)} queries "
            "differ)"
        )
    if not sigma.settled:
        return "default", (
            f"the fitted σ does best, but its interval, {sigma.interval}, is too wide to rely on: judgements "
            "are few or contradict each other"
        )
    return "sigma", f"{what} on held-out queries {ours:.3f}, against {rule:.3f} for the rule ({chance})"
