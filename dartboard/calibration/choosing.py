"""Fit on half of the queries, choose on the other half."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dartboard.calibration.labelled import Labelled
from dartboard.calibration.likelihood import FEWEST_PAIRS, Estimate, Evidence, fit_divisor, fit_sigma
from dartboard.calibration.stored import Calibration, Kind
from dartboard.errors import ConfigError
from dartboard.selection import Dartboard, Limits, TopK, bandwidth, from_embeddings
from dartboard.types import IntArray


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
    """A query's candidates by squared distance: plain, and over the square of what the rule divides."""
    rows = labelled.nearest(query, triage_k)
    pool = from_embeddings(labelled.queries[query], labelled.corpus[rows])
    squared = ((1.0 - pool.similarity) / 2.0) ** 2
    wanted = set(labelled.targets[query])
    targets = np.array([i for i, row in enumerate(rows) if labelled.names[row] in wanted], dtype=np.intp)
    distinct = np.unique(labelled.corpus[rows], axis=0)
    plain = bandwidth.from_candidates(distinct, "scaled_cosine").sigma
    median = plain.value * bandwidth.DIVISOR
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
    if not estimate.settled:
        return "default", (
            f"the {best} fitted best but its interval, {estimate.low:.3g} to {estimate.high:.3g}, is too "
            "wide to rely on: pairs are few or contradict each other"
        )
    return best, (
        f"recall on held-out queries {score[best]:.3f}, against {score['default']:.3f} for the rule"
    )
