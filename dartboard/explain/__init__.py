"""Why a set was chosen, and how results look.

::

    exploration.py  explore(): a question with its candidates, the picks of three methods, and the reasons
    trace.py        the steps of a selection: gains, runners-up, what each pick stands for
    view.py         a result as plain values, drawn by terminal.py, html.py (with svg_map.py) and records.py

:func:`explore` is imported when it is first used: a result that draws itself needs no engine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dartboard.explain.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in __all__:
            from dartboard.explain import exploration

            return getattr(exploration, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
