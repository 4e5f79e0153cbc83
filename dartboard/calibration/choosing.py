"""Fit on half of the queries, choose on the other half.

Half of some queries is few, and differences between two numbers that suit equally well are larger there than
they look: what is fitted replaces the rule only where it beats it by more than chance, query by query
(:mod:`dartboard.calibration.chance`).

Two measures: the recall of the targets, or, where facets are judged, the share of a query's facets that k
picks cover (subtopic recall). σ is always fitted by likelihood, which says how far targets lie from their
query. The divisor is fitted by likelihood for recall, and for facets as the one of :data:`GRID` that covers
most of them, since likelihood knows nothing about two passages that say the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dartboard.calibration.chance import LEVEL, Recalls, chance, differing, gain_over, means_of, said
from dartboard.calibration.labelled import Labelled
from dartboard.calibration.likelihood import FEWEST_PAIRS, Estimate, Evidence, fit_divisor, fit_sigma
from dartboard.calibration.stored import Calibration, Kind, Measure
from dartboard.errors import ConfigError
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Dartboard, Limits, TopK, from_embeddings
from dartboard.selection.auto_sigma import DIVISOR
from dartboard.types import FloatArray, IntArray

GRID = tuple(round(DIVISOR * share, 4) for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0))
"""Divisors that are tried where facets decide."""


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
    """Fit σ and the rule's divisor; keep what beats the rule on held-out queries by more than chance.

    Where pairs are few, an interval is wide, or the difference could be chance, the rule stays as it comes
    and ``reason`` says so.

    Parameters
    ----------
    redundant
        The same queries over the corpus with near-copies added, for a second trial.
    measure
        ``"recall"`` of the targets, or ``"facets"`` found among k picks; without it facets where several
        passages cover the same one, else recall.
    progress
        Hears how many queries are worked through: with facets all of them once, and then those held out,
        which are half, on each corpus.
    """
    if k < 1 or triage_k < k:
        raise ConfigError(f"k must be >= 1 and triage_k >= k, got k={k}, triage_k={triage_k}")
    measure = measure_for(labelled, measure)
    seen = [_seen(labelled, query, triage_k) for query in range(len(labelled.queries))]
    order = np.random.default_rng(seed).permutation(len(seen))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    sigma = fit_sigma([one.plain for one in seen], resamples=resamples, seed=seed)
    if measure == "facets":
        shares = _shares_on_grid(labelled, seen, k, progress)
        divisor = _fit_on_grid(labelled, shares, resamples, seed)
        trial_divisor = _best_on_grid(shares[fitted].mean(axis=0)) if len(fitted) else DIVISOR
    else:
        divisor = fit_divisor([one.scaled for one in seen], resamples=resamples, seed=seed)
    common: dict[str, Any] = {
        "sigma": sigma,
        "divisor": divisor,
        "measure": measure,
        "model": model,
        "k": k,
        "triage_k": triage_k,
        "missed": sum(one.missed for one in seen),
    }
    if sigma.pairs < FEWEST_PAIRS:
        pairs = f"only {sigma.pairs} pair{'s' * (sigma.pairs != 1)}"
        why = f"{pairs}, at least {FEWEST_PAIRS} are needed: the rule stays as it comes"
        return Calibration(kind="default", reason=why, seed=seed, **common)
    if measure == "recall":
        trial_divisor = fit_divisor([seen[i].scaled for i in fitted], resamples=1, seed=seed).value
    trial = {
        "sigma": fit_sigma([seen[i].plain for i in fitted], resamples=1, seed=seed).value,
        "divisor": trial_divisor,
        "default": DIVISOR,
    }
    before = len(seen) if measure == "facets" else 0
    corpora = {
        "as it is": (labelled, [seen[i].candidates for i in held]),
        "with near-copies": (redundant, None),
    }
    found: Recalls = {name: {} for name in (*trial, "nearest neighbours")}
    for corpus, (data, known) in corpora.items():
        if data is None:
            continue
        for by_corpus in found.values():
            by_corpus[corpus] = np.zeros(len(held))
        for place, query in enumerate(held):
            candidates = known[place] if known else _Candidates.of(data, int(query), triage_k)
            for name, score in _scores(data, int(query), candidates, trial, k, measure).items():
                found[name][corpus][place] = score
            if progress:
                progress(before + place + 1)
        before += len(held)
    estimates: dict[Kind, Estimate] = {"divisor": divisor, "sigma": sigma}
    gains = {name: gain_over(found[name], found["default"]) for name in estimates}
    p_values = {name: chance(gain, seed=seed) for name, gain in gains.items()}
    held_out = means_of(found)
    kind, reason = _choose(held_out, estimates, gains, p_values, measure)
    return Calibration(
        kind=kind,
        reason=reason,
        held_out=held_out,
        p_values={name: round(p, 6) for name, p in p_values.items()},
        seed=seed,
        **common,
    )


def measure_for(labelled: Labelled, asked: Measure | None = None) -> Measure:
    """Return the measure that was asked for, or the one that suits the judgements."""
    if asked == "facets" and labelled.facets is None:
        raise ConfigError(
            "these queries have no facets, so facets cannot be counted: use recall, or judge which passages "
            "cover which facet (qrels/subtopics.txt in a BEIR folder: query, facet, passage, grade)"
        )
    return asked or ("facets" if labelled.has_shared_facets else "recall")


class _Candidates(NamedTuple):
    """The nearest rows of a query, and their near-duplicate groups where texts are known."""

    rows: IntArray
    groups: IntArray | None

    @classmethod
    def of(cls, data: Labelled, query: int, triage_k: int) -> "_Candidates":
        rows = data.nearest(query, triage_k)
        if data.texts is None:
            return cls(rows, None)
        return cls(rows, candidate_groups(data.corpus[rows], [data.texts[row] for row in rows]))


class _Seen(NamedTuple):
    """A query's candidates by squared distance, plain and over the square of what the rule divides.

    ``missed`` of its passages are not among them.
    """

    candidates: _Candidates
    plain: Evidence
    scaled: Evidence
    missed: int


def _seen(labelled: Labelled, query: int, triage_k: int) -> _Seen:
    candidates = _Candidates.of(labelled, query, triage_k)
    rows = candidates.rows
    pool = from_embeddings(labelled.queries[query], labelled.corpus[rows], groups=candidates.groups)
    squared = ((1.0 - pool.similarity) / 2.0) ** 2
    wanted, names = set(labelled.targets[query]), [labelled.names[row] for row in rows]
    targets = np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.intp)
    median = pool.sigma.value * DIVISOR
    missed = len(wanted.difference(names))
    return _Seen(candidates, Evidence(-squared, targets), Evidence(-squared / median**2, targets), missed)


def _shares_on_grid(
    labelled: Labelled, seen: Sequence[_Seen], k: int, progress: Callable[[int], None] | None
) -> FloatArray:
    """``(Q, len(GRID))``: the share of each query's facets that k picks cover with each divisor."""
    shares = np.zeros((len(seen), len(GRID)))
    for query, one in enumerate(seen):
        for place, divisor in enumerate(GRID):
            picked = _picked(labelled, query, one.candidates, k, divisor=divisor)
            shares[query, place] = _score(labelled, query, picked, "facets")
        if progress:
            progress(query + 1)
    return shares


def _best_on_grid(means: FloatArray) -> float:
    """The divisor that covers most; of equal ones the nearest to the rule's."""
    best = np.flatnonzero(means >= means.max() - 1e-12)
    return min((GRID[i] for i in best), key=lambda divisor: abs(np.log(divisor / DIVISOR)))


def _fit_on_grid(labelled: Labelled, shares: FloatArray, resamples: int, seed: int) -> Estimate:
    """The divisor that covers most facets over all queries, with a bootstrapped interval over queries."""
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


def _scores(
    data: Labelled, query: int, candidates: _Candidates, trial: dict[str, float], k: int, measure: Measure
) -> dict[str, float]:
    """The measure of one query for each kind, and for nearest neighbours."""
    picked = {
        "sigma": _picked(data, query, candidates, k, sigma=trial["sigma"]),
        "divisor": _picked(data, query, candidates, k, divisor=trial["divisor"]),
        "default": _picked(data, query, candidates, k, divisor=trial["default"]),
        "nearest neighbours": _picked(data, query, candidates, k, method=TopK()),
    }
    return {name: _score(data, query, names, measure) for name, names in picked.items()}


def _picked(
    data: Labelled,
    query: int,
    candidates: _Candidates,
    k: int,
    *,
    method: Dartboard | TopK | None = None,
    **rule: Any,
) -> set[str]:
    """The names of k picks."""
    rows, groups = candidates
    pool = from_embeddings(data.queries[query], data.corpus[rows], groups=groups, **rule)
    return {data.names[rows[i]] for i in (method or Dartboard()).select(pool, Limits(k=k)).indices}


def _score(data: Labelled, query: int, picked: set[str], measure: Measure) -> float:
    """The share of a query's targets, or of its facets, among the picks; 0 where it has none."""
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
            f"nothing fitted beats the rule as it comes on held-out queries ({what} {score['default']:.3f})"
        )
    better.sort(key=lambda name: -score[name])  # the divisor first where both are level
    for name in better:
        if p_values[name] < LEVEL and estimates[name].settled:
            return name, (
                f"{what} on held-out queries {score[name]:.3f}, against {score['default']:.3f} for the rule "
                f"({said(p_values[name])})"
            )
    best = better[0]
    if p_values[best] < LEVEL:
        return "default", (
            f"the fitted {_NAMES[best]} does best, but its interval, {estimates[best].interval}, is too "
            "wide to rely on: judgements are few or contradict each other"
        )
    return "default", (
        f"the fitted {_NAMES[best]} gets a {what} of {score[best]:.3f} on held-out queries, the rule "
        f"{score['default']:.3f}, but the difference could be chance ({said(p_values[best])}; "
        f"{len(differing(gains[best]))} of {len(gains[best])} queries differ)"
    )


_NAMES: dict[Kind, str] = {"sigma": "σ", "divisor": "divisor"}
_MEASURES: dict[Measure, str] = {"recall": "recall", "facets": "share of facets found"}
