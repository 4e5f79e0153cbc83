"""Token vocabularies: a fixed set of targets T that represents what a query may ask for.

There are three offline methods: the most frequent words of a language, the tokenizer's own pieces, and
centroids of many words. A vocabulary of 5,000 × 384 takes 8 MB; it is cached on disk by the model that
encoded it.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.cache import ArrayCache, default_cache_path
from dartboard.errors import ConfigError, MissingExtraError
from dartboard.selection import Pool, from_embeddings
from dartboard.selection.kernel import Distance, distances, prepared
from dartboard.types import FloatArray, check_matrix

VocabularyMethod = Literal["words", "subwords", "clusters"]

SAMPLE_SIZE = 100_000
_SMALLEST, _LARGEST = 1, 300_000
_SPECIAL = re.compile(r"\[.+\]|<.+>", re.DOTALL)
"""Pieces such as ``[CLS]`` and ``<s>``, which are not text."""

_log = logging.getLogger(__name__)


def build_token_vocabulary(
    embedding_model: EmbeddingModel,
    vocab_size: int = 5000,
    method: VocabularyMethod = "words",
    *,
    cache_dir: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
    sample_size: int = SAMPLE_SIZE,
) -> FloatArray:
    """Token embeddings, ``(vocab_size, d)`` float32, by one of three methods.

    Args:
        embedding_model: Encodes the tokens.
        vocab_size: How many token embeddings.
        method: ``words``: the most common words; ``subwords``: the first pieces of the model's tokenizer;
            ``clusters``: k-means centroids of ``sample_size`` words.
        cache_dir: The cache folder; by default ``vocab`` beside the embedding cache.
        progress: Called with the number of encoded texts.
        sample_size: How many words are clustered.

    Raises:
        ConfigError: the method is unknown, or cannot give this size.
        MissingExtraError: the method needs wordfreq or faiss, which is not installed.

    Example::

        tokens = build_token_vocabulary(default_model(), 5000)
    """
    if method not in get_args(VocabularyMethod):
        raise ConfigError(
            f"unknown vocabulary method {method!r}: choose one of {', '.join(get_args(VocabularyMethod))}"
        )
    _check_size(vocab_size)
    sampled = f":{sample_size}" if method == "clusters" else ""
    key = f"{embedding_model.fingerprint}:{method}:{vocab_size}{sampled}"
    folder = default_cache_path().parent / "vocab" if cache_dir is None else Path(cache_dir)
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npy"
    shape = (vocab_size, embedding_model.embedding_dim)
    if (kept := _load(path, shape)) is not None:
        return kept
    if method == "clusters":
        vocabulary = build_from_clusters(embedding_model, vocab_size, sample_size, progress=progress)
    else:
        build = build_from_words if method == "words" else build_from_subwords
        vocabulary = build(embedding_model, vocab_size, progress=progress)
    _save(path, vocabulary)
    return vocabulary


def build_from_words(
    embedding_model: EmbeddingModel, vocab_size: int, *, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """The vectors of the most common English words, most common first."""
    _check_size(vocab_size)
    return embedding_model.encode_documents(_common_words(vocab_size), batch_size=256, progress=progress)


def build_from_subwords(
    embedding_model: EmbeddingModel, vocab_size: int, *, progress: Callable[[int], None] | None = None
) -> FloatArray:
    """The vectors of the first pieces of the model's tokenizer that have a meaning by themselves."""
    _check_size(vocab_size)
    listed: Callable[[], list[str]] | None = getattr(embedding_model, "word_pieces", None)
    if listed is None:
        raise ConfigError(
            f"model {embedding_model.name!r} has no word pieces: use method 'words' or 'clusters'"
        )
    bare = (one.removeprefix("##").strip("▁Ġ ") for one in listed() if not _SPECIAL.fullmatch(one))
    pieces = list(dict.fromkeys(piece for piece in bare if piece))
    if len(pieces) < vocab_size:
        raise ConfigError(
            f"the tokenizer has {len(pieces)} usable pieces, fewer than vocab_size = {vocab_size}"
        )
    return embedding_model.encode_documents(pieces[:vocab_size], batch_size=256, progress=progress)


def build_from_clusters(
    embedding_model: EmbeddingModel,
    vocab_size: int,
    sample_size: int = SAMPLE_SIZE,
    *,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """k-means centroids, k = ``vocab_size``, of the vectors of the ``sample_size`` most common words."""
    _check_size(vocab_size)
    if sample_size < vocab_size:
        raise ConfigError(f"sample_size ({sample_size}) must be at least vocab_size ({vocab_size})")
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("faiss-cpu", "vocab", "a vocabulary of clusters") from error
    words = embedding_model.encode_documents(_common_words(sample_size), batch_size=256, progress=progress)
    if sample_size == vocab_size:
        return words
    means = faiss.Kmeans(
        words.shape[1], vocab_size, niter=20, seed=0, spherical=True, min_points_per_centroid=1,
        max_points_per_centroid=max(256, -(-sample_size // vocab_size)),
    )  # fmt: skip
    means.train(np.ascontiguousarray(words, dtype=np.float32))
    return check_matrix(np.asarray(means.centroids), name="centroids")


class TokenDistances:
    """A vocabulary and a cache of the distances of recent chunks to it, shared by queries."""

    def __init__(
        self, vocabulary: FloatArray, distance: Distance, cache_bytes: int = 256 * 1024 * 1024
    ) -> None:
        self.vocabulary = vocabulary
        self.distance: Distance = distance
        self._directed = prepared(vocabulary, distance)
        self._recent = ArrayCache(cache_bytes)

    def of(self, vectors: FloatArray) -> FloatArray:
        """``(n, vocab_size)`` distances, computed once per vector."""
        keys = [hashlib.sha256(row.tobytes()).hexdigest() for row in np.ascontiguousarray(vectors)]
        found = [self._recent.get(key) for key in keys]
        missing = [i for i, row in enumerate(found) if row is None]
        if missing:
            fresh = distances(prepared(vectors[missing], self.distance), self._directed, self.distance)
            for i, row in zip(missing, fresh, strict=True):
                found[i] = row
                self._recent.put(keys[i], row.copy())
        return np.stack([row for row in found if row is not None])

    def pool(
        self,
        query: FloatArray,
        vectors: FloatArray,
        **building: Any,
    ) -> Pool:
        """A pool of the candidates ``vectors`` for ``query``, with the vocabulary as targets.

        ``building`` is passed to :func:`dartboard.selection.from_embeddings`: ``sigma=0.1`` …
        """
        return from_embeddings(
            query,
            vectors,
            distance=self.distance,
            targets=self.vocabulary,
            target_distances=self.of(vectors),
            **building,
        )


def _common_words(count: int) -> list[str]:
    try:
        import wordfreq
    except ImportError as error:
        raise MissingExtraError("wordfreq", "vocab", "a vocabulary of words") from error
    words: list[str] = wordfreq.top_n_list("en", count)
    if len(words) < count:
        raise ConfigError(f"the word list has {len(words)} words, fewer than {count}")
    return words


def _check_size(vocab_size: Any) -> None:
    if (
        not isinstance(vocab_size, int)
        or isinstance(vocab_size, bool)
        or not _SMALLEST <= vocab_size <= _LARGEST
    ):
        raise ConfigError(
            f"vocab_size must be a whole number in [{_SMALLEST}, {_LARGEST}], got {vocab_size!r}"
        )


def _load(path: Path, shape: tuple[int, int]) -> FloatArray | None:
    """A cached vocabulary; None if the file is missing or damaged."""
    try:
        kept = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (ValueError, OSError, EOFError) as error:
        _log.warning("token vocabulary %s is damaged and is rebuilt: %s", path, error)
        return None
    if kept.shape != shape or kept.dtype != np.float32 or not np.isfinite(kept).all():
        _log.warning("token vocabulary %s does not match its name and is rebuilt", path)
        return None
    vocabulary: FloatArray = kept
    return vocabulary


def _save(path: Path, vocabulary: FloatArray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            np.save(file, vocabulary.astype(np.float32), allow_pickle=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
