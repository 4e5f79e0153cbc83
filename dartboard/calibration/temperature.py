"""The temperature of pair scores in the hybrid variant; fitted and chosen like σ.

``P(t|q) ∝ exp(score / τ)`` over the candidates. Without labels, τ is the standard deviation of a query's
scores. With pairs, it is fitted by maximum likelihood on half of the queries, and kept if it selects
significantly better on the other half.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dartboard.calibration.result import Temperature, scorer_name
from dartboard.calibration.sigma import labelled_by
from dartboard.calibration.statistics import (
    FEWEST_PAIRS,
    LEVEL,
    Estimate,
    fit_temperature,
    format_p,
    mean_gain,
    mean_recalls,
    paired_permutation_test,
)
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.vectors import Scores
from dartboard.errors import ConfigError
from dartboard.pair_scores import hybrid_pool
from dartboard.selection import Dartboard, Limits, from_embeddings
from dartboard.selection.kernels import Auto
from dartboard.types import Dataset, FloatArray, IntArray


def calibrate_temperature(
    dataset: Dataset,
    scorer: PairScorer,
    redundant: Dataset | None = None,
    *,
    k: int = 5,
    triage_k: int = 100,
    seed: int = 0,
    resamples: int = 1000,
    progress: Callable[[int], None] | None = None,
) -> Temperature:
    """Fit τ; keep it if it is significantly better than each query's standard deviation on held-out queries.

    Args:
        dataset: Labelled queries with texts.
        scorer: The pair scorer.
        redundant: The same queries over the corpus with near-duplicates added.
        k: How many passages are selected.
        triage_k: How many candidates they are selected from.
        seed: Seed of the split, the bootstrap and the permutation test.
        resamples: Number of resamples of the bootstrap.
        progress: Called with the number of scored queries: all of them on the original corpus, then half of
            them on the other.
    """
    if k < 1 or triage_k < k:
        raise ConfigError(f"k must be >= 1 and triage_k >= k, got k={k}, triage_k={triage_k}")
    order = np.random.default_rng(seed).permutation(len(dataset.queries))
    fitted, held = order[: len(order) // 2], order[len(order) // 2 :]
    hear = progress or (lambda done: None)
    plain = _Scored(dataset, scorer, order, triage_k, hear)
    estimate = plain.fit(order, resamples, seed)
    common: dict[str, Any] = {"estimate": estimate, "scorer": scorer_name(scorer)}
    if estimate.pairs < FEWEST_PAIRS:
        few = f"only {estimate.pairs} pairs, at least {FEWEST_PAIRS} are needed"
        why = f"{few}: τ stays the standard deviation of each query's scores"
        return Temperature(kind="auto", reason=why, **common)
    trial = plain.fit(fitted, 1, seed).value
    corpora = {"as it is": plain}
    if redundant is not None:
        corpora["with near-copies"] = _Scored(
            redundant, scorer, held, triage_k, lambda done: hear(len(order) + done)
        )
    recalls = {
        "fitted": {corpus: data.recalls(held, trial, k) for corpus, data in corpora.items()},
        "auto": {corpus: data.recalls(held, "auto", k) for corpus, data in corpora.items()},
    }
    held_out = mean_recalls(recalls)
    p = paired_permutation_test(mean_gain(recalls["fitted"], recalls["auto"]), seed=seed)
    kind, reason = _choose(held_out, estimate, p)
    return Temperature(kind=kind, reason=reason, held_out=held_out, p_value=round(p, 6), **common)


class _Scored:
    """The candidates of some queries of a data set with their pair scores."""

    def __init__(
        self,
        dataset: Dataset,
        scorer: PairScorer,
        queries: IntArray,
        triage_k: int,
        progress: Callable[[int], None],
    ) -> None:
        self._labelled = labelled_by(dataset)
        self._rows: dict[int, IntArray] = {}
        self._scores: dict[int, Scores] = {}
        for done, query in enumerate(map(int, queries), start=1):
            self._rows[query] = self._labelled.nearest(query, triage_k)
            texts = [dataset.chunks[row].text for row in self._rows[query]]
            distinct = list(dict.fromkeys(texts))
            found = dict(zip(distinct, scorer.score(dataset.queries[query], distinct), strict=True))
            self._scores[query] = np.array([found[text] for text in texts], dtype=np.float64)
            progress(done)

    def fit(self, queries: IntArray, resamples: int, seed: int) -> Estimate:
        """τ by maximum likelihood over these queries."""
        scores, targets = [], []
        for query in map(int, queries):
            wanted = set(self._labelled.targets[query])
            scores.append(self._scores[query])
            targets.append(
                [i for i, row in enumerate(self._rows[query]) if self._labelled.names[row] in wanted]
            )
        return fit_temperature(scores, targets, resamples=resamples, seed=seed)

    def recalls(self, queries: IntArray, tau: float | Auto, k: int) -> FloatArray:
        """The share of each query's targets among k picks of the hybrid variant; 0 if it has none."""
        return np.array([self._recall(int(query), tau, k) for query in queries])

    def _recall(self, query: int, tau: float | Auto, k: int) -> float:
        data, rows, wanted = self._labelled, self._rows[query], set(self._labelled.targets[query])
        if not wanted:
            return 0.0
        by_vector = from_embeddings(data.queries[query], data.corpus[rows], sigma=tau)
        # Candidates are identified by position: their scores are known, so no text is read again.
        places = [str(place) for place in range(len(rows))]
        pool = hybrid_pool(_Known(self._scores[query]), [""], places, tau, by_vector, np.ones(1))
        picks = Dartboard().select(pool, Limits(k=k)).indices
        return len({data.names[rows[i]] for i in picks} & wanted) / len(wanted)


@dataclass(frozen=True, slots=True)
class _Known:
    """A pair scorer with known scores: passages are positions in its list."""

    scores: Scores
    bounds: tuple[float, float] = (0.0, 1.0)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        return self.scores[[int(place) for place in passages]]

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        raise NotImplementedError("the hybrid variant asks for the query's side alone")


def _choose(
    held_out: dict[str, dict[str, float]], estimate: Estimate, p: float
) -> tuple[Literal["fitted", "auto"], str]:
    score = {name: float(np.mean(list(by_corpus.values()))) for name, by_corpus in held_out.items()}
    if score["fitted"] <= score["auto"]:
        return "auto", (
            f"the fitted τ does not beat the standard deviation of each query's scores on held-out queries "
            f"({score['fitted']:.3f} against {score['auto']:.3f})"
        )
    if p >= LEVEL:
        return "auto", (
            f"the fitted τ gets a recall of {score['fitted']:.3f} on held-out queries, each query's "
            f"standard deviation {score['auto']:.3f}, but the difference could be chance ({format_p(p)})"
        )
    if not estimate.settled:
        return "auto", (
            f"the fitted τ does best, but its interval, {estimate.interval}, is too wide to rely on: "
            "pairs are few or contradict each other"
        )
    return "fitted", (
        f"recall on held-out queries {score['fitted']:.3f}, against {score['auto']:.3f} for the "
        f"standard deviation of each query's scores ({format_p(p)})"
    )
