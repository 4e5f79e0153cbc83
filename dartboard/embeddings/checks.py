"""What goes into a model and what comes out of it, checked in one place."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dartboard.embeddings.vectors import Vectors
from dartboard.errors import InvalidInputError, ModelError
from dartboard.types import check_matrix


def check_texts(texts: str | Sequence[str]) -> list[str]:
    """The texts as a list; a lone string is a list of one. The first unusable text is named by index."""
    if isinstance(texts, str):
        texts = [texts]
    try:
        listed = list(texts)
    except TypeError:
        raise InvalidInputError(f"expected a text or a list of texts, got {type(texts).__name__}") from None
    for index, text in enumerate(listed):
        _check_text(text, index)
    return listed


def _check_text(text: object, index: int) -> None:
    if not isinstance(text, str):
        raise InvalidInputError(f"text {index} is not a string: got {type(text).__name__}")
    if not text.strip():
        raise InvalidInputError(f"text {index} is empty: drop it or give it some words")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"text {index} holds a lone surrogate and is no valid Unicode: decode it with errors='replace'"
        ) from None


def check_vectors(values: npt.ArrayLike, *, count: int, dim: int, model_name: str) -> Vectors:
    """What a model answered, as ``(count, dim)`` float32: finite, no zero rows, of the shape that was due."""
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(values).astype(np.float32, copy=False)
        if array.shape != (count, dim):
            raise InvalidInputError(f"shape {array.shape} where {(count, dim)} is due")
        if count:
            check_matrix(array, name="vectors")
    except (TypeError, ValueError) as error:
        raise ModelError(f"model {model_name!r} answered unusable vectors: {error}") from error
    return array
