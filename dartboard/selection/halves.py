"""Half of a symmetric product, by the BLAS that NumPy brings.

``X @ X.T`` is symmetric, and NumPy has BLAS work out one half of it. It then copies that half to the other,
entry by entry, which takes a sixth of the time at a thousand rows and half of it at 1,024, where the rows of
the matrix fall on one another in the cache. Who needs one half alone calls BLAS here. Only the one of NumPy's
own wheels is called directly, since its name tells how wide its integers are; with any other, the product is
NumPy's.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from dartboard.selection.blas import libraries
from dartboard.types import FloatArray

_NAME = "scipy_cblas_ssyrk64_"
_BY_ROWS, _LOWER, _AS_IS = 101, 122, 111
_MOST_ROWS = 46_340
"""Of more rows, the lower half has more than 2³¹ places, and OpenBLAS crashes with two threads."""


def lower_product(vectors: FloatArray, out: FloatArray) -> None:
    """Products of float32 rows with one another into ``out``, ``(n, n)``: those on and below the diagonal.

    What stands above the diagonal afterwards means nothing.
    """
    syrk = _syrk() if len(vectors) <= _MOST_ROWS else None
    if syrk is None or not vectors.flags.c_contiguous or out.strides[1] != out.itemsize:
        np.matmul(vectors, vectors.T, out=out)
        return
    n, dim = vectors.shape
    wide = out.strides[0] // out.itemsize
    syrk(_BY_ROWS, _LOWER, _AS_IS, n, dim, 1.0, vectors.ctypes.data, dim, 0.0, out.ctypes.data, wide)


@cache
def address() -> int | None:
    """Where that ``cblas_ssyrk`` stands, for those who call it from C; None with another BLAS."""
    syrk = _syrk()
    return None if syrk is None else ctypes.cast(syrk, ctypes.c_void_p).value


@cache
def _syrk() -> Any:
    """``cblas_ssyrk`` of the BLAS in NumPy's wheels, or None."""
    for library in libraries():
        syrk = getattr(library.dynlib, _NAME, None)
        if syrk is not None:
            flag, count, number, array = ctypes.c_int, ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
            syrk.argtypes = [flag] * 3 + [count] * 2 + [number, array, count, number, array, count]
            syrk.restype = None
            return syrk
    return None
