"""Compiled selection, switched on by :func:`accelerate` (extra ``fast``).

:mod:`dartboard.selection.machine` makes the same picks with the same proofs as the walks in NumPy, and hands
a pick that it cannot prove back to them. It saves the price of some hundred NumPy calls, which is most of
the time on small pools, and half of the kernel's symmetric matrix. Importing numba takes half a second
and compiling, the first time on a machine, several more; hence on request.
"""

from types import ModuleType
from typing import Any

import numpy as np

from dartboard.errors import MissingExtraError
from dartboard.selection.blas import libraries
from dartboard.types import FloatArray

_machine: ModuleType | None = None
_syrk: Any = None


def accelerate() -> None:
    """Compile what selection spends its time on, or load it compiled; selections from then on use it.

    With SciPy installed, matrix products leave out the half of a symmetric matrix that mirrors the other.
    """
    global _machine, _syrk
    if _machine is not None:
        return
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("numba", "fast", "accelerate()") from error
    from dartboard.selection import machine

    try:
        from scipy.linalg.blas import ssyrk as _syrk
    except ImportError:
        _syrk = None
    libraries.cache_clear()  # SciPy brings one of its own
    warm_up(machine)
    _machine = machine


def compiled() -> ModuleType | None:
    """The compiled functions where :func:`accelerate` was called."""
    return _machine


def products(vectors: FloatArray) -> FloatArray:
    """``(n, n)`` products of float32 rows with one another; only those on and below the diagonal count."""
    if _syrk is None:
        product: FloatArray = vectors @ vectors.T
        return product
    room = np.empty((len(vectors), len(vectors)), np.float32, order="F")
    lower: FloatArray = _syrk(1.0, vectors.T, trans=1, c=room, overwrite_c=1).T
    return lower


def warm_up(machine: ModuleType) -> None:
    """Call everything once with each type that selection uses."""
    bits = np.ones((1, 2), np.uint64)
    machine.prints(bits[:, :1], bits[0, :1], bits[0].copy())
    machine.fill(np.ones((1, 1), np.float32), np.float32(-1.0))
    machine.squares(np.ones((1, 1), np.float32), np.ones(1, np.float32))
    for dtype in (np.float32, np.float64):
        one, row = np.ones((1, 1), dtype), np.ones(1, dtype)
        machine.prepare(one, np.zeros(1), 0.0, row.copy(), row.copy(), row.copy())
        rows, gains, most = np.zeros(1, dtype=np.intp), np.empty(1), np.empty(2)
        machine.walk(one, row, row * 0, row.copy(), row, 0.0, 0.0, rows, gains)
        rows[0] = 0
        machine.answer(one, row, row, row * 0, 0.0, 0.0, 1, rows, gains, rows.copy(), most)
    cube, many, single = np.ones((1, 1, 1), np.float32), np.zeros((1, 1), dtype=np.intp), np.ones(1)
    arrays = (many, np.ones((1, 1)), many.copy(), np.ones((1, 2)), single, np.ones(1, dtype=bool))
    machine.answers(cube, np.zeros((1, 1)), np.ones(1, np.float32), np.zeros(1), 0.0, *arrays)
