"""What a search selects from, kept, so that it can be selected from again at another σ.

Candidates, choosers and pools are made by the engine's own steps, in the order in which
:meth:`~dartboard.engine.Engine.search` takes them: what is looked at here is what a search does.
"""

from functools import cached_property

import numpy as np

from dartboard.config import RerankerType
from dartboard.core import DartboardRetriever
from dartboard.engine import Engine
from dartboard.inspection.lengths import LENGTHS
from dartboard.inspection.remembering import Remembering
from dartboard.retrievers.asking import Question
from dartboard.retrievers.ranking import Found
from dartboard.selection import Dartboard, Limits, Method, Pool
from dartboard.selection.kernels import Auto, distances, row_dots, unit_rows
from dartboard.stores import Collection, Filter
from dartboard.stores.states import on_one_state
from dartboard.types import Chunk, FloatArray

_DARTBOARD = Dartboard()


class Gathered:
    """The candidates of one query, found once, in the retriever's order."""

    def __init__(
        self,
        engine: Engine,
        query: str,
        *,
        triage_k: int,
        where: Filter | str | None = None,
        reranker: RerankerType = "cosine",
    ) -> None:
        self.engine, self.query = engine, query
        self._triage_k, self._reranker = triage_k, reranker
        self.chooser = engine._chooser("auto", triage_k, reranker)
        if self.chooser.cross_encoder is not None:
            self.chooser.cross_encoder = Remembering(self.chooser.cross_encoder)
        question, condition = Question(query), engine.condition(where)

        def read(collection: Collection) -> tuple[Found, list[Chunk]]:
            found = engine._found(collection, question, triage_k, condition, (), set())
            return found, found.passages.chunks()

        self.found, self.chunks = on_one_state(engine.collection, read)
        vector = self.found.query_vector
        self.query_vector: FloatArray = question.vector(engine.model) if vector is None else vector

    def __len__(self) -> int:
        return len(self.chunks)

    def choosing_at(self, sigma: float | Auto) -> DartboardRetriever:
        """Who selects at a σ; pair scores that are known stay known."""
        if sigma == "auto":
            return self.chooser
        chooser = self.engine._chooser(sigma, self._triage_k, self._reranker)
        chooser.cross_encoder = self.chooser.cross_encoder
        return chooser

    def pool_at(self, sigma: float | Auto, method: Method = _DARTBOARD) -> Pool:
        """The pool that a search with this σ and method selects from."""
        return self.choosing_at(sigma).pool(
            self.query,
            self.query_vector,
            self.found.passages,
            scores=self.engine._scores(self.found, method),
            method=method,
        )

    def limits(self, k: int | None, token_budget: int | None) -> Limits:
        """So many, or so long."""
        return Limits(k=k, token_budget=token_budget, costs=None if token_budget is None else self.tokens)

    @cached_property
    def tokens(self) -> list[int]:
        """The length of each candidate, as a budget counts it."""
        return LENGTHS.of(self.chunks, self.engine.model.fingerprint, self.chooser._count_tokens)

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
