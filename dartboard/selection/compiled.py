"""Compiled selection, switched on by :func:`accelerate` (extra ``fast``).

:mod:`dartboard.selection.machine` makes the same picks with the same proofs as the walks in NumPy, and hands
a pick that it cannot prove back to them. It saves the price of some hundred NumPy calls, which is most of
the time on small pools, and half of the kernel's symmetric matrix. Importing numba takes half a second
and compiling, the first time on a machine, several more; hence on request.
"""

from types import ModuleType

import numpy as np

from dartboard.errors import MissingExtraError

_machine: ModuleType | None = None


def accelerate() -> None:
    """Compile what selection spends its time on, or load it compiled; selections from then on use it."""
    global _machine
    if _machine is not None:
        return
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("numba", "fast", "accelerate()") from error
    from dartboard.selection import machine

    warm_up(machine)
    _machine = machine


def compiled() -> ModuleType | None:
    """The compiled functions where :func:`accelerate` was called."""
    return _machine


def warm_up(machine: ModuleType) -> None:
    """Call everything once with each type that selection uses."""
    bits = np.ones((1, 2), np.uint64)
    machine.prints(bits[:, :1], bits[0, :1], bits[0].copy())
    machine.fill(np.ones((1, 1), np.float32), np.float32(-1.0))
    machine.gaussian(np.ones((1, 1), np.float32), 0, np.float32(-1.0), np.ones((1, 1), np.float32))
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
