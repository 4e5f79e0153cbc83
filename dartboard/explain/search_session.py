"""One query's search, kept open, so that the selection can be repeated with another σ.

Candidates, selection methods and pools are made by the engine's own steps, in the same order as in
:meth:`~dartboard.engine.Engine.search`, so the inspected search is the real one.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.vectors import Scores
from dartboard.engine import Engine
from dartboard.retrievers.query import Query
from dartboard.search_options import SearchOptions
from dartboard.selection import Dartboard, Limits, Method, Pool
from dartboard.selection.kernels import Auto, distances, row_dots, unit_rows
from dartboard.selection.methods import check_page, with_pages_before
from dartboard.stores.base import read_snapshot
from dartboard.types import Chunk, FloatArray

_DARTBOARD = Dartboard()


class SearchSession:
    """The candidates of one query, found once, in the retriever's order."""

    def __init__(self, engine: Engine, query: str, options: SearchOptions) -> None:
        self.engine, self.query, self.options = engine, query, options
        self.selector = engine.selector(options)
        if self.selector.cross_encoder is not None:
            self.selector.cross_encoder = CachedScorer(self.selector.cross_encoder)
        questions = [Query(text) for text in (query, *options.also)]
        where = engine.condition(options.where)
        with read_snapshot(engine.collection) as view:
            self.found, self.query_vectors = engine.find(view, questions, options, where)
            self.chunks = self.found.chunks()
            self.found.read_all()

    def __len__(self) -> int:
        return len(self.chunks)

    def pool_at(self, sigma: float | Auto, method: Method = _DARTBOARD) -> Pool:
        """The pool of a search with this σ and method."""
        options = replace(self.options, sigma=sigma, method=method)
        scores = self.engine.ranking_scores(self.found, options)
        return self.selector.pool(self.query, self.query_vectors, self.found, options, scores=scores)

    def limits(self) -> Limits:
        """The limits of the options, those of earlier pages included.

        Raises:
            InvalidInputError: the page begins after the last candidate, or no candidate has a capped field.
        """
        options = self.options
        check_page(options.offset, len(self) - len(options.seen_ids))
        costs = None if options.token_budget is None else self.tokens
        return with_pages_before(self.selector.limits(self.found, options, costs), options.offset, _DARTBOARD)

    @cached_property
    def tokens(self) -> list[int]:
        """The tokens of each candidate, as counted for a budget."""
        return TOKEN_COUNTS.of(self.chunks, self.engine.model.fingerprint, self.selector.count_tokens)

    @cached_property
    def unit(self) -> FloatArray:
        """``(n, d)``: the candidates' unit vectors, float64."""
        return unit_rows(np.stack([chunk.embedding for chunk in self.chunks]), np.float64)

    @cached_property
    def distances(self) -> FloatArray:
        """``(n, n)``: scaled cosine distances between candidates."""
        return distances(self.unit, self.unit, "scaled_cosine")

    @cached_property
    def to_query(self) -> FloatArray:
        """``(n,)`` scaled cosine distances to the query; of several questions, to the nearest."""
        # Not a matrix product: BLAS rounds a row by where it stands, and equal chunks must come out equal.
        asked = unit_rows(self.query_vectors, np.float64)
        cosine = np.max([row_dots(self.unit, one) for one in asked], axis=0)
        away: FloatArray = np.maximum(0.5 - 0.5 * cosine, 0.0)
        return away


class TokenCounts:
    """An LRU cache of token counts, because counting takes longer than everything else. Thread-safe.

    A count depends only on the model and the text, so the key is the hash of both.
    """

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(
        self, chunks: Sequence[Chunk], model: str, count: Callable[[Sequence[Chunk]], Sequence[int]]
    ) -> list[int]:
        """The count of each chunk; ``count`` is called once for all unknown ones."""
        keys = [
            hashlib.blake2b(f"{model}\0{chunk.text}".encode(), digest_size=16).digest() for chunk in chunks
        ]
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: chunk for key, chunk in zip(keys, chunks, strict=True) if key not in known}
        if missing:
            known |= dict(zip(missing, count(list(missing.values())), strict=True))
        with self._lock:
            for key in keys:
                self._kept[key] = known[key]
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return [known[key] for key in keys]


TOKEN_COUNTS = TokenCounts()
"""Shared by all explorations of a process."""


class CachedScorer:
    """A pair scorer with a cache: scores do not depend on σ."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._scores: dict[tuple[str, tuple[str, ...]], Scores] = {}
        self._matrices: dict[tuple[str, ...], Scores] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    @property
    def bounds(self) -> tuple[float, float]:
        """The wrapped scorer's bounds."""
        return self._scorer.bounds

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: the score of the query with each passage."""
        asked = (query, tuple(passages))
        if asked not in self._scores:
            self._scores[asked] = self._scorer.score(query, passages)
        return self._scores[asked].copy()

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``: the score of each passage with each."""
        asked = tuple(passages)
        if asked not in self._matrices:
            self._matrices[asked] = self._scorer.score_matrix(passages)
        return self._matrices[asked].copy()
