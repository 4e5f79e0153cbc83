"""A result as self-contained HTML: no script, nothing fetched, every text escaped."""

from html import escape

import numpy as np

from dartboard.explain.style import LIGHT, colour, number_colour, sheet, tint
from dartboard.explain.svg_map import draw_map, state
from dartboard.explain.view import Board, Pick, View, percent, stands_for_text
from dartboard.plain_text import clean, shortened

_NAMES = 4
_FEW_NAMES = 2
"""Represented names that are listed if the passage's text is shown."""

_LONGEST_NAME = 60
_LONGEST_TEXT = 300
_BAR = 48


def as_html(view: View) -> str:
    """The card: the selection, its map if there is one, gains and coverage, and the same as tables."""
    facts = "".join(f'<p class="dbv-facts">{escape(clean(fact))}</p>' for fact in view.facts)
    side = f'<div class="dbv-side">{_mass(view)}{_table(view)}</div>' if view.picks else ""
    columns = f'<div class="dbv-cols">{_figure(view.board)}{side}</div>' if side else ""
    return (
        f'<div class="dbv"><style>{sheet()}</style><p class="dbv-head">{escape(clean(view.head))}</p>'
        f"{facts}{columns}{_twin(view)}</div>"
    )


def _figure(board: Board | None) -> str:
    """The map and its caption."""
    if board is None:
        return ""
    shown = len(board.names)
    of_all = "" if shown == board.total else f" The {shown} nearest of {board.total:,} candidates are shown."
    lines = " A line leads to the pick that stands for a candidate." if (board.owner >= 0).any() else ""
    caption = (
        f"Ring: {board.distance_is}. Area: {board.weight_is}.{lines}{of_all} "
        f"Angles are fitted (stress {board.stress:.2f})."
    )
    return f"<figure>{draw_map(board)}<figcaption>{escape(caption)}</figcaption></figure>"


def _mass(view: View) -> str:
    """The coverage of the picks side by side, and a line at the upper bound of any set."""
    gains = [pick.gain for pick in view.picks if pick.gain is not None]
    if len(gains) < len(view.picks) or not sum(gains) <= 1.0 + 1e-6:
        return ""
    parts = [f'<rect class="dbv-rest" width="100%" height="22" fill="{LIGHT["rest"]}"/>']
    # What was seen, or is on earlier pages, is covered before the first pick.
    start = max(0.0, (view.picks[0].coverage or 0.0) - gains[0])
    if start > 1e-6:
        parts.append(f'<rect class="dbv-a" width="{100 * start:.2f}%" height="22" fill="{colour(-1)}"/>')
    for order, gain in enumerate(gains):
        where, wide = 100 * start, 100 * gain
        start += gain
        parts.append(
            f'<rect class="dbv-pick {tint(order)}" x="{where:.2f}%" width="{wide:.2f}%" height="22" '
            f'fill="{colour(order)}" stroke="#fff"/>'
        )
        if wide > 3.5:
            parts.append(
                f'<text class="dbv-no {tint(order)}" x="{where + wide / 2:.2f}%" y="11" dy="0.36em" '
                f'text-anchor="middle" font-size="12" fill="{number_colour(order)}">{order + 1}</text>'
            )
    if view.most is not None and start < view.most < 0.9995:
        at = f"{100 * view.most:.2f}%"
        parts.append(
            f'<line class="dbv-most" x1="{at}" x2="{at}" y1="0" y2="22" stroke="{LIGHT["ink"]}" '
            'stroke-width="2" stroke-dasharray="3 2"/>'
        )
    label = f"The picks cover {_share(min(start, 1.0))}"
    return (
        f'<svg class="dbv-mass" width="100%" height="22" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _table(view: View) -> str:
    """The picks in order, with the known columns."""
    largest = max((pick.gain or 0.0 for pick in view.picks), default=0.0)
    stands = "stands for" if view.targets_are == "candidates" else f"stands for ({view.targets_are})"
    columns = [
        ("#", "dbv-l", True),
        (view.names_are, "dbv-l", True),
        ("similarity", "", any(pick.similarity is not None for pick in view.picks)),
        ("gain", "", any(pick.gain is not None for pick in view.picks)),
        ("coverage", "", any(pick.coverage is not None for pick in view.picks)),
        (stands, "dbv-l", any(pick.stands_for is not None for pick in view.picks)),
    ]
    kept = [known for _, _, known in columns]
    heads = "".join(
        f'<th scope="col"{_class(kind)}>{escape(title)}</th>' for title, kind, known in columns if known
    )
    rows = []
    for order, pick in enumerate(view.picks):
        cells = _cells(pick, order, largest)
        shown = "".join(cell for cell, known in zip(cells, kept, strict=True) if known)
        rows.append(f"<tr>{shown}</tr>")
        below = [shortened(line, _LONGEST_TEXT) for line in (pick.text, *pick.notes) if line]
        if below:
            lines = "".join(f"<div><bdi>{escape(line)}</bdi></div>" for line in below)
            rows.append(
                '<tr><td class="dbv-text"></td><td class="dbv-text dbv-l dbv-free" '
                f'colspan="{sum(kept) - 1}">{lines}</td></tr>'
            )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cells(pick: Pick, order: int, largest: float) -> list[str]:
    number = f'<span class="dbv-no-box {tint(order)}">{order + 1}</span>'
    share = pick.gain / largest if pick.gain is not None and largest > 0 else 0.0
    bar = (
        f'<svg width="{_BAR}" height="9" aria-hidden="true"><rect class="dbv-rest" width="{_BAR}" height="9" '
        f'fill="{LIGHT["rest"]}"/><rect class="dbv-pick {tint(order)}" width="{_BAR * share:.1f}" height="9" '
        f'fill="{colour(order)}"/></svg>'
    )
    named, most = (" dbv-name", _FEW_NAMES) if pick.text else ("", _NAMES)
    represents = stands_for_text(pick, most)
    gain = "" if pick.gain is None else f'<span class="dbv-gain">{bar}<span>{_share(pick.gain)}</span></span>'
    return [
        f'<th scope="row" class="dbv-l">{number}</th>',
        f'<td class="dbv-l dbv-free{named}"><bdi>{escape(shortened(pick.name, _LONGEST_NAME))}</bdi></td>',
        f"<td>{'' if pick.similarity is None else f'{pick.similarity:.3f}'}</td>",
        f"<td>{gain}</td>",
        f"<td>{'' if pick.coverage is None else _share(pick.coverage)}</td>",
        f'<td class="dbv-l dbv-free"><bdi>{escape(shortened(represents, _LONGEST_NAME))}</bdi></td>',
    ]


def _twin(view: View) -> str:
    """The map's candidates as a table, nearest first, in a collapsed section."""
    board = view.board
    if board is None or len(board.names) <= len(view.picks):
        return ""
    rows = "".join(
        '<tr><th scope="row" class="dbv-l">'
        f"<bdi>{escape(shortened(board.names[at], _LONGEST_NAME))}</bdi></th>"
        f"<td>{board.distance[at]:.3f}</td><td>{_share(float(board.weight[at]))}</td>"
        f'<td class="dbv-l">{state(board, int(at))}</td></tr>'
        for at in np.argsort(board.distance, kind="stable")
    )
    heads = (
        f'<th scope="col" class="dbv-l">{escape(view.names_are)}</th><th scope="col">distance</th>'
        f'<th scope="col">{escape(board.weight_is)}</th><th scope="col" class="dbv-l">state</th>'
    )
    return (
        "<details><summary>The map as a table</summary>"
        f'<div class="dbv-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _share(value: float) -> str:
    return escape(percent(value))


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
