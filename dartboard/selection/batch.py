"""Many queries in one call.

A thousand small selections are a thousand times the same dozen NumPy calls. Queries with equally many
candidates go through them together, a block at a time that stays in the processor's cache, in float32.
Each query proves its picks as a single selection does; one that cannot is selected by itself, so that
the answer is the same either way.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.selection.door import select
from dartboard.selection.result import Selection


def select_many(
    embeddings: Sequence[npt.ArrayLike] | npt.NDArray[Any],
    queries: npt.ArrayLike,
    k: int | None = None,
    *,
    threads: int | None = None,
    **options: Any,
) -> list[Selection]:
    """One :func:`select` a query: ``embeddings[i]``, ``(n_i, d)``, are the candidates of ``queries[i]``."""
    asked = np.asarray(queries)
    if len(asked) != len(embeddings):
        raise InvalidInputError(f"{len(embeddings)} pools for {len(asked)} queries: need one each")
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        return list(pool.map(lambda pair: select(*pair, k, **options), zip(embeddings, asked, strict=True)))
