"""σ estimated from pairs of a query and the passage it means, instead of tuned.

Dartboard takes the query to lie around its target with spread σ: ``P(t|q) ∝ exp(-d(q,t)² / 2σ²)`` over the
candidates. Given pairs of queries and known targets, σ is therefore estimated by maximum likelihood. In
``β = 1/2σ²`` the likelihood is that of an exponential family with the statistic ``-d²``: it is concave and
has one maximum, where the expected squared distance under the model equals the one observed. The same
holds for two relatives, which differ only in the statistic:

* the divisor of the label-free rule ``σ = median / divisor``: ``-(d / median)²``;
* the temperature τ of pair scores in the hybrid variant, ``P ∝ exp(score / τ)``: ``score``.

Intervals are bootstrapped over queries. :func:`calibrate` fits σ and the divisor on half of the queries and
keeps what selects best on the other half, on the corpus as it is and with near-copies added.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import Dartboard, Limits, TopK, bandwidth, from_embeddings
from dartboard.selection.kernels import unit_rows
from dartboard.types import Dataset, FloatArray, IntArray, check_matrix

FORMAT = 1
FEWEST_PAIRS = 20
"""Fewer pairs than this say too little: the label-free rule stays."""

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


@dataclass(frozen=True, slots=True)
class Evidence:
    """The candidates of one query: a statistic that is larger for likelier ones, and which are targets."""

    statistic: FloatArray
    targets: IntArray


def fit_sigma(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """σ from evidence whose statistic is the *squared* distance, negated."""
    return _fit(evidence, lambda steepness: math.sqrt(0.5 / steepness), resamples, seed)


def fit_divisor(evidence: Sequence[Evidence], *, resamples: int = 1000, seed: int = 0) -> Estimate:
    """The divisor of the rule, from squared distances over the squared median of their pool, negated."""
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


Kind = Literal["sigma", "divisor", "default"]

WIDEST = 3.0
"""An interval whose ends differ by more than this factor settles nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What to use for ``sigma="auto"``, and why.

    ``kind`` is ``sigma`` (the number ``sigma.value`` for every query), ``divisor`` (the rule with the
    divisor ``divisor.value``), or ``default`` (the rule as it comes). ``held_out`` is the recall of the
    targets on queries that were not fitted on, for each kind: on the corpus as it is, and with near-copies.
    """

    kind: Kind
    reason: str
    sigma: Estimate
    divisor: Estimate
    held_out: dict[str, dict[str, float]] = field(default_factory=dict)
    distance: str = "scaled_cosine"
    model: str = ""
    k: int = 5
    triage_k: int = 100
    seed: int = 0

    def sigma_or_rule(self) -> tuple[float | Literal["auto"], float]:
        """σ for selection, and the divisor of the rule where σ is ``"auto"``."""
        if self.kind == "sigma":
            return self.sigma.value, bandwidth.DIVISOR
        return "auto", self.divisor.value if self.kind == "divisor" else bandwidth.DIVISOR

    def check(self, model: str, distance: str) -> None:
        """A calibration holds for the model and the distance that it was made with."""
        if self.distance != distance or (self.model and self.model != model):
            raise ConfigError(
                f"this calibration was made with model {self.model!r} and distance {self.distance!r}, not "
                f"{model!r} and {distance!r}: calibrate again"
            )

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON."""
        Path(path).write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            stored = json.loads(Path(path).read_text())
            if stored.pop("format") != FORMAT:
                raise InvalidInputError(f"{path}: a calibration of another format: calibrate again")
            sigma, divisor = (Estimate(**stored.pop(name)) for name in ("sigma", "divisor"))
            return cls(sigma=sigma, divisor=divisor, **stored)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise InvalidInputError(f"{path} is no calibration ({error}): calibrate again") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Queries with what they mean, by vectors: the corpus ``(N, d)``, the queries ``(m, d)``.

    ``targets`` are the names of each query's passages, and ``names`` the name of each row of the corpus;
    near-copies bear the name of their original, so that any of them counts.
    """

    corpus: FloatArray
    queries: FloatArray
    names: Sequence[str]
    targets: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        dim = check_matrix(self.corpus, name="corpus").shape[1]
        check_matrix(self.queries, name="queries", dim=dim)
        if len(self.names) != len(self.corpus) or len(self.targets) != len(self.queries):
            raise InvalidInputError(
                f"{len(self.names)} names for {len(self.corpus)} passages, "
                f"{len(self.targets)} target lists for {len(self.queries)} queries: need one each"
            )
        for name in ("corpus", "queries"):
            object.__setattr__(self, name, unit_rows(getattr(self, name)))

    def nearest(self, query: int, count: int) -> IntArray:
        """Rows of the corpus nearest to a query by cosine, nearest first."""
        cosine = self.corpus @ self.queries[query]
        count = min(count, len(cosine))
        near = np.argpartition(-cosine, count - 1)[:count]
        return near[np.lexsort((near, -cosine[near]))]


def labelled_by(dataset: Dataset) -> Labelled:
    """The pairs of a data set: each query with its kernel where it has one, else with all that is relevant.

    Query vectors are those in ``metadata["query_embeddings"]``.
    """
    vectors = dataset.metadata.get("query_embeddings")
    if vectors is None:
        raise InvalidInputError(f"data set {dataset.name!r} has no query vectors: prepare it with a model")
    kernels = dataset.metadata.get("kernels", {})
    names = [str(chunk.metadata.get("base_id", chunk.id)) for chunk in dataset.chunks]
    name_of = dict(zip((chunk.id for chunk in dataset.chunks), names, strict=True))
    targets = [
        sorted(
            {
                name_of[chunk_id]
                for chunk_id in kernels.get(query_id) or dataset.ground_truth.get(query_id, [])
            }
        )
        for query_id in dataset.query_ids
    ]
    return Labelled(
        corpus=np.stack([chunk.embedding for chunk in dataset.chunks]),
        queries=np.asarray(vectors),
        names=names,
        targets=targets,
    )


def calibrate(
    labelled: Labelled,
    redundant: Labelled | None = None,
    *,
    model: str = "",
    k: int = 5,
    triage_k: int = 100,
    seed: int = 0,
    resamples: int = 1000,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Fit σ and the rule's divisor; keep what selects best on held-out queries.

    ``redundant`` are the same queries over the corpus with near-copies added. Where pairs are few, or an
    interval is wide, the rule stays as it comes and ``reason`` says so. ``progress`` hears how many
    queries are worked through, of twice as many as there are held out.
    """
    if k < 1 or triage_k < k:
        raise ConfigError(f"k must be >= 1 and triage_k >= k, got k={k}, triage_k={triage_k}")
    evidence = [_evidence(labelled, query, triage_k) for query in range(len(labelled.queries))]
    order = np.random.default_rng(seed).permutation(len(evidence))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    sigma = fit_sigma([e[0] for e in evidence], resamples=resamples, seed=seed)
    divisor = fit_divisor([e[1] for e in evidence], resamples=resamples, seed=seed)
    common: dict[str, Any] = {
        "sigma": sigma,
        "divisor": divisor,
        "model": model,
        "k": k,
        "triage_k": triage_k,
    }
    if sigma.pairs < FEWEST_PAIRS:
        why = f"only {sigma.pairs} pairs, at least {FEWEST_PAIRS} are needed: the rule stays as it comes"
        return Calibration(kind="default", reason=why, seed=seed, **common)
    trial = {
        "sigma": fit_sigma([evidence[i][0] for i in fitted], resamples=1, seed=seed).value,
        "divisor": fit_divisor([evidence[i][1] for i in fitted], resamples=1, seed=seed).value,
        "default": bandwidth.DIVISOR,
    }
    held_out = _held_out(labelled, redundant, held, trial, k, triage_k, progress)
    kind, reason = _choose(held_out, sigma, divisor)
    return Calibration(kind=kind, reason=reason, held_out=held_out, seed=seed, **common)


def _evidence(labelled: Labelled, query: int, triage_k: int) -> tuple[Evidence, Evidence]:
    """A query's candidates by squared distance, plain and over the squared median of the pool."""
    rows = labelled.nearest(query, triage_k)
    pool = from_embeddings(labelled.queries[query], labelled.corpus[rows])
    squared = ((1.0 - pool.similarity) / 2.0) ** 2
    wanted = set(labelled.targets[query])
    targets = np.array([i for i, row in enumerate(rows) if labelled.names[row] in wanted], dtype=np.intp)
    median = pool.sigma.value * bandwidth.DIVISOR
    return Evidence(-squared, targets), Evidence(-squared / median**2, targets)


def _held_out(
    labelled: Labelled,
    redundant: Labelled | None,
    queries: IntArray,
    trial: dict[str, float],
    k: int,
    triage_k: int,
    progress: Callable[[int], None] | None,
) -> dict[str, dict[str, float]]:
    """Mean recall of the targets for each kind, and for nearest neighbours, on each corpus."""
    found: dict[str, dict[str, float]] = {name: {} for name in (*trial, "nearest neighbours")}
    done = 0
    for corpus, data in (("as it is", labelled), ("with near-copies", redundant)):
        if data is None:
            continue
        sums = dict.fromkeys(found, 0.0)
        for query in queries:
            for name, recall in _recalls(data, int(query), trial, k, triage_k).items():
                sums[name] += recall / len(queries)
            done += 1
            if progress:
                progress(done)
        for name, total in sums.items():
            found[name][corpus] = round(total, 6)
    return found


def _recalls(data: Labelled, query: int, trial: dict[str, float], k: int, triage_k: int) -> dict[str, float]:
    wanted = set(data.targets[query])
    if not wanted:
        return {}
    rows = data.nearest(query, triage_k)
    vectors, asked = data.corpus[rows], data.queries[query]
    recalls = {}
    for name, value in (*trial.items(), ("nearest neighbours", bandwidth.DIVISOR)):
        if name == "sigma":
            pool = from_embeddings(asked, vectors, sigma=value)
        else:
            pool = from_embeddings(asked, vectors, divisor=value)
        method = TopK() if name == "nearest neighbours" else Dartboard()
        picked = {data.names[rows[i]] for i in method.select(pool, Limits(k=k)).indices}
        recalls[name] = len(picked & wanted) / len(wanted)
    return recalls


def _choose(held_out: dict[str, dict[str, float]], sigma: Estimate, divisor: Estimate) -> tuple[Kind, str]:
    score = {name: float(np.mean(list(by_corpus.values()))) for name, by_corpus in held_out.items()}
    kinds: tuple[Kind, ...] = ("default", "divisor", "sigma")
    best = max(kinds, key=lambda name: score[name])
    if score[best] == score["default"]:
        return (
            "default",
            f"nothing fitted beats the rule as it comes on held-out queries ({score['default']:.3f})",
        )
    estimate = sigma if best == "sigma" else divisor
    if estimate.at_edge or estimate.high > WIDEST * estimate.low:
        return "default", (
            f"the {best} fitted best but its interval, {estimate.low:.3g} to {estimate.high:.3g}, is too "
            "wide to rely on: pairs are few or contradict each other"
        )
    return best, (
        f"recall on held-out queries {score[best]:.3f}, against {score['default']:.3f} for the rule"
    )
