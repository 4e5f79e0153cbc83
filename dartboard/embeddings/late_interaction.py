"""ColBERT's late interaction with any model that has token vectors.

    score(q, p) = mean over tokens i of q of ( max over tokens j of p of cos(q_i, p_j) )

We use the mean where ColBERT uses the sum. It ranks the passages of a query in the same way, but lies in
[-1, 1] for any query length, so that scores of different queries, and between passages, share one scale.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from dartboard.deadline import check
from dartboard.embeddings.cache import ArrayCache
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import check_texts
from dartboard.embeddings.vectors import Scores, Vectors

_TOKENS_A_BLOCK = 1024  # measured: the products of larger blocks do not stay in the CPU cache


class TokenModel(Protocol):
    """A model with a unit vector for each token."""

    def token_vectors(
        self, texts: str | Sequence[str], *, task: TaskType = ..., batch_size: int = ...
    ) -> list[Vectors]:
        """``(t_i, d)`` for each text, t_i ≥ 1."""


class LateInteraction:
    """A pair scorer that compares texts token by token.

    Args:
        model: Makes the token vectors: the default model, a ColBERT checkpoint, or either with a cache.
        batch_size: How many passages the model encodes at once.
        cache_bytes: Maximum memory for the token vectors of recent passages.

    Example:
        >>> LateInteraction(default_model()).score("What boils?", ["Water boils at 100 °C.", "Ice melts."])
        array([0.7 , 0.29])
    """

    def __init__(
        self, model: TokenModel, *, batch_size: int = 32, cache_bytes: int = 256 * 1024 * 1024
    ) -> None:
        self.model = model
        self.batch_size = batch_size
        self._recent = ArrayCache(cache_bytes)

    @property
    def bounds(self) -> tuple[float, float]:
        """A mean of cosines."""
        return (-1.0, 1.0)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: how well each passage matches the query's tokens."""
        asked = self.model.token_vectors(query, task=TaskType.RETRIEVAL_QUERY)[0]
        blocks = [_max_over(asked @ block.tokens.T, block) for block in self._blocks(passages)]
        best = np.concatenate(blocks, axis=1) if blocks else np.empty((1, 0))
        scores: Scores = best.mean(axis=0, dtype=np.float64)
        return scores.clip(*self.bounds)

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``: the mean of both directions, because MaxSim is not symmetric."""
        texts = check_texts(passages)
        blocks = list(self._blocks(texts))
        directed = np.empty((len(texts), len(texts)), dtype=np.float64)
        for at, rows in enumerate(blocks):
            for columns in blocks[at:]:
                check()
                cosines = rows.tokens @ columns.tokens.T
                directed[rows.where, columns.where] = _mean_over(_max_over(cosines, columns), rows)
                directed[columns.where, rows.where] = _mean_over(_max_over(cosines.T, rows), columns)
        return ((directed + directed.T) / 2).clip(*self.bounds)

    def _blocks(self, passages: Sequence[str]) -> "Iterator[_Block]":
        """The passages' tokens, stacked, in blocks for one matrix product each."""
        texts = check_texts(passages)
        start, height = 0, 0
        stack: list[Vectors] = []
        for index, tokens in enumerate(self._token_vectors(texts)):
            if stack and height + len(tokens) > _TOKENS_A_BLOCK:
                check()
                yield _Block(start, stack)
                start, stack, height = index, [], 0
            stack.append(tokens)
            height += len(tokens)
        if stack:
            yield _Block(start, stack)

    def _token_vectors(self, texts: list[str]) -> list[Vectors]:
        known = {text: kept for text in texts if (kept := self._recent.get(text)) is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        new = self.model.token_vectors(missing, batch_size=self.batch_size) if missing else []
        for text, tokens in zip(missing, new, strict=True):
            known[text] = tokens
            self._recent.put(text, tokens)
        return [known[text] for text in texts]


class _Block:
    """Consecutive passages: their stacked tokens, and the start of each."""

    def __init__(self, start: int, stack: list[Vectors]) -> None:
        self.tokens = np.concatenate(stack)
        self.lengths = np.array([len(tokens) for tokens in stack])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.where = slice(start, start + len(stack))


def _max_over(cosines: Vectors, columns: _Block) -> Vectors:
    """``(tokens, tokens of the block)`` → ``(tokens, passages)``: the best token per passage."""
    best: Vectors = np.maximum.reduceat(cosines, columns.starts, axis=1)
    return best


def _mean_over(best: Vectors, rows: _Block) -> Scores:
    """``(tokens of the block, n)`` → ``(passages, n)``: the mean over the tokens per passage."""
    total: Scores = np.add.reduceat(best.astype(np.float64), rows.starts, axis=0)
    mean: Scores = total / rows.lengths[:, None]
    return mean
