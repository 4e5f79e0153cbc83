"""Many queries in one call.

A thousand small selections are a thousand times the same dozen calls. Queries with equally many candidates go
through them together, in float32, a block at a time that stays in the processor's cache: compiled
(:mod:`dartboard.selection.blocks`), or in NumPy. Each query proves its picks as a single selection does; one
that cannot, or has copies among its candidates, is selected by itself, so the picks are the same either way.
Blocks go through threads, which keep to the caller's deadline, and meanwhile the matrix products, which are
small, take one thread each.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import bandwidth, copies, neighbourhood
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.blas import one_thread_each
from dartboard.selection.blocks import select_block
from dartboard.selection.building import Auto
from dartboard.selection.compiled import compiled
from dartboard.selection.content import fingerprints
from dartboard.selection.door import select
from dartboard.selection.greedy import ALL_AT_ONCE
from dartboard.selection.halves import address
from dartboard.selection.kernels import check_sigma
from dartboard.selection.limits import Limits
from dartboard.selection.machine import in_one_piece
from dartboard.selection.origin import Origin
from dartboard.selection.quick import LARGEST_K, SMALLEST_SIGMA
from dartboard.selection.result import Selection
from dartboard.selection.rows import FAST_FROM_ROWS, FAST_FROM_SIGMA
from dartboard.selection.together import walks
from dartboard.types import FloatArray

_BLOCK_ENTRIES = 400_000
"""Kernel entries that a block may have; measured: fewer cost calls, more leave the cache."""

_Way = Callable[[FloatArray, FloatArray, int, float | Auto], list[Selection | None]]

_BLOCK_QUERIES = 16
"""So many queries a thread answers before it takes the next ones."""

_FAST_UP_TO = neighbourhood.SAMPLE
"""Larger pools are not small selections any more, and take σ from a sample by content."""


def select_many(
    embeddings: Sequence[npt.ArrayLike] | npt.NDArray[Any],
    queries: npt.ArrayLike,
    k: int | None = None,
    *,
    sigma: float | Auto = "auto",
    threads: int | None = None,
    texts: Sequence[Sequence[str]] | None = None,
    **options: Any,
) -> list[Selection]:
    """One :func:`select` a query: ``embeddings[i]``, ``(n_i, d)``, are the candidates of ``queries[i]``.

    ``texts[i]``, if given, are theirs.
    """
    k = 5 if k is None and options.get("token_budget") is None else k
    Limits(k=k, token_budget=options.get("token_budget"), costs=options.get("costs"))
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads must be a whole number >= 1, got {threads!r}")
    asked = np.asarray(queries)
    if asked.ndim != 2 or len(asked) != len(embeddings):
        raise InvalidInputError(
            f"{len(embeddings)} pools for queries of shape {asked.shape}: need a matrix with one row a pool"
        )

    if texts is not None and len(texts) != len(asked):
        raise InvalidInputError(f"{len(texts)} lists of texts for {len(asked)} queries: need one a query")

    context = copy_context()

    def alone(i: int) -> Selection:
        check()
        read = None if texts is None else texts[i]
        return select(embeddings[i], asked[i], k, sigma=sigma, texts=read, **options)

    in_block = None if options or texts is not None else _way(embeddings, asked, k or 5, sigma)

    def together(block: range) -> list[Selection]:
        if in_block is None:
            return [alone(i) for i in block]
        check()
        here = slice(block.start, block.stop)
        results = in_block(np.asarray(embeddings[here]), asked[here], k or 5, sigma)
        return [alone(i) if result is None else result for i, result in zip(block, results, strict=True)]

    workers = threads or os.cpu_count() or 1
    size = max(1, min(_BLOCK_QUERIES, len(asked) // (4 * workers)))
    if in_block is not None:
        size = max(1, _BLOCK_ENTRIES // np.asarray(embeddings).shape[1] ** 2)
    blocks = [range(len(asked))[start : start + size] for start in range(0, len(asked), size)]
    with one_thread_each(), ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda block: context.copy().run(together, block), blocks)
        return [result for block in found for result in block]


def _way(embeddings: Any, queries: npt.NDArray[Any], k: int, sigma: float | Auto) -> _Way | None:
    """How a block of these pools is selected from; None where they have to be taken one by one."""
    if not (isinstance(embeddings, np.ndarray) and _uniform(embeddings, queries, sigma)):
        return None
    machine, syrk = compiled(), address()
    if machine is None:
        return _select_block
    usual = in_one_piece(embeddings, queries) and k <= LARGEST_K
    if syrk is None or not usual or not FAST_FROM_ROWS <= embeddings.shape[1] <= ALL_AT_ONCE:
        return None
    return partial(select_block, machine, syrk)


def _uniform(embeddings: npt.NDArray[Any], queries: npt.NDArray[Any], sigma: float | Auto) -> bool:
    """Whether the pools are one float32 array of small pools that blocks can take."""
    return (
        embeddings.ndim == 3
        and embeddings.dtype == queries.dtype == np.float32
        and embeddings.shape[2] == queries.shape[1] > 0
        and bandwidth.SMALLEST_POOL <= embeddings.shape[1] <= _FAST_UP_TO
        and (sigma == "auto" or check_sigma(sigma) >= (SMALLEST_SIGMA if compiled() else FAST_FROM_SIGMA))
    )


def _select_block(
    embeddings: FloatArray, queries: FloatArray, k: int, sigma: float | Auto
) -> list[Selection | None]:
    """Selections of a block ``(b, n, d)`` of queries; None for one that has to be selected by itself."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        vectors = embeddings / np.sqrt(np.einsum("bnd,bnd->bn", embeddings, embeddings))[:, :, None]
        asked = queries / np.sqrt(np.einsum("bd,bd->b", queries, queries))[:, None]
        sure = np.isfinite(vectors.sum(axis=(1, 2))) & np.isfinite(asked.sum(axis=1))
        sure &= ~_has_copies(embeddings)
        cosine = np.matmul(vectors, asked[:, :, None])[:, :, 0]
        cosines = np.matmul(vectors, vectors.transpose(0, 2, 1))
        spreads = _spreads(cosines, cosine, sigma)
        spread = np.array([s.value for s in spreads])
        sure &= spread >= FAST_FROM_SIGMA
        relevance = -(((1.0 - cosine) / (np.sqrt(8.0) * spread[:, None])) ** 2)
        found = walks(cosines, relevance, spread, min(k, embeddings.shape[1]), sure)
        similarity = np.take_along_axis(cosine, found.picks, axis=1).astype(np.float64)
    return [
        Selection(
            indices=found.picks[i],
            gains=found.gains[i],
            log_gains=found.log_gains[i],
            coverage=found.coverage[i],
            similarity=similarity[i],
            bound=bound,
            owners=found.owners[i],
            targets=np.arange(embeddings.shape[1]),
            sigma=spreads[i],
            method="dartboard",
            relevance=relevance[i],
            origin=Origin(queries[i], embeddings[i], "scaled_cosine"),
        )
        if safe
        else None
        for i, (safe, bound) in enumerate(zip(found.sure.tolist(), found.bound.tolist(), strict=True))
    ]


def _has_copies(embeddings: FloatArray) -> npt.NDArray[np.bool_]:
    prints = fingerprints(embeddings.reshape(-1, embeddings.shape[2])).reshape(embeddings.shape[:2])
    prints.sort(axis=1)
    copied: npt.NDArray[np.bool_] = (prints[:, 1:] == prints[:, :-1]).any(axis=1)
    return copied


def _spreads(cosines: FloatArray, to_query: FloatArray, sigma: float | Auto) -> list[Sigma]:
    """σ of each query: the rule of :mod:`dartboard.selection.bandwidth` on pools without copies.

    0 where half of the pairs are copies, or near-copies stand in groups: such a query is selected alone.
    """
    if sigma != "auto":
        return [Sigma(float(sigma), "given")] * len(cosines)
    flat = cosines.reshape(len(cosines), -1)
    between = flat.take(bandwidth.pairs(cosines.shape[1]), axis=1)
    middle = between.shape[1] - 1 - between.shape[1] // 2
    medians = np.partition(between, middle, axis=1)[:, middle]
    wide = ((1.0 - medians.astype(np.float64)) / 2.0).tolist()
    if cosines.shape[1] < bandwidth.SMALLEST_CROWD:
        return [Sigma(median / bandwidth.DIVISOR, "candidates") for median in wide]
    diagonal = flat[:, :: cosines.shape[1] + 1]
    with_itself = diagonal.copy()
    diagonal[:] = -np.inf
    nearest = cosines.max(axis=2)
    diagonal[:] = with_itself
    near, asked = ((1.0 - each.astype(np.float64)) / 2.0 for each in (nearest, to_query))
    alone = neighbourhood.standing_alone(near, asked, np.array(wide), "scaled_cosine").tolist()
    crowded = (near <= copies.WITHIN * np.array(wide)[:, None]).sum(axis=1) >= copies.fewest(near.shape[1])
    crowded &= np.array(alone) <= bandwidth.ALL_ALONE
    return [
        Sigma(_spread(cosines[i], asked[i], median, alone[i], crowded[i]), "candidates")
        for i, median in enumerate(wide)
    ]


def _spread(cosines: FloatArray, to_query: FloatArray, median: float, alone: float, crowded: bool) -> float:
    if median <= 0 or (crowded and copies.near_copies((1.0 - cosines) / 2.0, median) is not None):
        return 0.0

    def between() -> FloatArray:
        pairs: FloatArray = (1.0 - cosines[neighbourhood.below(len(cosines))].astype(np.float64)) / 2.0
        return pairs

    return bandwidth.spread(
        median, neighbourhood.crowd_by_pairs(alone, between, to_query, median, "scaled_cosine")
    )
