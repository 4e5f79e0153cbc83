"""Pools that look like real ones: topics, near-copies, exact copies."""

import numpy as np


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def topical(n, *, seed=0, dim=384, copies=0, noise=0.0, dtype=np.float32):
    """A query and ``n`` candidates; ``copies`` of each candidate follow, exact where noise is 0."""
    rng = np.random.default_rng(seed)
    common, topics = unit(rng.standard_normal(dim)), unit(rng.standard_normal((max(3, n // 12), dim)))
    own = unit(rng.standard_normal((n, dim)))
    base = unit(0.55 * common + 0.6 * topics[rng.integers(0, len(topics), n)] + 0.5 * own)
    query = unit(0.6 * common + 0.35 * topics[0] + 0.3 * topics[1] + 0.5 * unit(rng.standard_normal(dim)))
    more = [
        unit(base + noise * unit(rng.standard_normal(base.shape))) if noise else base for _ in range(copies)
    ]
    return query.astype(dtype), np.concatenate([base, *more]).astype(dtype)
