"""Many queries in one call.

A thousand small selections are a thousand times the same dozen NumPy calls. Queries with equally many
candidates go through them together, in float32, a block at a time that stays in the processor's cache.
Each query proves its picks as a single selection does; one that cannot, or has copies among its
candidates, is selected by itself, so the picks are the same either way. Compiled, selections have no calls
to save and are made one by one, in threads.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import bandwidth
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.building import FAST_FROM_SIGMA, Auto
from dartboard.selection.compiled import compiled
from dartboard.selection.content import fingerprints
from dartboard.selection.coverage import rounding_32
from dartboard.selection.dense import HALF
from dartboard.selection.door import select
from dartboard.selection.kernels import check_sigma
from dartboard.selection.limits import Limits
from dartboard.selection.result import Selection
from dartboard.types import FloatArray

_BLOCK_ENTRIES = 400_000
"""Kernel entries that a block may have; measured: fewer cost calls, more leave the cache."""

_FAST_UP_TO = bandwidth.SAMPLE
"""Larger pools are not small selections any more, and take σ from a sample by content."""


def select_many(
    embeddings: Sequence[npt.ArrayLike] | npt.NDArray[Any],
    queries: npt.ArrayLike,
    k: int | None = None,
    *,
    sigma: float | Auto = "auto",
    threads: int | None = None,
    **options: Any,
) -> list[Selection]:
    """One :func:`select` a query: ``embeddings[i]``, ``(n_i, d)``, are the candidates of ``queries[i]``."""
    k = 5 if k is None and options.get("token_budget") is None else k
    Limits(k=k, token_budget=options.get("token_budget"), costs=options.get("costs"))
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads must be a whole number >= 1, got {threads!r}")
    asked = np.asarray(queries)
    if asked.ndim != 2 or len(asked) != len(embeddings):
        raise InvalidInputError(
            f"{len(embeddings)} pools for queries of shape {asked.shape}: need a matrix with one row a pool"
        )

    def alone(i: int) -> Selection:
        return select(embeddings[i], asked[i], k, sigma=sigma, **options)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as workers:
        if options or not (isinstance(embeddings, np.ndarray) and _uniform(embeddings, asked, sigma)):
            return list(workers.map(alone, range(len(asked))))
        pools: FloatArray = embeddings

        def together(start: int) -> list[Selection]:
            block = range(len(asked))[start : start + size]
            if compiled():  # quicker one by one, and threads overlap
                return [alone(i) for i in block]
            results = _select_block(pools[start : block.stop], asked[start : block.stop], k or 5, sigma)
            return [alone(i) if result is None else result for i, result in zip(block, results, strict=True)]

        size = max(1, _BLOCK_ENTRIES // pools.shape[1] ** 2)
        return [result for block in workers.map(together, range(0, len(asked), size)) for result in block]


def _uniform(embeddings: npt.NDArray[Any], queries: npt.NDArray[Any], sigma: float | Auto) -> bool:
    """Whether the pools are one float32 array of small pools that blocks can take."""
    return (
        embeddings.ndim == 3
        and embeddings.dtype == queries.dtype == np.float32
        and embeddings.shape[2] == queries.shape[1]
        and bandwidth.SMALLEST_POOL <= embeddings.shape[1] <= _FAST_UP_TO
        and (sigma == "auto" or check_sigma(sigma) >= FAST_FROM_SIGMA)
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
        kernel = np.matmul(vectors, vectors.transpose(0, 2, 1))
        spreads = _spreads(kernel, sigma)
        spread = np.array([s.value for s in spreads])
        sure &= spread >= FAST_FROM_SIGMA
        relevance = -(((1.0 - cosine) / (np.sqrt(8.0) * spread[:, None])) ** 2)
        scale = (1.0 / (np.sqrt(8.0) * spread)).astype(np.float32)[:, None, None]
        kernel -= 1.0
        kernel *= scale
        kernel *= kernel
        np.negative(kernel, out=kernel)
        np.exp(kernel, out=kernel)
        walk = _BlockWalk(kernel, relevance, rounding_32(spread), min(k, embeddings.shape[1]))
        sure &= walk.sure
    return [walk.selection(i, cosine[i], spreads[i]) if sure[i] else None for i in range(len(embeddings))]


class _BlockWalk:
    """The greedy walk of :mod:`dartboard.selection.greedy` for a block of queries at once."""

    def __init__(self, kernel: FloatArray, relevance: FloatArray, rounding: FloatArray, k: int) -> None:
        size, n = relevance.shape
        each = np.arange(size)
        picks = np.empty((size, k), dtype=np.intp)
        gains = np.empty((size, k), dtype=np.float32)
        weights = np.exp(relevance - relevance.max(axis=1, keepdims=True)).astype(np.float32)
        column = weights[:, :, None]
        alone = np.matmul(kernel, column)[:, :, 0]
        slack = rounding.astype(np.float32)[:, None] * alone
        rise = np.empty_like(kernel)

        def gains_now() -> FloatArray:
            np.subtract(kernel, covered[:, None, :], out=rise)
            np.maximum(rise, 0.0, out=rise)
            now: FloatArray = np.matmul(rise, column)[:, :, 0]
            return now

        picks[:, 0] = best = relevance.argmax(axis=1)
        gains[:, 0] = alone[each, best]
        lead = relevance[each, best] - rounding
        self.sure = (relevance >= lead[:, None]).sum(axis=1) == 1
        covered = kernel[each, best]
        for step in range(1, k):
            now = gains_now()
            picks[:, step] = best = now.argmax(axis=1)
            gains[:, step] = now[each, best]
            level = now[each, best] - slack[each, best]
            self.sure &= ((now + slack >= level[:, None]).sum(axis=1) == 1) & (level > 1e-30)
            np.maximum(covered, kernel[each, best], out=covered)
        total = weights.sum(axis=1, dtype=np.float64)
        self.picks = picks
        self.gains = gains.astype(np.float64) / total[:, None]
        self.coverage = np.minimum(self.gains.cumsum(axis=1), 1.0)
        chosen = np.take_along_axis(kernel, picks[:, :, None], axis=1)
        self.owners = np.where(chosen.max(axis=1) >= HALF, chosen.argmax(axis=1), -1)
        largest = [
            np.partition(x, n - k, axis=1)[:, n - k :].sum(axis=1) / total for x in (alone, gains_now())
        ]
        reached = self.coverage[:, -1]
        self.bound = np.minimum(1.0, reached / np.minimum(1.0, np.minimum(largest[0], reached + largest[1])))

    def selection(self, i: int, cosine: FloatArray, sigma: Sigma) -> Selection:
        """The result of query ``i`` of the block."""
        return Selection(
            indices=self.picks[i],
            gains=self.gains[i],
            log_gains=np.log(self.gains[i]),
            coverage=self.coverage[i],
            similarity=cosine[self.picks[i]].astype(np.float64),
            bound=float(self.bound[i]),
            owners=self.owners[i],
            targets=np.arange(len(cosine)),
            sigma=sigma,
            method="dartboard",
        )


def _has_copies(embeddings: FloatArray) -> npt.NDArray[np.bool_]:
    prints = fingerprints(embeddings.reshape(-1, embeddings.shape[2])).reshape(embeddings.shape[:2])
    prints.sort(axis=1)
    copied: npt.NDArray[np.bool_] = (prints[:, 1:] == prints[:, :-1]).any(axis=1)
    return copied


def _spreads(cosines: FloatArray, sigma: float | Auto) -> list[Sigma]:
    """σ of each query: the rule of :mod:`dartboard.selection.bandwidth` on pools without copies."""
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
    near = (1.0 - nearest.astype(np.float64)) / 2.0
    return [
        Sigma(bandwidth.spread(median, bandwidth.crowd(one), "scaled_cosine"), "candidates")
        for median, one in zip(wide, near, strict=True)
    ]
