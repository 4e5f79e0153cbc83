"""The model that everything uses unless told otherwise, loaded once per process."""

from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dartboard.embeddings.onnx import OnnxModel

_lock = Lock()


def default_model() -> "OnnxModel":
    """all-MiniLM-L6-v2, the same object for every caller and thread."""
    with _lock:
        return _load()


@cache
def _load() -> "OnnxModel":
    from dartboard.embeddings.onnx import OnnxModel

    return OnnxModel.bundled()
