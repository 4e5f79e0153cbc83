"""Fit α of a hybrid retriever, the weight of its first member, on labelled queries.

Both members score every query's candidates once; each α of a grid then only changes the weights. The result
is the best α on all queries. Cross-validation measures its benefit: no query is scored with an α that it
helped to choose. The interval comes from a bootstrap over queries. Ties go to the α nearest to .7.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation import metric_formulas
from dartboard.evaluation.judged_run import JudgedRun
from dartboard.evaluation.judgements import Judgements
from dartboard.retrievers.base import Retriever
from dartboard.retrievers.hybrid import ALPHA, DEPTH, HybridRetriever, normalised
from dartboard.retrievers.query import Query
from dartboard.stores import Collection

Grades = Mapping[str, float]
Measure = Callable[[Sequence[str], Grades], float]
Scores = npt.NDArray[np.float64]
Listener = Callable[[int, int], None]

GRID: tuple[float, ...] = tuple(step / 20 for step in range(21))
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaFit:
    """The fitted α and its benefit.

    ``interval`` contains 95 % of the bootstrap's α. ``score`` is the metric of α on all queries, ``held_out``
    that of cross-validation, and ``default`` that of α = .7. ``by_alpha`` has the metric of the whole grid;
    its ends are the single members. ``gain`` is the 95 % interval of held-out minus default, per query.
    ``alpha_without`` is the α of each query's fold, fitted on the other queries.
    """

    alpha: float
    interval: tuple[float, float]
    score: float
    held_out: float
    default: float
    gain: tuple[float, float]
    by_alpha: Mapping[float, float]
    alpha_without: Mapping[str, float]
    metric: str
    queries: int
    normalise: str


def fit_alpha(
    members: Sequence[Retriever],
    collection: Collection,
    queries: Mapping[str, str],
    relevant: Mapping[str, Grades],
    *,
    metric: str | Measure = "ndcg@10",
    grid: Sequence[float] = GRID,
    normalise: str = "minmax",
    depth: int = DEPTH,
    folds: int = 5,
    resamples: int = 1000,
    seed: int = 0,
    progress: Listener | None = None,
) -> AlphaFit:
    """Fit α for two members on labelled queries.

    Args:
        members: The two retrievers.
        collection: The collection to search.
        queries: Text by query id; queries without a relevant chunk are skipped.
        relevant: By query id, the grade (> 0) of each relevant chunk.
        metric: ``ndcg@K``, ``recall@K``, or a function of the ranked ids and the query's grades.
        grid: The values of α to try.
        normalise, depth: As in :class:`HybridRetriever`.
        folds: Number of folds of the cross-validation.
        resamples: Number of resamples of the bootstrap.
        seed: Seed of folds and bootstrap.
        progress: Called with the number of finished queries and of all queries.

    Returns:
        The fitted α and its benefit.
    """
    hybrid = HybridRetriever(members, alpha=ALPHA, normalise=normalise, depth=depth)
    measure = measure_of(metric)
    alphas = sorted({*map(float, grid), ALPHA})
    if not alphas or not 0 <= alphas[0] <= alphas[-1] <= 1:
        raise ConfigError(f"the grid must lie in [0, 1], got {alphas}")
    judged = [name for name in queries if any(grade > 0 for grade in relevant.get(name, {}).values())]
    if not 2 <= folds <= len(judged):
        raise InvalidInputError(
            f"{len(judged)} queries with a relevant chunk for {folds} folds: need at least as many, and two"
        )
    hybrid.check(collection)
    table = np.empty((len(judged), len(alphas)))
    for row, name in enumerate(judged):
        table[row] = _by_alpha(hybrid, collection, queries[name], relevant[name], alphas, measure)
        if progress:
            progress(row + 1, len(judged))
    return _fitted(table, judged, alphas, folds, resamples, seed, str(metric), normalise)


def _by_alpha(
    hybrid: HybridRetriever,
    collection: Collection,
    query: str,
    grades: Grades,
    alphas: Sequence[float],
    measure: Measure,
) -> list[float]:
    """The metric of one query at every α."""
    candidates, scores_of = hybrid.member_scores(collection, Query(query), hybrid.depth)
    first, second = (normalised(row, hybrid.normalise) for row in scores_of)
    ids = np.array(candidates.ids)  # sorted, so that a stable sort breaks ties by id
    scores = (alpha * first + (1.0 - alpha) * second for alpha in alphas)
    return [measure(ids[np.argsort(-score, kind="stable")].tolist(), grades) for score in scores]


def _fitted(
    table: Scores,
    names: Sequence[str],
    alphas: Sequence[float],
    folds: int,
    resamples: int,
    seed: int,
    metric: str,
    normalise: str,
) -> AlphaFit:
    source = np.random.default_rng(seed)
    count = len(table)
    parts = np.array_split(source.permutation(count), folds)
    held_out, chosen = np.empty(count), np.empty(count)
    for part in parts:
        at = _best(np.delete(table, part, axis=0).mean(axis=0), alphas)
        chosen[part] = alphas[at]
        held_out[part] = table[part, at]
    drawn = source.integers(0, count, (resamples, count))
    fitted = [alphas[_best(table[rows].mean(axis=0), alphas)] for rows in drawn]
    means = table.mean(axis=0)
    at = _best(means, alphas)
    default = table[:, alphas.index(ALPHA)]
    return AlphaFit(
        alpha=alphas[at],
        interval=_interval(fitted),
        score=float(means[at]),
        held_out=float(held_out.mean()),
        default=float(default.mean()),
        gain=_interval((held_out - default)[drawn].mean(axis=1)),
        by_alpha=dict(zip(alphas, means.tolist(), strict=True)),
        alpha_without=dict(zip(names, chosen.tolist(), strict=True)),
        metric=metric,
        queries=count,
        normalise=normalise,
    )


def _best(means: Scores, alphas: Sequence[float]) -> int:
    top = np.flatnonzero(means >= means.max() - _SAME).tolist()
    return int(min(top, key=lambda at: (abs(alphas[at] - ALPHA), at)))


def _interval(values: npt.ArrayLike) -> tuple[float, float]:
    low, high = np.quantile(np.asarray(values, dtype=np.float64), [0.025, 0.975])
    return float(low), float(high)


def measure_of(metric: str | Measure) -> Measure:
    """``ndcg@K`` (gains are grades, discount log2(rank + 1)), ``recall@K``, or the function itself."""
    if not isinstance(metric, str):
        return metric
    kind, _, depth = metric.partition("@")
    formula = {"ndcg": metric_formulas.ndcg_linear, "recall": metric_formulas.recall}.get(kind)
    if formula is None or not depth.isdigit() or int(depth) < 1:
        raise ConfigError(f"unknown metric {metric!r}: use ndcg@K, recall@K or a function", field="metric")

    def measure(ranked: Sequence[str], grades: Grades) -> float:
        run = JudgedRun.of({"": ranked}, Judgements(qrels={"": grades}))
        return float(formula(run, int(depth))[0])

    return measure
