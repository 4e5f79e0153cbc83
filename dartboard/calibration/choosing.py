"""Fit on half of the queries, choose on the other half.

Half of some queries is few, and differences between two numbers that suit equally well are larger there than
they look: what is fitted replaces the rule only where it beats it by more than chance, query by query
(:mod:`dartboard.calibration.chance`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dartboard.calibration.chance import LEVEL, Recalls, chance, differing, gain_over, means_of, said
from dartboard.calibration.labelled import Labelled
from dartboard.calibration.likelihood import FEWEST_PAIRS, Estimate, Evidence, fit_divisor, fit_sigma
from dartboard.calibration.stored import Calibration, Kind
from dartboard.errors import ConfigError
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Dartboard, Limits, TopK, from_embeddings
from dartboard.selection.auto_sigma import DIVISOR, auto_sigma
from dartboard.selection.kernels import distances, unit_rows
from dartboard.types import FloatArray, IntArray


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
    """Fit σ and the rule's divisor; keep what beats the rule on held-out queries by more than chance.

    ``redundant`` are the same queries over the corpus with near-copies added. Where pairs are few, an
    interval is wide, or the difference could be chance, the rule stays as it comes and ``reason`` says so.
    ``progress`` hears how many queries are worked through, of twice as many as there are held out.
    """
    if k < 1 or triage_k < k:
        raise ConfigError(f"k must be >= 1 and triage_k >= k, got k={k}, triage_k={triage_k}")
    seen = [_seen(labelled, query, triage_k) for query in range(len(labelled.queries))]
    order = np.random.default_rng(seed).permutation(len(seen))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    sigma = fit_sigma([one.plain for one in seen], resamples=resamples, seed=seed)
    divisor = fit_divisor([one.scaled for one in seen], resamples=resamples, seed=seed)
    common: dict[str, Any] = {
        "sigma": sigma,
        "divisor": divisor,
        "model": model,
        "k": k,
        "triage_k": triage_k,
        "missed": sum(one.missed for one in seen),
    }
    if sigma.pairs < FEWEST_PAIRS:
        pairs = f"only {sigma.pairs} pair{'s' * (sigma.pairs != 1)}"
        why = f"{pairs}, at least {FEWEST_PAIRS} are needed: the rule stays as it comes"
        return Calibration(kind="default", reason=why, seed=seed, **common)
    trial = {
        "sigma": fit_sigma([seen[i].plain for i in fitted], resamples=1, seed=seed).value,
        "divisor": fit_divisor([seen[i].scaled for i in fitted], resamples=1, seed=seed).value,
        "default": DIVISOR,
    }
    recalls = _held_out(labelled, redundant, held, trial, k, triage_k, progress)
    estimates: dict[Kind, Estimate] = {"divisor": divisor, "sigma": sigma}
    gains = {name: gain_over(recalls[name], recalls["default"]) for name in estimates}
    p_values = {name: chance(gain, seed=seed) for name, gain in gains.items()}
    held_out = means_of(recalls)
    kind, reason = _choose(held_out, estimates, gains, p_values)
    return Calibration(
        kind=kind,
        reason=reason,
        held_out=held_out,
        p_values={name: round(p, 6) for name, p in p_values.items()},
        seed=seed,
        **common,
    )


class _Seen(NamedTuple):
    """A query's candidates by squared distance, plain and over the square of what the rule divides.

    ``missed`` of its passages are not among them.
    """

    plain: Evidence
    scaled: Evidence
    missed: int


def _seen(labelled: Labelled, query: int, triage_k: int) -> _Seen:
    rows = labelled.nearest(query, triage_k)
    pool = from_embeddings(labelled.queries[query], labelled.corpus[rows])
    squared = ((1.0 - pool.similarity) / 2.0) ** 2
    wanted, names = set(labelled.targets[query]), [labelled.names[row] for row in rows]
    targets = np.array([i for i, name in enumerate(names) if name in wanted], dtype=np.intp)
    unit = unit_rows(np.unique(labelled.corpus[rows], axis=0))
    median = auto_sigma(distances(unit, unit, "scaled_cosine"), "scaled_cosine").value * DIVISOR
    missed = len(wanted.difference(names))
    return _Seen(Evidence(-squared, targets), Evidence(-squared / median**2, targets), missed)


def _held_out(
    labelled: Labelled,
    redundant: Labelled | None,
    queries: IntArray,
    trial: dict[str, float],
    k: int,
    triage_k: int,
    progress: Callable[[int], None] | None,
) -> Recalls:
    """The recall of the targets for each kind, and for nearest neighbours, on each corpus."""
    found: Recalls = {name: {} for name in (*trial, "nearest neighbours")}
    done = 0
    for corpus, data in (("as it is", labelled), ("with near-copies", redundant)):
        if data is None:
            continue
        for by_corpus in found.values():
            by_corpus[corpus] = np.zeros(len(queries))
        for place, query in enumerate(queries):
            for name, recall in _recalls(data, int(query), trial, k, triage_k).items():
                found[name][corpus][place] = recall
            done += 1
            if progress:
                progress(done)
    return found


def _recalls(data: Labelled, query: int, trial: dict[str, float], k: int, triage_k: int) -> dict[str, float]:
    wanted = set(data.targets[query])
    if not wanted:
        return {}
    rows = data.nearest(query, triage_k)
    vectors, asked = data.corpus[rows], data.queries[query]
    groups = None if data.texts is None else candidate_groups(vectors, [data.texts[row] for row in rows])
    recalls = {}
    for name, value in (*trial.items(), ("nearest neighbours", DIVISOR)):
        if name == "sigma":
            pool = from_embeddings(asked, vectors, sigma=value, groups=groups)
        else:
            pool = from_embeddings(asked, vectors, divisor=value, groups=groups)
        method = TopK() if name == "nearest neighbours" else Dartboard()
        picked = {data.names[rows[i]] for i in method.select(pool, Limits(k=k)).indices}
        recalls[name] = len(picked & wanted) / len(wanted)
    return recalls


def _choose(
    held_out: dict[str, dict[str, float]],
    estimates: dict[Kind, Estimate],
    gains: dict[Kind, FloatArray],
    p_values: dict[Kind, float],
) -> tuple[Kind, str]:
    score = {name: float(np.mean(list(by_corpus.values()))) for name, by_corpus in held_out.items()}
    better = [name for name in estimates if score[name] > score["default"]]
    if not better:
        return (
            "default",
            f"nothing fitted beats the rule as it comes on held-out queries ({score['default']:.3f})",
        )
    better.sort(key=lambda name: -score[name])  # the divisor first where both are level
    for name in better:
        if p_values[name] < LEVEL and estimates[name].settled:
            return name, (
                f"recall on held-out queries {score[name]:.3f}, against {score['default']:.3f} for the rule "
                f"({said(p_values[name])})"
            )
    best = better[0]
    if p_values[best] < LEVEL:
        return "default", (
            f"the fitted {_NAMES[best]} does best, but its interval, {estimates[best].interval}, is too "
            "wide to rely on: pairs are few or contradict each other"
        )
    return "default", (
        f"the fitted {_NAMES[best]} gets a recall of {score[best]:.3f} on held-out queries, the rule "
        f"{score['default']:.3f}, but the difference could be chance ({said(p_values[best])}; "
        f"{len(differing(gains[best]))} of {len(gains[best])} queries differ)"
    )


_NAMES: dict[Kind, str] = {"sigma": "σ", "divisor": "divisor"}
