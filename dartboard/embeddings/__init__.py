"""Texts to vectors, and pairs of texts to scores.

Importing this package loads NumPy and nothing heavier: each name below brings in its module, and that
module its dependencies, when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dartboard.embeddings.base import BatchModel, EmbeddingModel
    from dartboard.embeddings.default import default_model
    from dartboard.embeddings.descriptions import ModelDescription, TaskType, known_description
    from dartboard.embeddings.onnx import OnnxModel

_HOMES = {
    "BatchModel": "base",
    "EmbeddingModel": "base",
    "ModelDescription": "descriptions",
    "OnnxModel": "onnx",
    "TaskType": "descriptions",
    "default_model": "default",
    "known_description": "descriptions",
}

__all__ = [
    "BatchModel",
    "EmbeddingModel",
    "ModelDescription",
    "OnnxModel",
    "TaskType",
    "default_model",
    "known_description",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
