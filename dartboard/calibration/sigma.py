"""Fit σ to labelled queries: fit on one half, choose on the other.

Half of the queries is a small sample, and equally good values can differ a lot on it. So a fitted value
replaces the rule only if it is significantly better, query by query
(:func:`dartboard.calibration.statistics.paired_permutation_test`).

There are two measures: the recall of the targets or, with judged facets, the share of a query's facets that k
picks cover (subtopic recall). σ is always fitted by maximum likelihood, from the distances of targets to
their query. The divisor is fitted by likelihood for recall. For facets it is the one of :data:`GRID` that
covers most of them, because the likelihood does not consider near-duplicates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dartboard.calibration.result import Calibration, Kind, Measure
from dartboard.calibration.statistics import (
    FEWEST_PAIRS,
    LEVEL,
    Estimate,
    Evidence,
    Recalls,
    fit_divisor,
    fit_sigma,
    format_p,
    mean_gain,
    mean_recalls,
    nonzero,
    paired_permutation_test,
)
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Dartboard, Limits, TopK, from_embeddings
from dartboard.selection.auto_sigma import DIVISOR
from dartboard.selection.kernels import unit_rows
from dartboard.types import Dataset, FloatArray, IntArray, check_matrix

GRID = tuple(round(DIVISOR * share, 4) for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0))
"""Divisors that are tried with the measure facets."""

_NAMES: dict[Kind, str] = {"sigma": "σ", "divisor": "divisor"}
_MEASURES: dict[Measure, str] = {"recall": "recall", "facets": "share of facets found"}


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
        if len(self.names) != len(self.corpus) or len(self.targets) != len(self.queries):
            raise InvalidInputError(
                f"{len(self.names)} names for {len(self.corpus)} passages, "
                f"{len(self.targets)} target lists for {len(self.queries)} queries: need one each"
            )
        if self.facets is not None and len(self.facets) != len(self.queries):
            raise InvalidInputError(
                f"facets of {len(self.facets)} queries for {len(self.queries)} queries: need one list each"
            )
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
        sorted(
            {
                name_of[chunk_id]
                for chunk_id in kernels.get(query_id) or dataset.ground_truth.get(query_id, [])
            }
        )
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
    """Fit σ and the rule's divisor; keep what is significantly better than the rule on held-out queries.

    With few pairs, a wide interval, or a difference that could be chance, the default rule stays, and
    ``reason`` says so.

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
        progress: Called with the number of processed queries: with facets all of them once, then the
            held-out half on each corpus.

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
    sigma = fit_sigma([one.plain for one in queries], resamples=resamples, seed=seed)
    if measure == "facets":
        shares = _shares_on_grid(labelled, queries, k, hear)
        divisor = _fit_on_grid(labelled, shares, resamples, seed)
    else:
        divisor = fit_divisor([one.scaled for one in queries], resamples=resamples, seed=seed)
    common: dict[str, Any] = {
        "sigma": sigma,
        "divisor": divisor,
        "measure": measure,
        "model": model,
        "k": k,
        "triage_k": triage_k,
        "seed": seed,
        "missed": sum(one.missed for one in queries),
    }
    if sigma.pairs < FEWEST_PAIRS:
        pairs = f"only {sigma.pairs} pair{'s' * (sigma.pairs != 1)}"
        why = f"{pairs}, at least {FEWEST_PAIRS} are needed: the default rule stays"
        return Calibration(kind="default", reason=why, **common)
    half_sigma = fit_sigma([queries[i].plain for i in fitted], resamples=1, seed=seed).value
    if measure == "facets":
        half_divisor = _best_on_grid(shares[fitted].mean(axis=0))
    else:
        half_divisor = fit_divisor([queries[i].scaled for i in fitted], resamples=1, seed=seed).value
    trials: dict[str, dict[str, Any]] = {
        "sigma": {"sigma": half_sigma},
        "divisor": {"divisor": half_divisor},
        "default": {"divisor": DIVISOR},
        "nearest neighbours": {"method": TopK()},
    }
    found: Recalls = {name: {} for name in trials}
    done = len(queries) if measure == "facets" else 0
    for corpus, data in (("as it is", labelled), ("with near-copies", redundant)):
        if data is None:
            continue
        for by_corpus in found.values():
            by_corpus[corpus] = np.zeros(len(held))
        for place, number in enumerate(map(int, held)):
            near = queries[number].candidates if data is labelled else _candidates(data, number, triage_k)
            for name, rule in trials.items():
                picked = _picked(data, number, near, k, **rule)
                found[name][corpus][place] = _score(data, number, picked, measure)
            done += 1
            hear(done)
    estimates: dict[Kind, Estimate] = {"divisor": divisor, "sigma": sigma}
    gains = {name: mean_gain(found[name], found["default"]) for name in estimates}
    p_values = {name: paired_permutation_test(gain, seed=seed) for name, gain in gains.items()}
    held_out = mean_recalls(found)
    kind, reason = _choose(held_out, estimates, gains, p_values, measure)
    return Calibration(
        kind=kind,
        reason=reason,
        held_out=held_out,
        p_values={name: round(p, 6) for name, p in p_values.items()},
        **common,
    )


def measure_for(labelled: Labelled, asked: Measure | None = None) -> Measure:
    """The requested measure, or the one that fits the judgements."""
    if asked == "facets" and labelled.facets is None:
        raise ConfigError(
            "these queries have no facets, so facets cannot be counted: use recall, or judge which passages "
            "cover which facet (qrels/subtopics.txt in a BEIR folder: query, facet, passage, grade)"
        )
    return asked or ("facets" if labelled.has_shared_facets else "recall")


class _Candidates(NamedTuple):
    """The nearest rows of a query, and their near-duplicate groups if texts are known."""

    rows: IntArray
    groups: IntArray | None


class _Query(NamedTuple):
    """A query's candidates by squared distance, unscaled and divided by the squared width of the pool.

    ``missed`` counts its passages that are not among them.
    """

    candidates: _Candidates
    plain: Evidence
    scaled: Evidence
    missed: int


def _candidates(data: Labelled, query: int, triage_k: int) -> _Candidates:
    rows = data.nearest(query, triage_k)
    texts = data.texts
    groups = None if texts is None else candidate_groups(data.corpus[rows], [texts[row] for row in rows])
    return _Candidates(rows, groups)


def _query(labelled: Labelled, query: int, triage_k: int) -> _Query:
    candidates = _candidates(labelled, query, triage_k)
    rows = candidates.rows
    pool = from_embeddings(labelled.queries[query], labelled.corpus[rows], groups=candidates.groups)
    squared = ((1.0 - pool.similarity) / 2.0) ** 2
    wanted, names = set(labelled.targets[query]), [labelled.names[row] for row in rows]
    targets = np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.intp)
    median = pool.sigma.value * DIVISOR
    missed = len(wanted.difference(names))
    return _Query(candidates, Evidence(-squared, targets), Evidence(-squared / median**2, targets), missed)


def _shares_on_grid(
    labelled: Labelled, queries: Sequence[_Query], k: int, hear: Callable[[int], None]
) -> FloatArray:
    """``(Q, len(GRID))``: the share of each query's facets that k picks cover, per divisor."""
    shares = np.zeros((len(queries), len(GRID)))
    for query, one in enumerate(queries):
        for place, divisor in enumerate(GRID):
            picked = _picked(labelled, query, one.candidates, k, divisor=divisor)
            shares[query, place] = _score(labelled, query, picked, "facets")
        hear(query + 1)
    return shares


def _best_on_grid(means: FloatArray) -> float:
    """The divisor with the best mean; ties go to the one nearest to the rule's."""
    best = np.flatnonzero(means >= means.max() - 1e-12)
    return min((GRID[i] for i in best), key=lambda divisor: abs(np.log(divisor / DIVISOR)))


def _fit_on_grid(labelled: Labelled, shares: FloatArray, resamples: int, seed: int) -> Estimate:
    """The divisor that covers most facets over all queries, with a bootstrap interval over queries."""
    count = len(shares)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)
    drawn = np.sort([_best_on_grid(means) for means in weights @ shares / count])
    low, high = (float(end) for end in np.quantile(drawn, [0.025, 0.975], method="nearest"))
    return Estimate(
        value=_best_on_grid(shares.mean(axis=0)),
        low=low,
        high=high,
        pairs=sum(len(facets) for facets in labelled.facets or ()),
        open_below=low <= GRID[0],
        open_above=high >= GRID[-1],
    )


def _picked(
    data: Labelled,
    query: int,
    candidates: _Candidates,
    k: int,
    *,
    method: Dartboard | TopK | None = None,
    **rule: Any,
) -> set[str]:
    """The names of the k picks."""
    rows, groups = candidates
    pool = from_embeddings(data.queries[query], data.corpus[rows], groups=groups, **rule)
    return {data.names[rows[i]] for i in (method or Dartboard()).select(pool, Limits(k=k)).indices}


def _score(data: Labelled, query: int, picked: set[str], measure: Measure) -> float:
    """The share of a query's targets, or of its facets, among the picks; 0 if it has none."""
    wanted = data.targets[query]
    if measure == "facets" and data.facets is not None:
        facets = data.facets[query] or [wanted]
        return sum(not picked.isdisjoint(names) for names in facets) / len(facets)
    return len(picked.intersection(wanted)) / len(set(wanted)) if wanted else 0.0


def _choose(
    held_out: dict[str, dict[str, float]],
    estimates: dict[Kind, Estimate],
    gains: dict[Kind, FloatArray],
    p_values: dict[Kind, float],
    measure: Measure = "recall",
) -> tuple[Kind, str]:
    score = {name: float(np.mean(list(by_corpus.values()))) for name, by_corpus in held_out.items()}
    better = [name for name in estimates if score[name] > score["default"]]
    what = _MEASURES[measure]
    if not better:
        return "default", (
            f"nothing fitted beats the default rule on held-out queries ({what} {score['default']:.3f})"
        )
    better.sort(key=lambda name: -score[name])  # stable: the divisor is first in a tie
    for name in better:
        if p_values[name] < LEVEL and estimates[name].settled:
            return name, (
                f"{what} on held-out queries {score[name]:.3f}, against {score['default']:.3f} for the rule "
                f"({format_p(p_values[name])})"
            )
    best = better[0]
    if p_values[best] < LEVEL:
        return "default", (
            f"the fitted {_NAMES[best]} does best, but its interval, {estimates[best].interval}, is too "
            "wide to rely on: judgements are few or contradict each other"
        )
    return "default", (
        f"the fitted {_NAMES[best]} gets a {what} of {score[best]:.3f} on held-out queries, the rule "
        f"{score['default']:.3f}, but the difference could be chance ({format_p(p_values[best])}; "
        f"{len(nonzero(gains[best]))} of {len(gains[best])} queries differ)"
    )
