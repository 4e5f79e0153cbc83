"""The same systems under several conditions, as one picture: who keeps what the first condition gave."""

from collections.abc import Mapping, Sequence

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.evaluation.drawing import INK, Drawing, as_svg, error_bars, label_ends, line_style

Interval = Mapping[str, float]
"""``mean``, ``low`` and ``high``."""

_APART = 0.3
"""How far the points of one condition spread sideways, so that their intervals can be told apart."""


def condition_lines(
    conditions: Sequence[str],
    systems: Mapping[str, Sequence[Interval | None]],
    *,
    reference: str,
    quantity: str,
    title: str,
    level: tuple[float, str] | None = None,
    size: tuple[float, float] = (10.4, 5.2),
) -> str:
    """One line a system along ``conditions``, with intervals; None leaves a gap.

    ``level`` is a height to compare with, and what it is called.
    """
    for name, found in systems.items():
        if len(found) != len(conditions):
            raise InvalidInputError(f"{name!r} has {len(found)} values for {len(conditions)} conditions")
    shifts = np.linspace(-_APART / 2, _APART / 2, len(systems)) if len(systems) > 1 else [0.0]
    with Drawing(*size) as (figure, (axes,)):
        if level is not None:
            axes.axhline(level[0], color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
            axes.set_title(f"– – –  {level[1]}", loc="left", fontsize=9, color=INK)
        ends = {}
        for shift, (name, found) in zip(shifts, systems.items(), strict=True):
            known = [(place + shift, one) for place, one in enumerate(found) if one is not None]
            if not known:
                continue
            look = line_style(name, reference)
            axes.plot([x for x, _ in known], [one["mean"] for _, one in known], **look)
            bars = np.hstack([error_bars(one) for _, one in known])
            axes.errorbar(
                [x for x, _ in known],
                [one["mean"] for _, one in known],
                yerr=bars,
                fmt="none",
                ecolor=look["color"],
                elinewidth=1.6 if name == reference else 0.9,
                alpha=0.9 if name == reference else 0.45,
                zorder=look["zorder"] - 0.5,
            )
            ends[name] = known[-1][1]["mean"]
        axes.set_xlim(-0.5, len(conditions) - 0.6)
        axes.set_xticks(range(len(conditions)), conditions)
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel(quantity)
        label_ends(axes, ends, reference)
        return as_svg(figure, title)
