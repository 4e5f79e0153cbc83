"""Many queries in one call, in threads.

Threads keep to the caller's deadline. Meanwhile the matrix products, which are small, take one thread each.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.blas import one_thread_each
from dartboard.selection.kernels import Auto
from dartboard.selection.limits import Limits
from dartboard.selection.methods import select
from dartboard.selection.result import Selection

_AT_ONCE = 16
"""So many queries a thread answers before it takes the next ones."""


def select_many(
    embeddings: Sequence[npt.ArrayLike] | npt.NDArray[Any],
    queries: npt.ArrayLike,
    k: int | None = None,
    *,
    sigma: float | Auto = "auto",
    threads: int | None = None,
    texts: Sequence[Sequence[str]] | None = None,
    groups: Sequence[npt.ArrayLike] | None = None,
    **options: Any,
) -> list[Selection]:
    """One :func:`select` a query: ``embeddings[i]``, ``(n_i, d)``, are the candidates of ``queries[i]``.

    ``texts[i]`` or ``groups[i]``, if given, are theirs.
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
    for name, given in (("texts", texts), ("groups", groups)):
        if given is not None and len(given) != len(asked):
            raise InvalidInputError(
                f"{len(given)} lists of {name} for {len(asked)} queries: need one a query"
            )

    def answer(some: range) -> list[Selection]:
        found = []
        for i in some:
            check()
            read = None if texts is None else texts[i]
            known = None if groups is None else groups[i]
            found.append(select(embeddings[i], asked[i], k, sigma=sigma, texts=read, groups=known, **options))
        return found

    workers = threads or os.cpu_count() or 1
    size = max(1, min(_AT_ONCE, len(asked) // (4 * workers)))
    blocks = [range(len(asked))[start : start + size] for start in range(0, len(asked), size)]
    context = copy_context()
    with one_thread_each(), ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda block: context.copy().run(answer, block), blocks)
        return [selection for block in found for selection in block]
