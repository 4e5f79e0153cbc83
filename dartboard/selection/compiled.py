"""Selection in C, where it was compiled when the package was installed.

:mod:`dartboard.selection.machine` makes the same picks with the same proofs as the walks in NumPy, and hands
a pick that it cannot prove back to them. It saves the price of some hundred NumPy calls, which is most of
the time on small pools, and half of the kernel's symmetric matrix. It is loaded at the first selection;
``DARTBOARD_COMPILED=0`` leaves it out, and so does an installation without a C compiler.
"""

import ctypes
import hashlib
import os
from pathlib import Path

from dartboard.selection.machine import Machine

_HERE = Path(__file__).parent
_machine: Machine | None = None
_looked = False


def compiled() -> Machine | None:
    """The compiled functions, or None."""
    global _machine, _looked
    if not _looked:
        _machine, _looked = load(), True
    return _machine


def load() -> Machine | None:
    """The functions of the library; None where there is none, or not one of the source beside it."""
    if os.environ.get("DARTBOARD_COMPILED") == "0":
        return None
    try:
        library = ctypes.CDLL(str(_HERE / "libmachine.so"))
        library.source.restype = ctypes.c_char_p
        digest = hashlib.sha256((_HERE / "machine.c").read_bytes()).hexdigest()
        return Machine(library) if library.source() == digest.encode() else None
    except (OSError, AttributeError):
        return None
