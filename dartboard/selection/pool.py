"""A query's candidates as arrays: how relevant each is, and how well it covers each target.

A pool has n candidates and T targets, any of which may be what the query is after. ``log_weights`` is
log P(t|q) up to a constant; the kernel's entry (c, t) is how well candidate c covers target t. The targets
are the candidates themselves, as in the paper, or a vocabulary.

Candidates with equal vectors share one *row* of the kernel, so that a copy of a pick has a gain of exactly
zero. Near-duplicates share one as well once they are removed (:meth:`Pool.without_near_duplicates`).

A question with parts is asked as m questions. With weights λ_j that sum to 1,

    P(t|q) = Σ_j λ_j · P(t|q_j),        Σ_t P(t|q_j) = 1,

and nothing else changes: the objective, its greedy loop and its bound are those of one question. Each
question's probabilities sum to 1 before they are mixed, so that one whose passages are all far away counts
as much as the others. The share of question j in a target, ``λ_j · P(t|q_j) / P(t|q)``, splits each gain.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.kernel import (
    DIVISOR,
    LARGEST_COMPONENT,
    SAMPLE,
    Auto,
    Distance,
    Sigma,
    check_distance,
    choose_sigma,
    distances,
    exact_distances,
    log_kernel,
    log_sum_exp,
    prepared,
)
from dartboard.types import FloatArray, IntArray, as_matrix, check_matrix, check_vector, refuse_masked
from dartboard.utils import row_dots, unit_rows

MOST_QUESTIONS = 16

MOST_CANDIDATES = 10_000
"""Selection compares all pairs: so many take about 2.5 GB and half a minute."""

LARGEST_LOG = 1e300
"""Sums of log-probabilities beyond would leave the number format."""

NEIGHBOUR_SHARE = 0.2
"""β of :func:`spread_to_neighbours`; ``docs/how-to/context.md`` has the measurements."""

_LARGEST_SCORE = 1e100


class Origin(NamedTuple):
    """A query and its candidates as the caller gave them: vectors, or distances where ``vectors`` is False.

    Kept so that a result can be drawn when somebody looks at it; nothing is copied until then.
    """

    query: Any
    candidates: Any
    distance: Distance
    vectors: bool = True


Groups = npt.ArrayLike | Callable[[FloatArray], IntArray]
"""Near-duplicate groups, or a function that finds them from the candidates' cosines, ``(n, n)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one query. Built by :func:`from_embeddings` and its sisters, not by hand.

    ``positions`` are the candidates' places in the arrays that the caller gave. ``similarity``, ``relevance``
    (log P(c|q) up to a constant), ``row_of`` (kernel row) and ``target_of`` (kernel column, None where the
    targets are a vocabulary) run along the candidates, ``log_weights`` along the targets. ``log_kernel`` is
    ``(rows, T)`` and ``closeness``, ``(rows, rows)``, what MMR compares: cosines where there are vectors.

    ``groups`` are the near-duplicate groups, ``near_copies`` how many near-duplicates were removed;
    ``content`` then orders the candidates of a row that are equally relevant: by their vectors, not by their
    places. ``preference``, ``(n,)``, says which of several near-duplicates to pick: the largest instead of
    the most relevant. ``questions``, ``(m, n)``, are the shares of several questions in each candidate's
    probability; ``(m, T)`` where the targets are a vocabulary.
    """

    positions: IntArray
    similarity: FloatArray
    relevance: FloatArray
    row_of: IntArray
    target_of: IntArray | None
    log_weights: FloatArray
    log_kernel: FloatArray
    closeness: FloatArray
    sigma: Sigma
    origin: Origin | None = None
    groups: IntArray | None = None
    near_copies: int = 0
    content: IntArray | None = None
    preference: FloatArray | None = None
    questions: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def rows(self) -> int:
        """How many distinct candidates there are."""
        return len(self.log_kernel)

    @property
    def units(self) -> IntArray:
        """``(n,)`` which candidates count once: near-duplicates where these are known, else equal vectors."""
        return self.row_of if self.groups is None else self.groups

    def by_row(self) -> tuple[IntArray, IntArray]:
        """Candidates row by row, the preferred or most relevant of each first; and where each row starts."""
        if self.rows == len(self):
            order = np.empty(len(self), dtype=np.intp)
            order[self.row_of] = np.arange(len(self))
            return order, np.arange(len(self))
        first = () if self.preference is None else (-self.preference,)
        order = np.lexsort((*self._ties(), -self.relevance, *first, self.row_of))
        return order, np.searchsorted(self.row_of[order], np.arange(self.rows))

    def by_relevance(self) -> IntArray:
        """Candidates, the most relevant first, then by row, then by content."""
        return np.lexsort((*self._ties(), self.row_of, -self.relevance))

    def _ties(self) -> tuple[IntArray, ...]:
        return (self.positions,) if self.content is None else (self.positions, self.content)

    def find(self, positions: Sequence[int]) -> list[int]:
        """Candidates by their places in the caller's arrays."""
        return [int(np.flatnonzero(self.positions == position)[0]) for position in positions]

    def rows_of(self, positions: Sequence[int]) -> list[int]:
        """The kernel rows of candidates by their places in the caller's arrays, each row once."""
        return list(dict.fromkeys(int(self.row_of[candidate]) for candidate in self.find(positions)))

    def reweighted(self, relevance: npt.ArrayLike, weights: FloatArray | None = None) -> "Pool":
        """The same candidates with log P(c|q), ``(n,)``, from elsewhere (:func:`log_softmax` of scores).

        For several questions it is ``(m, n)``, and ``weights``, ``(m,)``, are theirs.
        """
        questions = self.questions
        if weights is not None:
            given = check_log_probs(relevance, (len(weights), len(self)), "relevance")
            relevance, mixed = mixed_relevance(given, weights, self.units)
            questions = questions if self.target_of is None else mixed
        given = check_log_probs(relevance, (len(self),), "relevance")
        log_weights = self.log_weights if self.target_of is None else _summed(given, self.target_of)
        return replace(self, relevance=given, log_weights=log_weights, questions=questions)

    def with_cosine_kernel(self, sigma: Sigma) -> "Pool":
        """The same, covering one another by ``(1 + cos) / 2``; ``sigma`` is what made the relevance."""
        origin = self.origin
        if (
            self.target_of is None
            or origin is None
            or (origin.vectors, origin.distance)
            != (
                True,
                "scaled_cosine",
            )
        ):
            raise ConfigError("a cosine kernel needs a pool of vectors under the scaled cosine distance")
        shares = np.clip(0.5 + 0.5 * self.closeness, 0.0, 1.0)
        np.fill_diagonal(shares, 1.0)
        with np.errstate(divide="ignore"):
            return replace(self, log_kernel=np.log(shares), sigma=sigma)

    def restrict(self, keep: npt.NDArray[np.bool_]) -> "Pool":
        """The pool without some candidates: they are neither picked nor targets. σ stays."""
        if keep.all():
            return self
        if not keep.any():
            raise InvalidInputError("no candidate is left: all are excluded or below the relevance floor")
        kept, by_word = np.flatnonzero(keep), self.target_of is None
        return replace(
            self._merged(kept, np.arange(len(kept))),
            positions=self.positions[kept],
            similarity=self.similarity[kept],
            relevance=self.relevance[kept],
            preference=None if self.preference is None else self.preference[kept],
            questions=self.questions if self.questions is None or by_word else self.questions[:, kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def without_near_duplicates(self) -> "Pool":
        """The same candidates, each near-duplicate in one row with the most relevant of its group.

        The others are no targets. They can still be picked, gaining nothing, when nothing else is left.
        """
        if self.groups is None:
            return self
        order = self.by_relevance()
        _, firsts, members = np.unique(self.groups[order], return_index=True, return_inverse=True)
        if len(firsts) == len(self):
            return replace(self, groups=None)
        group_of = members[np.argsort(order)]
        merged = self._merged(order[firsts], group_of)
        return replace(merged, groups=None, near_copies=len(self) - len(firsts), content=self.row_of)

    def _merged(self, some: IntArray, place_of: IntArray) -> "Pool":
        """Rows and targets of the candidates ``some``; ``place_of`` says which of these replaces each."""
        rows, row_of = np.unique(self.row_of[some], return_inverse=True)
        merged = replace(self, row_of=row_of[place_of], closeness=self.closeness[np.ix_(rows, rows)])
        if self.target_of is None:
            return replace(merged, log_kernel=self.log_kernel[rows])
        targets, target_of = np.unique(self.target_of[some], return_inverse=True)
        return replace(
            merged,
            target_of=target_of[place_of],
            log_weights=_summed(self.relevance[some], target_of),
            log_kernel=self.log_kernel[np.ix_(rows, targets)],
        )


def from_embeddings(
    query: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    targets: npt.ArrayLike | None = None,
    target_distances: FloatArray | None = None,
    model_sigma: float | None = None,
    divisor: float = DIVISOR,
    groups: Groups | None = None,
    ranking: npt.ArrayLike | None = None,
    prefer: npt.ArrayLike | None = None,
) -> Pool:
    """Candidates by their vectors, ``(n, d)``, float32 or float64, of any length.

    Args:
        query: ``(d,)``, or several questions, ``(m, d)``: P(t|q) is then the mixture of theirs
            (:func:`mixture`), with ``weights``, ``(m,)``, equal by default.
        targets: ``(T, d)`` a vocabulary to cover instead of the candidates. ``target_distances``, ``(n, T)``,
            saves working out the candidates' distances to it.
        model_sigma: the σ of the model that made the vectors, for pools too small to tell; ``divisor`` is
            that of the rule for ``"auto"``.
        groups: ``(n,)`` numbers: candidates with equal ones are near-duplicates, of which one is kept; or a
            function that finds them from the candidates' cosines, ``(n, n)``.
        ranking: ``(n,)``, or ``(m, n)`` for several questions, scores of a retriever whose order counts, not
            the distances to the query. Their scale is the retriever's own, so only the order is taken: the
            best candidate gets the largest query probability of the pool, the next one the second largest …
            Equal scores share their mean.
        prefer: ``(n,)`` numbers: of near-duplicates, the one with the largest is picked, not the most
            relevant one.
    """
    kind = check_distance(distance)
    vectors = as_matrix(embeddings)
    if len(vectors) > MOST_CANDIDATES:
        raise InvalidInputError(
            f"{len(vectors):,} candidates: selection compares all pairs, so at most {MOST_CANDIDATES:,} are "
            "allowed. Give those nearest to the query"
        )
    asked = check_queries(query, vectors.shape[1])
    shares = check_weights(weights, len(asked))
    scores = None if ranking is None else check_rankings(ranking, len(asked), len(vectors))
    unit = unit_rows(vectors, np.float64)
    cosines = np.array([row_dots(unit, one) for one in unit_rows(asked, np.float64)])
    np.clip(cosines, -1.0, 1.0, out=cosines)
    similarity: FloatArray = cosines.max(axis=0)
    if kind == "scaled_cosine":
        to_query, closest = 0.5 - 0.5 * cosines, similarity
    else:
        check_matrix(vectors)
        exact = prepared(vectors, kind)
        apart = [exact - one for one in prepared(asked, kind)]
        to_query = np.sqrt([row_dots(rows, rows) for rows in apart])
        closest = -to_query.min(axis=0)
    order, row_of = distinct_rows(vectors, closest)
    rows = unit[order]
    gram = rows @ rows.T
    if not (gram.diagonal() > 0.5).all():  # a row without length: zero, NaN or infinite
        check_matrix(vectors)
    between = exact_distances(rows, gram, kind) if kind == "scaled_cosine" else _euclidean(exact[order])
    group_of = None
    if groups is not None:
        found_groups = groups(gram[np.ix_(row_of, row_of)]) if callable(groups) else groups
        group_of = check_groups(found_groups, len(vectors))
    near = between[:SAMPLE, :SAMPLE]
    if group_of is not None:
        best = None if scores is None else scores.max(axis=0)[order]
        kept = _representatives(group_of[order][:SAMPLE], best)
        near = near[np.ix_(kept, kept)] if len(kept) < len(near) else near
    rounding = 8.0 * float(np.finfo(vectors.dtype).eps)
    found = choose_sigma(sigma, near, kind, rounding=rounding, model_sigma=model_sigma, divisor=divisor)
    by_question = log_kernel(to_query, found.value)
    if scores is not None:
        by_question = np.stack([in_order_of(*pair) for pair in zip(scores, by_question, strict=True)])
    relevance, questions = mixed_relevance(by_question, shares, row_of if group_of is None else group_of)
    pool = Pool(
        positions=np.arange(len(vectors)),
        similarity=similarity,
        relevance=relevance,
        questions=questions,
        row_of=row_of,
        target_of=row_of,
        log_weights=_summed(relevance, row_of),
        log_kernel=log_kernel(between, found.value),
        closeness=gram,
        sigma=found,
        origin=Origin(query, embeddings, kind),
        groups=group_of,
        preference=None if prefer is None else _check_scores(prefer, len(vectors), "prefer"),
    )
    if targets is None:
        return pool
    words = prepared(check_matrix(targets, name="targets", dim=vectors.shape[1]), kind)
    by_word = log_kernel(distances(words, prepared(asked, kind), kind).T, found.value)
    log_weights, questions = mixed_relevance(by_word, shares)
    known = None if target_distances is None else target_distances[order]
    covered = distances(prepared(vectors[order], kind), words, kind) if known is None else known
    return replace(
        pool,
        target_of=None,
        log_weights=log_weights,
        questions=questions,
        log_kernel=log_kernel(covered, found.value),
    )


def from_distances(
    query_distances: npt.ArrayLike,
    pairwise_distances: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Pool:
    """Candidates by their distances to the query, ``(n,)``, and to one another, ``(n, n)``.

    Distances to several questions are ``(m, n)``, with ``weights``, ``(m,)``, equal by default.
    ``groups`` are near-duplicates, as in :func:`from_embeddings`. Similarities are reported as ``1 - 2d`` for
    the scaled cosine and ``-d`` for the Euclidean distance.
    """
    kind = check_distance(distance)
    pairwise = _check_distances(pairwise_distances, "pairwise_distances")
    if pairwise.ndim != 2 or pairwise.shape[0] != pairwise.shape[1]:
        raise InvalidInputError(f"pairwise_distances must be a square matrix, got shape {pairwise.shape}")
    to_query: FloatArray = _check_distances(query_distances, "query_distances")
    if to_query.shape[-1:] != (len(pairwise),) or to_query.ndim > 2:
        raise InvalidInputError(
            f"query_distances has shape {to_query.shape}: pairwise_distances asks for ({len(pairwise)},)"
        )
    to_query = np.atleast_2d(to_query)
    shares, closest = check_weights(weights, len(to_query)), to_query.min(axis=0)
    near = np.argsort(closest, kind="stable")[:SAMPLE]
    between = pairwise[np.ix_(near, near)]
    between = (between + between.T) / 2.0  # pair scores need not be symmetric
    distinct = ~np.triu(between == 0.0, 1).any(axis=0)
    found = choose_sigma(sigma, between[np.ix_(distinct, distinct)], kind)
    closeness = (lambda d: 1.0 - 2.0 * d) if kind == "scaled_cosine" else np.negative
    origin = Origin(query_distances, pairwise_distances, kind, vectors=False)
    group_of = None if groups is None else check_groups(groups, len(pairwise))
    relevance, questions = mixed_relevance(log_kernel(to_query, found.value), shares, group_of)
    pool = _matrix_pool(
        log_kernel(pairwise, found.value), closeness(pairwise), relevance, closeness(closest), found, origin
    )
    return replace(pool, questions=questions, groups=group_of)


def from_log_probs(query_log_probs: npt.ArrayLike, pairwise_log_probs: npt.ArrayLike) -> Pool:
    """Candidates by log P(t|q), ``(n,)``, and log P(t|c) as ``pairwise_log_probs[c, t]``, ``(n, n)``.

    ``-inf`` is a probability of 0. Similarities are reported as these log-probabilities.
    """
    relevance = check_log_probs(query_log_probs, (np.size(query_log_probs),), "query_log_probs")
    pairwise = check_log_probs(pairwise_log_probs, (relevance.size,) * 2, "pairwise_log_probs")
    return _matrix_pool(pairwise, pairwise, relevance, relevance, Sigma(float("nan"), "none"))


def _matrix_pool(
    log_matrix: FloatArray,
    closeness: FloatArray,
    relevance: FloatArray,
    similarity: FloatArray,
    sigma: Sigma,
    origin: Origin | None = None,
) -> Pool:
    if len(relevance) == 0:
        raise InvalidInputError("a pool needs at least one candidate")
    rows, row_of = distinct_rows(log_matrix, relevance)
    return Pool(
        positions=np.arange(len(relevance)),
        similarity=similarity,
        relevance=relevance,
        row_of=row_of,
        target_of=np.arange(len(relevance)),
        log_weights=relevance,
        log_kernel=log_matrix[rows],
        closeness=closeness[np.ix_(rows, rows)],
        sigma=sigma,
        origin=origin,
    )


def spread_to_neighbours(
    pool: Pool, adjacent: Sequence[tuple[int, int]], share: float = NEIGHBOUR_SHARE
) -> Pool:
    """The pool with a share of each candidate's probability on its neighbours in a document.

    A chunk that matches a question is often cut off from its answer, which is in the chunk before or after:

        P'(t) = (1 - β) · P(t) + β · Σ_s P(s) · A[s, t],

    where A spreads the probability of a chunk evenly over its neighbours. A chunk without neighbours keeps
    what it has.

    Args:
        pool: candidates of a query.
        adjacent: pairs of candidates, by position, that are neighbours in a document.
        share: β.
    """
    if not adjacent:
        return pool
    one, other = np.array(adjacent, dtype=np.intp).T
    start, end = np.append(one, other), np.append(other, one)
    neighbours = np.bincount(start, minlength=len(pool))
    kept = np.where(neighbours > 0, np.log1p(-share), 0.0)
    spread = pool.relevance + kept
    np.logaddexp.at(spread, end, pool.relevance[start] + np.log(share / neighbours[start]))
    return pool.reweighted(spread)


def log_softmax(scores: npt.ArrayLike, temperature: float | Auto = "auto") -> FloatArray:
    """Log target weights from any retriever's scores: ``log softmax(scores / temperature)``.

    The scale of scores is the retriever's own, so the default temperature is their standard deviation.
    """
    refuse_masked(scores, "scores")
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or values.size == 0 or not (np.abs(values) < _LARGEST_SCORE).all():
        raise InvalidInputError(f"scores must be a vector of finite numbers below {_LARGEST_SCORE:g} in size")
    if temperature == "auto":
        temperature = float(values.std()) or 1.0
    elif not isinstance(temperature, (int, float, np.number)) or not 0 < temperature < np.inf:
        raise ConfigError(f"temperature must be a finite number > 0 or 'auto', got {temperature!r}")
    with np.errstate(over="ignore"):  # scores too far below the best get a probability of 0
        logits: FloatArray = (values - values.max()) / temperature
    logits[logits < -LARGEST_LOG] = -np.inf
    logits -= log_sum_exp(logits[None])[0]
    return logits


def in_order_of(
    scores: npt.ArrayLike, values: FloatArray, *, strictly_by: Sequence[str] | None = None
) -> FloatArray:
    """The same values, dealt out so that a higher score has a larger one; equal scores share their mean.

    ``strictly_by`` are ids: equal scores then go by id, and no two values stay equal.
    """
    given = _check_scores(scores, len(values))
    if strictly_by is None:
        _, group, size = np.unique(given, return_inverse=True, return_counts=True)
        total = np.zeros(len(size))
        np.add.at(total, np.sort(group), np.sort(values))
        dealt: FloatArray = (total / size)[group]
        return dealt
    order = sorted(range(len(given)), key=lambda i: (-given[i], strictly_by[i]))
    falling = np.sort(values.astype(np.float64))[::-1].copy()
    for place in range(1, len(falling)):
        falling[place] = min(falling[place], np.nextafter(falling[place - 1], -np.inf))
    dealt = np.empty_like(falling)
    dealt[order] = falling
    return dealt


def with_lowest(scores: npt.ArrayLike, count: int) -> FloatArray:
    """Scores, ``(n,)`` or ``(m, n)``, and ``count`` more candidates that score as the lowest."""
    given = np.asarray(scores, dtype=np.float64)
    lowest = given.min(axis=-1, keepdims=True).repeat(count, axis=-1)
    return np.concatenate([given, lowest], axis=-1)


def distinct_rows(vectors: FloatArray, closeness: FloatArray) -> tuple[IntArray, IntArray]:
    """One of each distinct row, the closest first, and for every row which of these it equals.

    The order depends on content alone, not on where rows stood, so the same candidates in another order give
    the same rows.
    """
    order = np.argsort(-closeness, kind="stable")
    ordered = closeness[order]
    starts = np.ones(len(order), dtype=bool)
    level = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    if len(level):
        starts[level] = (vectors[order[level]] != vectors[order[level - 1]]).any(axis=1)
    if starts[level].any():  # as close as another, and not equal: by content
        keys = [(vectors[i] + 0.0).tobytes() for i in range(len(vectors))]  # -0.0 equals 0.0
        order = np.array(sorted(range(len(keys)), key=lambda i: (-closeness[i], keys[i])), dtype=np.intp)
        starts[1:] = [keys[one] != keys[other] for one, other in zip(order[1:], order[:-1], strict=True)]
    row_of = np.empty(len(order), dtype=np.intp)
    row_of[order] = np.cumsum(starts) - 1
    return order[starts], row_of


def mixed_relevance(
    relevance: FloatArray, weights: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """:func:`mixture`; of one question the row itself, and no shares."""
    return (relevance[0], None) if len(relevance) == 1 else mixture(relevance, weights, groups)


def mixture(
    relevance: FloatArray, weights: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mix log P(c|q_j), ``(m, n)``, each up to a constant.

    Args:
        relevance: a row a question, a column a candidate.
        weights: ``(m,)``, sum to 1.
        groups: ``(n,)``: candidates with equal numbers count once, as the most probable of them.

    Returns:
        log P(c|q), ``(n,)``, and each question's share in it, ``(m, n)``, whose columns sum to 1.
    """
    distinct = relevance
    if groups is not None:
        _, group_of = np.unique(groups, return_inverse=True)
        distinct = np.full((len(relevance), int(group_of.max()) + 1), -math.inf)
        for best, values in zip(distinct, relevance, strict=True):
            np.maximum.at(best, group_of, values)
    totals = log_sum_exp(distinct)
    totals = np.where(totals > -math.inf, totals, 0.0)  # of a question that no candidate answers
    parts = relevance - totals[:, None] + np.log(weights)[:, None]
    mixed = log_sum_exp(parts.T)
    with np.errstate(under="ignore"):
        shares = np.exp(parts - np.where(mixed > -math.inf, mixed, 0.0))
    shares[:, mixed == -math.inf] = weights[:, None]
    return mixed, shares


def check_queries(query: npt.ArrayLike, dim: int) -> FloatArray:
    """One question, ``(d,)``, or several, ``(m, d)``, as a matrix whose rows are usable vectors.

    Raises:
        InvalidInputError: a row is unusable, or there are more than ``MOST_QUESTIONS``.
    """
    if dimensions_of(query) != 2:
        return check_vector(query, name="query", dim=dim)[None]
    asked = as_matrix(query, name="queries", dim=dim)
    if len(asked) > MOST_QUESTIONS:
        raise InvalidInputError(f"{len(asked)} questions at once: at most {MOST_QUESTIONS} are allowed")
    for place, one in enumerate(asked):
        check_vector(one, name=f"query {place}" if len(asked) > 1 else "query")
    return asked


def dimensions_of(values: npt.ArrayLike) -> int:
    """How many dimensions an array has; 1 for a ragged list, which later checks name."""
    try:
        return np.ndim(values)
    except ValueError:
        return 1


def check_weights(weights: npt.ArrayLike | None, questions: int) -> FloatArray:
    """``(m,)`` weights of questions that sum to 1; equal ones where none are given.

    Raises:
        ConfigError: not one a question, or one is not a finite number above 0.
    """
    if weights is None:
        return np.full(questions, 1.0 / questions)
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.array(np.nan)
    if given.shape != (questions,):
        count = given.size if given.ndim == 1 else f"an array of shape {given.shape}"
        raise ConfigError(f"weights must be one number per question: got {count} for {questions}")
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise ConfigError(f"weights must be finite numbers > 0, got {given.tolist()}")
    shares: FloatArray = given / given.max()
    shares /= shares.sum()
    return shares


def check_rankings(ranking: npt.ArrayLike, questions: int, n: int) -> FloatArray:
    """``(m, n)`` scores of a retriever: for one question also as ``(n,)``."""
    if questions == 1 and np.ndim(ranking) != 2:
        return _check_scores(ranking, n)[None]
    if np.shape(ranking) != (questions, n):
        raise InvalidInputError(
            f"scores have shape {np.shape(ranking)}: {questions} questions need ({questions}, {n})"
        )
    return np.stack([_check_scores(one, n) for one in np.asarray(ranking, dtype=np.float64)])


def check_log_probs(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """Log-probabilities as float64: finite or ``-inf``, not all ``-inf``."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"{name} has shape {array.shape} where {shape} is expected")
    lowest, highest = (array.min(), array.max()) if array.size else (0.0, 0.0)  # NaN where there is any
    if not highest < np.inf:
        raise InvalidInputError(f"{name} contains NaN or +infinity: log-probabilities are finite or -inf")
    if highest == -np.inf:
        raise InvalidInputError(f"{name} gives every entry a probability of 0")
    if highest > LARGEST_LOG or (
        lowest < -LARGEST_LOG and ((array < -LARGEST_LOG) & (array > -np.inf)).any()
    ):
        raise InvalidInputError(
            f"{name} must lie between -{LARGEST_LOG:g} and {LARGEST_LOG:g}, or be -inf: a probability of 0"
        )
    return array


def check_groups(groups: npt.ArrayLike, n: int) -> IntArray:
    """``(n,)`` group numbers."""
    given = np.asarray(groups)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InvalidInputError(f"groups must be {n} whole numbers, equal for near-duplicates")
    return given.astype(np.intp)


def _check_scores(scores: npt.ArrayLike, n: int, name: str = "scores") -> FloatArray:
    refuse_masked(scores, name)
    given = np.asarray(scores, dtype=np.float64)
    if given.shape != (n,) or not np.isfinite(given).all():
        raise InvalidInputError(f"{name} must be {n} finite numbers, one a candidate")
    return given


def _check_distances(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all() or array.min() < 0:
        raise InvalidInputError(f"{name} must be finite numbers >= 0, got shape {array.shape}")
    if array.max() > LARGEST_COMPONENT:
        raise InvalidInputError(f"{name} must be at most {LARGEST_COMPONENT:g}: scale them")
    return array


def _euclidean(rows: FloatArray) -> FloatArray:
    return exact_distances(rows, rows @ rows.T, "euclidean")


def _representatives(groups: IntArray, scores: FloatArray | None) -> IntArray:
    """The best row of each group, by score where there are any, else the first; in order."""
    order = np.arange(len(groups))
    if scores is not None:
        order = np.argsort(-scores[: len(groups)], kind="stable")
    return np.sort(order[np.unique(groups[order], return_index=True)[1]])


def _summed(relevance: FloatArray, target_of: IntArray) -> FloatArray:
    """Log weight of each target: the sum over its candidates."""
    count = int(target_of.max()) + 1
    if count == len(relevance):
        total = np.empty(count)
        total[target_of] = relevance
        return total
    total = np.full(count, -np.inf)
    np.logaddexp.at(total, target_of, relevance)
    return total
