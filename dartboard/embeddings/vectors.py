"""Types of vectors and scores, and the check of a model's vectors."""

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError, ModelError
from dartboard.types import check_matrix

Vectors = npt.NDArray[np.float32]
"""``(n, d)``, one row per text, or ``(d,)``."""

Scores = npt.NDArray[np.float64]
"""Scores of pairs of texts, ``(n,)`` or ``(n, n)``."""


def check_vectors(values: npt.ArrayLike, *, count: int, dim: int, model_name: str) -> Vectors:
    """The vectors of a model as ``(count, dim)`` float32.

    Raises:
        ModelError: the shape is wrong, or a row is all zeros or not finite.
    """
    try:
        with np.errstate(over="ignore"):
            array = np.asarray(values).astype(np.float32, copy=False)
        if array.shape != (count, dim):
            raise InvalidInputError(f"shape {array.shape} instead of {(count, dim)}")
        if count:
            check_matrix(array, name="vectors")
    except (TypeError, ValueError) as error:
        raise ModelError(f"model {model_name!r} returned unusable vectors: {error}") from error
    return array
