"""Any sentence-transformers model with torch; needs the extra ``torch``."""

from functools import cached_property
from typing import Any

import numpy as np

from dartboard.embeddings.base import BatchModel
from dartboard.embeddings.descriptions import (
    ModelDescription,
    TaskType,
    document_prompt,
    known_description,
)
from dartboard.embeddings.model_files import torch_fingerprint
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import MissingExtraError, ModelError


class SentenceTransformerModel(BatchModel):
    """A model with the pooling, normalisation and prompts of its own files.

    Args:
        model_name: A name on the Hugging Face hub, or the path of a folder.
        device: The torch device.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ModelError: the model cannot be loaded.
    """

    def __init__(self, model_name: str = "all-MiniLM-L6-v2", device: str = "cpu") -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError("sentence-transformers", "torch", "SentenceTransformerModel") from error
        try:
            self.model = SentenceTransformer(model_name, device=device)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"model {model_name!r} could not be loaded: {error}. "
                "Give the path of a folder that SentenceTransformer.save made"
            ) from error
        self._description = _describe(self.model, model_name)

    @property
    def description(self) -> ModelDescription:
        """The description from the model's files."""
        return self._description

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of the modules, all weights and the prompts."""
        prompts = sorted((self.model.prompts or {}).items())
        tensors = self.model.state_dict()
        return torch_fingerprint(self.name, repr(self.model), prompts, tensors=tensors, with_dtypes=True)

    def word_pieces(self) -> list[str]:
        """The tokenizer's vocabulary by id, in its own spelling."""
        vocabulary: dict[str, int] = self.model.tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        is_document = task is TaskType.RETRIEVAL_DOCUMENT
        encode = self.model.encode_document if is_document else self.model.encode_query
        prompt = self._description.prefix(task)
        raw = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False)
        return np.asarray(raw, dtype=np.float32)


def _describe(model: Any, model_name: str) -> ModelDescription:
    """From the model's files; prefixes and σ from dartboard's table if the files have none."""
    known = known_description(model_name)
    prompts = {name: prompt for name, prompt in (model.prompts or {}).items() if prompt}
    if not prompts and known:
        prompts = {"query": known.query_prefix, "document": known.document_prefix}
    modules = [type(module).__name__ for module in model]
    return ModelDescription(
        name=model_name.rstrip("/").rsplit("/", maxsplit=1)[-1],
        dim=_dimension(model),
        max_tokens=model.max_seq_length or 512,
        query_prefix=prompts.get("query", ""),
        document_prefix=document_prompt(prompts),
        normalize="Normalize" in modules,
        pooling="cls" if "cls" in [getattr(module, "pooling_mode", None) for module in model] else "mean",
        sigma=known.sigma if known else None,
    )


def _dimension(model: Any) -> int:
    """The dimension; version 6 renamed the method."""
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(ask())
