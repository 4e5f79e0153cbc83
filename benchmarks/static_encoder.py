"""A static encoder for comparisons: the mean of WordLlama's token vectors, read from its package as data."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.vectors import Vectors

WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"


class WordLlama(EmbeddingModel):
    """``folder`` is where ``pip install --no-deps --target FOLDER wordllama`` put the package."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        self._vectors = load_file(folder / WEIGHTS)["embedding.weight"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vectors:
        """The mean of the tokens' vectors, at unit length."""
        listed = [texts] if isinstance(texts, str) else list(texts)
        found = self._tokenizer.encode_batch(listed, add_special_tokens=False)
        rows = np.stack([self._vectors[one.ids or [0]].mean(axis=0) for one in found])
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    @property
    def embedding_dim(self) -> int:
        """Of the token vectors."""
        return int(self._vectors.shape[1])

    @property
    def name(self) -> str:
        """As in the tables."""
        return "WordLlama l2_supercat 256"
