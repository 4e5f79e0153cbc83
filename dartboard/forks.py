"""Keep working in a child that was forked while other threads were at work (multiprocessing, gunicorn).

A fork copies locks as they are, and of the threads only the one that forked. What another thread held in that
moment is never released in the child, and whoever asks for it waits for ever. Three kinds of locks are met:

- those of OpenBLAS, held for a whole matrix product; with one thread it takes none, so a child gets one;
- those of ``functools.cached_property``, one a property for all instances (Python 3.11 only);
- dartboard's own.

The last two are renewed. Nothing is done in a child of a process with one thread. Models and stores use other
libraries (onnxruntime, SQLite), whose locks cannot be reached: open them in the child.
"""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_LOCKS = (type(threading.Lock()), type(threading.RLock()), threading.Condition)
_threaded = False


def survive_forks() -> None:
    """Have children of this process repaired; called once, when the package is imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_look, after_in_child=_repair)


def _look() -> None:
    """In the parent: whether other threads may hold something."""
    global _threaded
    _threaded = threading.active_count() > 1


def _repair() -> None:
    if not _threaded:
        return
    from dartboard.selection.blas import libraries

    for library in libraries():
        library.set_num_threads(1)
    for lock in _locks():
        lock._at_fork_reinit()


def _locks() -> Iterator[Any]:
    """Every lock that a module, a class or an object of the package holds."""
    for name, module in list(sys.modules.items()):
        if _ours(name):
            yield from _locks_in(module)
    ours: dict[type, bool] = {}
    for one in gc.get_objects():
        kind = type(one)
        if kind not in ours:
            ours[kind] = _ours(str(kind.__module__))
        if ours[kind]:
            values = (getattr(one, name, None) for name in _attributes(one))
            yield from (value for value in values if isinstance(value, _LOCKS))


def _locks_in(module: ModuleType) -> Iterator[Any]:
    for value in list(vars(module).values()):
        if isinstance(value, _LOCKS):
            yield value
        elif isinstance(value, type) and _ours(value.__module__):
            properties = (one for one in vars(value).values() if isinstance(one, cached_property))
            yield from (one.lock for one in properties if hasattr(one, "lock"))


def _attributes(one: object) -> list[str]:
    slots = (name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()))
    return [*getattr(one, "__dict__", ()), *slots]


def _ours(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE
