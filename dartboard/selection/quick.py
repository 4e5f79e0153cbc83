"""The plain question to a small pool, without ceremony: k of some hundred candidates, nothing else asked.

On pools of this size the numbers cost less than the objects that hold them. What goes to and fro between a
pool, its limits and a walk goes straight through here, by the same functions. Whatever is out of the
ordinary (copies, a doubtful pick, arrays that have to be converted, anything to complain of) is not answered,
and the caller goes the long way.
"""

from threading import local
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.selection import bandwidth, copies, neighbourhood
from dartboard.selection.bandwidth import Judged, Sigma
from dartboard.selection.compiled import compiled
from dartboard.selection.coverage import VectorKernel, rounding_32
from dartboard.selection.explain import told
from dartboard.selection.greedy import ALL_AT_ONCE
from dartboard.selection.halves import lower_product
from dartboard.selection.kernels import by_cosine, distances, log_kernel
from dartboard.selection.machine import Concluded, Lined, Machine, in_one_piece
from dartboard.selection.origin import Origin
from dartboard.selection.result import Selection
from dartboard.selection.rows import FAST_FROM_ROWS, FAST_FROM_SIGMA, fast_rows
from dartboard.selection.states import SMALLEST, LinearState
from dartboard.types import FloatArray, IntArray

SMALLEST_SIGMA, LARGEST_SIGMA = 0.003, 10.0
"""Compiled, a small σ is tried: what float32 does not prove costs little to settle in double precision."""
_here = local()
LARGEST_K = 20
"""Of more picks, one is too often too close to call."""


def select_quickly(embeddings: Any, query: Any, k: Any, sigma: Any) -> Selection | None:
    """Dartboard's selection by the scaled cosine where nothing stands in the way of answering at once."""
    if not (_usable(embeddings, 2) and _usable(query, 1) and type(k) is int and type(sigma) in (str, float)):
        return None
    n = len(embeddings)
    if not (
        FAST_FROM_ROWS <= n <= ALL_AT_ONCE and 0 < k <= LARGEST_K and embeddings.shape[1] == query.size > 0
    ):
        return None
    check()
    if machine := compiled():
        return _select_natively(machine, embeddings, query, k, sigma)
    vectors, to_query, similarity, order, row_of = fast_rows(query, embeddings, by_query=True)
    if len(order) < n:
        return None
    apart, groups, spread = None, None, Sigma(sigma, "given")
    if sigma == "auto":
        apart = distances(vectors, vectors, "scaled_cosine")
        spread, groups = bandwidth.from_candidates(vectors, "scaled_cosine", to_query=to_query, apart=apart)
    elif type(sigma) is str:
        return None
    if not FAST_FROM_SIGMA <= spread.value <= LARGEST_SIGMA:
        return None
    log_weights = log_kernel(to_query, spread.value)
    relevance = log_weights[row_of]
    if groups is not None and apart is not None:
        leaders = neighbourhood.leading(groups, to_query)
        if k > len(leaders):
            return None
        place = np.empty(n, dtype=np.intp)
        place[groups[leaders]] = np.arange(len(leaders))
        order, row_of, similarity = order[leaders], place[groups][row_of], similarity[leaders]
        vectors, log_weights, apart = vectors[leaders], log_weights[leaders], apart[np.ix_(leaders, leaders)]
    kernel = VectorKernel(vectors, "scaled_cosine", spread.value, apart=apart)
    rounding = kernel.rounding
    first = int(log_weights.argmax())
    if np.count_nonzero(log_weights >= log_weights[first] - rounding) != 1:
        return None
    answer = LinearState(log_weights, kernel.fast_rows(), rounding).answer(first, k, k, 0.0)
    if answer is None:
        return None
    return told(
        answer,
        indices=order[answer.rows],
        similarity=similarity[answer.rows],
        row_of=row_of,
        positions=np.arange(n),
        relevance=relevance,
        sigma=spread,
        origin=Origin(query, embeddings, "scaled_cosine"),
        near_copies=n - len(vectors),
        method="dartboard",
    )


def _select_natively(
    machine: Machine, embeddings: FloatArray, query: FloatArray, k: int, sigma: str | float
) -> Selection | None:
    """The same by what is compiled."""
    if (isinstance(sigma, str) and sigma != "auto") or not in_one_piece(embeddings, query):
        return None
    room = _scratch(*embeddings.shape)
    try:
        return _answered(machine, embeddings, query, k, sigma, *room)
    finally:
        _here.room = room


def _answered(
    machine: Machine,
    embeddings: FloatArray,
    query: FloatArray,
    k: int,
    sigma: str | float,
    unit: FloatArray,
    pairs: FloatArray,
) -> Selection | None:
    """The answer, or None, with room for rows and for pairs of rows."""
    lined = machine.line_up(embeddings, query, unit)
    if lined is None:
        return None
    lower_product(unit, pairs)
    relevance = None
    if not isinstance(sigma, str):
        spread = Sigma(sigma, "given")
    else:
        judged = _judged(machine, lined, pairs)
        if judged is None:
            return None
        spread = judged.sigma
        if judged.groups is not None:
            relevance = log_kernel(by_cosine(lined.cosines), spread.value)[lined.row_of]
            lined, pairs = _leading(lined, pairs, judged.groups)
    if k > len(lined.order) or not SMALLEST_SIGMA <= spread.value <= LARGEST_SIGMA:
        return None
    rounding, smallest = rounding_32(spread.value), SMALLEST[embeddings.dtype]
    concluded = machine.conclude(embeddings, query, lined, pairs, spread.value, rounding, smallest, k)
    if concluded is None:
        return None
    aside = len(embeddings) - len(lined.order)
    return told_natively(concluded, query, embeddings, spread, relevance=relevance, near_copies=aside)


def told_natively(
    found: Concluded,
    query: FloatArray,
    embeddings: FloatArray,
    sigma: Sigma,
    *,
    relevance: FloatArray | None = None,
    near_copies: int = 0,
) -> Selection:
    """What is compiled has concluded, as a selection; ``relevance`` where candidates share rows."""
    return Selection(
        indices=found.picks,
        gains=found.gains,
        log_gains=found.log_gains,
        coverage=found.coverage,
        similarity=found.similarity,
        bound=found.bound,
        owners=found.owners,
        targets=np.arange(len(embeddings)),
        sigma=sigma,
        method="dartboard",
        relevance=found.relevance if relevance is None else relevance,
        origin=Origin(query, embeddings, "scaled_cosine"),
        near_copies=near_copies,
    )


def _scratch(n: int, dim: int) -> tuple[FloatArray, FloatArray]:
    """Room for rows, ``(n, dim)``, and their pairs, ``(n, n)``: what this thread had last, if it fits.

    New memory for every question would come from the system page by page, one thread at a time. Whoever has
    the room takes it along, so that a signal handler that selects in between gets its own.
    """
    room: tuple[FloatArray, FloatArray] | None = _here.__dict__.pop("room", None)
    if room is not None and room[0].shape == (n, dim):
        return room
    return np.empty((n, dim), np.float32), np.empty((n, n), np.float32)


def _judged(machine: Machine, lined: Lined, pairs: FloatArray) -> Judged | None:
    """σ and near-copies, by the rule of :mod:`dartboard.selection.bandwidth`; None for the unusual."""
    apart, nearest, least = machine.spread_out(pairs)
    if least <= bandwidth.noise(pairs):
        return None
    middle = len(apart) // 2
    median = float(np.partition(apart, middle)[middle])
    to_query = by_cosine(lined.cosines)
    alone = float(neighbourhood.standing_alone(nearest, to_query, median, "scaled_cosine"))
    if alone > bandwidth.ALL_ALONE or not copies.crowded(nearest, median):
        crowd = neighbourhood.crowd_by_pairs(alone, lambda: apart, to_query, median, "scaled_cosine")
        return Judged(Sigma(bandwidth.spread(median, crowd), "candidates"))
    full = np.zeros_like(pairs)
    full[np.tri(len(full), k=-1, dtype=bool)] = apart
    full += full.T
    return bandwidth.from_candidates(lined.unit, "scaled_cosine", to_query=to_query, apart=full)


def _leading(lined: Lined, pairs: FloatArray, groups: IntArray) -> tuple[Lined, FloatArray]:
    """The rows that stand for groups, the most relevant of each, and their cosines."""
    leaders = neighbourhood.leading(groups, by_cosine(lined.cosines))
    place = np.empty(len(groups), dtype=np.intp)
    place[groups[leaders]] = np.arange(len(leaders))
    some = Lined(
        lined.unit[leaders], lined.cosines[leaders], lined.order[leaders], place[groups][lined.row_of]
    )
    return some, pairs[np.ix_(leaders, leaders)]


def _usable(values: Any, dimensions: int) -> bool:
    """Whether these are float32 numbers as they have to be: not a subclass, which may mean something else."""
    return type(values) is np.ndarray and values.dtype == np.float32 and values.ndim == dimensions
