"""Cross-encoders: a transformer reads both texts at once. Accurate but slow; a matrix needs n² pairs."""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from threading import Lock

import numpy as np

from dartboard.deadline import check
from dartboard.embeddings.base import PAPER_BOUNDS
from dartboard.embeddings.texts import check_batch_size, check_texts
from dartboard.embeddings.vectors import Scores
from dartboard.errors import MissingExtraError, ModelError

_BATCHES = 8
"""Batches between two deadline checks; the model sorts pairs by length within them."""


class CrossEncoder:
    """A pair scorer from sentence-transformers; scores are the model's logits, not probabilities.

    Args:
        model_name: A name on the Hugging Face hub, or the path of a folder.
        device: The torch device.
        batch_size: How many pairs the model reads at once.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ModelError: the model cannot be loaded, or has several labels.
    """

    def __init__(
        self,
        model_name: str = "cross-encoder/ms-marco-MiniLM-L-12-v2",
        device: str = "cpu",
        batch_size: int = 32,
    ) -> None:
        check_batch_size(batch_size)
        try:
            import torch
            from sentence_transformers import CrossEncoder as Backend
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "torch", "CrossEncoder") from error
        try:
            self.model = Backend(model_name, device=device)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"cross-encoder {model_name!r} could not be loaded: {error}. "
                "Give the path of a folder with config.json, model.safetensors and tokenizer.json"
            ) from error
        if self.model.num_labels != 1:
            raise ModelError(
                f"cross-encoder {model_name!r} has {self.model.num_labels} labels; one is needed"
            )
        self.model_name = model_name
        self.batch_size = batch_size
        self._activation = torch.nn.Identity()
        self._lock = Lock()

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of logits that the paper uses for scaling."""
        return PAPER_BOUNDS

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)`` logits of the query with each passage."""
        (asked,) = check_texts([query])
        return self._predict([(asked, passage) for passage in check_texts(passages)])

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)`` logits: the upper triangle and the diagonal are computed, the rest is mirrored."""
        texts = check_texts(passages)
        scores = np.empty((len(texts), len(texts)), dtype=np.float64)
        upper = np.triu_indices(len(texts))
        scores[upper] = self._predict(list(combinations_with_replacement(texts, 2)))
        scores.T[upper] = scores[upper]
        return scores

    def _predict(self, pairs: list[tuple[str, str]]) -> Scores:
        if not pairs:
            return np.empty(0, dtype=np.float64)
        scores = np.concatenate(
            [
                self._logits(pairs[start : start + _BATCHES * self.batch_size])
                for start in range(0, len(pairs), _BATCHES * self.batch_size)
            ]
        )
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise ModelError(f"cross-encoder {self.model_name!r} returned scores that are not finite numbers")
        return scores

    def _logits(self, pairs: list[tuple[str, str]]) -> Scores:
        check()
        with self._lock:  # a fast tokenizer is not thread-safe
            raw = self.model.predict(
                pairs, batch_size=self.batch_size, activation_fn=self._activation, show_progress_bar=False
            )
        return np.asarray(raw, dtype=np.float64)
