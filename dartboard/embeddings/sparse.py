"""Learned sparse encoders: a text becomes weights of some terms of the model's vocabulary.

    w_t = max over tokens i of log(1 + relu(logit_i,t))        (SPLADE, Formal et al., 2021)

Any folder that sentence-transformers' ``SparseEncoder`` loads works: one that it saved, or a plain masked
language model, which gets the pooling above. Needs the extra ``torch``.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.embeddings.model_files import torch_fingerprint
from dartboard.embeddings.texts import batches_by_length, check_texts
from dartboard.errors import ConfigError, MissingExtraError, ModelError

_ENTRIES = ("modules.json", "config.json")


class TermWeights(NamedTuple):
    """``terms``, ``(m,)`` int32, increasing; ``weights``, ``(m,)`` float32, all > 0."""

    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class SparseModel(Protocol):
    """Texts to weighted terms."""

    @property
    def name(self) -> str:
        """The model's name for people."""

    @property
    def fingerprint(self) -> str:
        """An id that changes when the term weights change."""

    def encode_query(self, text: str) -> TermWeights:
        """The terms of one query."""

    def encode_documents(self, texts: Sequence[str], *, batch_size: int = ...) -> list[TermWeights]:
        """The terms of each passage."""

    def term(self, term: int) -> str:
        """The spelling of a term."""


class SpladeModel:
    """A sparse encoder from a folder; ``max_terms`` keeps only the heaviest terms of a text."""

    def __init__(self, path: str | Path, *, device: str = "cpu", max_terms: int | None = None) -> None:
        if max_terms is not None and max_terms < 1:
            raise ConfigError(f"max_terms must be >= 1 or None, got {max_terms}")
        try:
            from sentence_transformers import SparseEncoder
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "torch", "SpladeModel") from error
        if Path(path).is_dir() and not any(Path(path, name).is_file() for name in _ENTRIES):
            raise ModelError(f"{path} holds no model: expected {' or '.join(_ENTRIES)} in it")
        try:
            self.model = SparseEncoder(str(path), device=device)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ModelError(
                f"sparse encoder {str(path)!r} could not be loaded: {error}. Give the path of a folder that "
                "SparseEncoder.save made, or of a masked language model with its tokenizer"
            ) from error
        self._path = Path(path)
        self._modules = repr(self.model)  # now, because pooling adds its dimension when it first runs
        self._max_terms = max_terms

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._path.name

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of the modules, all weights, the prompts and ``max_terms``."""
        reading = (sorted((self.model.prompts or {}).items()), self._max_terms)
        tensors = self.model.state_dict()
        return torch_fingerprint(self.name, self._modules, reading, tensors=tensors, with_dtypes=True)

    def encode_query(self, text: str) -> TermWeights:
        """The terms of one query."""
        return self._encode(self.model.encode_query, check_texts([text]))[0]

    def encode_documents(self, texts: Sequence[str], *, batch_size: int = 16) -> list[TermWeights]:
        """The terms of each passage."""
        listed = check_texts(texts)
        found: dict[int, TermWeights] = {}
        for rows in batches_by_length(listed, batch_size):
            made = self._encode(self.model.encode_document, [listed[row] for row in rows])
            found.update(zip(rows, made, strict=True))
        return [found[row] for row in range(len(listed))]

    def term(self, term: int) -> str:
        """The tokenizer's spelling."""
        return str(self.model.tokenizer.convert_ids_to_tokens(term))

    def _encode(self, encode: Any, texts: list[str]) -> list[TermWeights]:
        raw = (
            encode(texts, batch_size=len(texts), show_progress_bar=False, convert_to_sparse_tensor=False)
            .float()
            .cpu()
            .numpy()
        )
        if not np.isfinite(raw).all() or raw.min() < 0:
            raise ModelError(f"sparse encoder {self.name!r} returned weights that are not finite and >= 0")
        return [self._terms_of(row) for row in raw]

    def _terms_of(self, row: npt.NDArray[np.float32]) -> TermWeights:
        terms = np.flatnonzero(row)
        if self._max_terms is not None and len(terms) > self._max_terms:
            terms = np.sort(terms[np.argsort(-row[terms], kind="stable")[: self._max_terms]])
        return TermWeights(terms.astype(np.int32), row[terms].astype(np.float32))
