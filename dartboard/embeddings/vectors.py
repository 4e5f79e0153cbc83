"""Row vectors of one type, and their length."""

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


def unit_rows(rows: Vectors) -> Vectors:
    """Rows of length 1; what has no direction (zero, NaN, infinity) is left for the checks to refuse."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        unit: Vectors = rows / lengths
    return unit
