"""Embedding models (texts to vectors) and pair scorers (pairs of texts to scores).

Importing this package loads only NumPy: each name below imports its module, and that module its
dependencies, on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dartboard.embeddings.base import BatchModel, EmbeddingModel, PairScorer
    from dartboard.embeddings.by_name import default_model
    from dartboard.embeddings.cache import CachedModel
    from dartboard.embeddings.descriptions import ModelDescription, TaskType, known_description
    from dartboard.embeddings.late_interaction import LateInteraction
    from dartboard.embeddings.onnx import OnnxModel
    from dartboard.embeddings.remote import GeminiModel, OpenAIModel
    from dartboard.embeddings.texts import count_tokens
    from dartboard.embeddings.torch_models import CrossEncoder, SentenceTransformerModel
    from dartboard.http_client import Patience

_HOMES = {
    "BatchModel": "base",
    "CachedModel": "cache",
    "CrossEncoder": "torch_models",
    "EmbeddingModel": "base",
    "GeminiModel": "remote",
    "LateInteraction": "late_interaction",
    "ModelDescription": "descriptions",
    "OnnxModel": "onnx",
    "OpenAIModel": "remote",
    "PairScorer": "base",
    "Patience": "remote",
    "SentenceTransformerModel": "torch_models",
    "TaskType": "descriptions",
    "count_tokens": "texts",
    "default_model": "by_name",
    "known_description": "descriptions",
}

__all__ = [
    "BatchModel",
    "CachedModel",
    "CrossEncoder",
    "EmbeddingModel",
    "GeminiModel",
    "LateInteraction",
    "ModelDescription",
    "OnnxModel",
    "OpenAIModel",
    "PairScorer",
    "Patience",
    "SentenceTransformerModel",
    "TaskType",
    "count_tokens",
    "default_model",
    "known_description",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
