"""What a search selects from, kept, so that it can be selected from again at another σ.

Candidates, choosers and pools are made by the engine's own steps, in the order in which
:meth:`~dartboard.engine.Engine.search` takes them: what is looked at here is what a search does.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from dartboard.engine import Engine
from dartboard.inspection.lengths import LENGTHS
from dartboard.inspection.remembering import Remembering
from dartboard.options import SearchOptions
from dartboard.retrievers.query import Query
from dartboard.selection import Dartboard, Limits, Method, Pool
from dartboard.selection.kernels import Auto, distances, row_dots, unit_rows
from dartboard.stores.base import read_snapshot
from dartboard.types import FloatArray

_DARTBOARD = Dartboard()


class Gathered:
    """The candidates of one query, found once, in the retriever's order."""

    def __init__(self, engine: Engine, query: str, options: SearchOptions) -> None:
        self.engine, self.query, self.options = engine, query, options
        self.selector = engine.selector(options)
        if self.selector.cross_encoder is not None:
            self.selector.cross_encoder = Remembering(self.selector.cross_encoder)
        asked, where = Query(query), engine.condition(options.where)
        with read_snapshot(engine.collection) as view:
            self.found = engine.find(view, asked, options, where)
            self.chunks = self.found.chunks()
        vector = self.found.query_vector
        self.query_vector: FloatArray = asked.vector(engine.model) if vector is None else vector

    def __len__(self) -> int:
        return len(self.chunks)

    def pool_at(self, sigma: float | Auto, method: Method = _DARTBOARD) -> Pool:
        """The pool that a search with this σ and method selects from."""
        options = replace(self.options, sigma=sigma, method=method)
        scores = self.engine.ranking_scores(self.found, options)
        return self.selector.pool(self.query, self.query_vector, self.found, options, scores=scores)

    def limits(self, k: int | None, token_budget: int | None) -> Limits:
        """So many, or so long."""
        return Limits(k=k, token_budget=token_budget, costs=None if token_budget is None else self.tokens)

    @cached_property
    def tokens(self) -> list[int]:
        """The length of each candidate, as a budget counts it."""
        return LENGTHS.of(self.chunks, self.engine.model.fingerprint, self.selector.count_tokens)

    @cached_property
    def unit(self) -> FloatArray:
        """``(n, d)`` the candidates' vectors, float64 of length 1."""
        return unit_rows(np.stack([chunk.embedding for chunk in self.chunks]), np.float64)

    @cached_property
    def distances(self) -> FloatArray:
        """``(n, n)`` scaled cosine distances between candidates."""
        return distances(self.unit, self.unit, "scaled_cosine")

    @cached_property
    def to_query(self) -> FloatArray:
        """``(n,)`` scaled cosine distances to the query."""
        # Not a matrix product: BLAS rounds a row by where it stands, and equal chunks must come out equal.
        cosine = row_dots(self.unit, unit_rows(self.query_vector[None], np.float64)[0])
        away: FloatArray = np.maximum(0.5 - 0.5 * cosine, 0.0)
        return away
