"""Explain a selection: its steps, a map of its candidates, and its stability when σ changes.

:func:`explore` inspects one question with an engine; its parts work on any pools and arrays.
"""

from dartboard.display.layout import Layout, kruskal_stress, radial_layout
from dartboard.inspection.exploration import Exploration, explore
from dartboard.inspection.set_comparison import PickedSet, Survival, overlap, picked_set, redundancy, survival
from dartboard.inspection.trace import RunnerUp, Step, Trace, trace

__all__ = [
    "Exploration",
    "Layout",
    "PickedSet",
    "RunnerUp",
    "Step",
    "Survival",
    "Trace",
    "explore",
    "kruskal_stress",
    "overlap",
    "picked_set",
    "radial_layout",
    "redundancy",
    "survival",
    "trace",
]
