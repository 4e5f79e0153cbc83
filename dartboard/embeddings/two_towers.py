"""Separate encoders for queries and passages, as in DPR (Karpukhin et al., 2020).

:class:`TwoTowers` combines two models into one embedding model; all code that passes tasks (indexing, search,
the cache, calibration) then uses the right one. :class:`DprEncoder` loads one tower in the layout of the
Hugging Face hub. DPR was trained with inner products; dartboard compares by cosine, as everywhere.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from dartboard.embeddings.base import BatchModel, EmbeddingModel, Progress, TaskModel
from dartboard.embeddings.descriptions import ModelDescription, TaskType
from dartboard.embeddings.model_files import torch_fingerprint
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, MissingExtraError, ModelError

_KINDS = ("DPRQuestionEncoder", "DPRContextEncoder")
_LAYOUT = "config.json, model.safetensors and tokenizer.json of a DPRQuestionEncoder or DPRContextEncoder"


class TwoTowers(TaskModel):
    """``context`` for passages, ``question`` for everything else."""

    def __init__(self, question: EmbeddingModel, context: EmbeddingModel) -> None:
        if question.embedding_dim != context.embedding_dim:
            raise ConfigError(
                f"{question.name!r} has {question.embedding_dim} dimensions and {context.name!r} "
                f"{context.embedding_dim}: use a pair that was trained together"
            )
        self.question, self.context = question, context

    @classmethod
    def from_folders(cls, question: str | Path, context: str | Path) -> Self:
        """A DPR pair from two folders."""
        return cls(
            DprEncoder(question, expected="DPRQuestionEncoder"),
            DprEncoder(context, expected="DPRContextEncoder"),
        )

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.question.name} + {self.context.name}"

    @property
    def embedding_dim(self) -> int:
        """The dimension of both."""
        return self.context.embedding_dim

    @cached_property
    def fingerprint(self) -> str:
        """Both fingerprints."""
        return f"{self.question.fingerprint}+{self.context.fingerprint}"

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Encode with the tower for the task."""
        is_passage = TaskType(task) is TaskType.RETRIEVAL_DOCUMENT
        tower = self.context if is_passage else self.question
        return tower.encode_task(texts, task, batch_size=batch_size, progress=progress)


class DprEncoder(BatchModel):
    """One DPR tower with transformers: the state of the first token, projected if the model does so."""

    def __init__(self, path: str | Path, *, expected: str | None = None, device: str = "cpu") -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingExtraError("transformers", "torch", "DprEncoder") from error
        folder = Path(path)
        try:
            config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
            kind = next(iter(config.architectures or []), "")
            if kind not in _KINDS or (expected is not None and kind != expected):
                raise ValueError(f"it holds a {kind or 'model of no stated architecture'}")
            loaded = getattr(transformers, kind).from_pretrained(str(folder), local_files_only=True)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ModelError(
                f"DPR encoder {str(folder)!r} could not be loaded: {error}. Give a folder with {_LAYOUT}"
            ) from error
        self._torch, self._device = torch, device
        self.model = loaded.eval().to(device)
        self._description = ModelDescription(
            name=folder.resolve().name,
            dim=int(config.projection_dim or config.hidden_size),
            max_tokens=int(config.max_position_embeddings),
            normalize=False,
            pooling="cls",
        )

    @property
    def description(self) -> ModelDescription:
        """Dimension and length; DPR has no prefixes and does not normalise its vectors."""
        return self._description

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of all weights and the vocabulary."""
        vocabulary = sorted(self._tokenizer.get_vocab().items())
        kind = type(self.model).__name__
        return torch_fingerprint(self.name, kind, vocabulary, tensors=self.model.state_dict())

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        features = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._description.max_tokens, return_tensors="pt"
        )
        with self._torch.inference_mode():
            output = self.model(**features.to(self._device)).pooler_output
        return np.asarray(output.float().cpu().numpy(), dtype=np.float32)
