"""A result as self-contained HTML for a notebook: no script, nothing fetched, every text escaped.

The card has its own light background, so it is readable on any page; colours of the drawings are in their
elements, because some viewers strip styles.
"""

from html import escape

import numpy as np

from dartboard.explain.result_view import Map, Pick, View, percent
from dartboard.explain.svg_map import ALONE, INK, LINE, PAPER, SOFT, colour, draw_map
from dartboard.plain_text import clean, shortened

_LONGEST_NAME = 60
_LONGEST_TEXT = 300
_BAR = 48
_REST = "#ecece8"
_STYLE = f"""
.dbv{{max-width:1080px;padding:12px 14px;border:1px solid {LINE};border-radius:8px;background:{PAPER};
color:{INK};color-scheme:light;font:13px/1.45 system-ui,"Segoe UI",Roboto,Arial,sans-serif;text-align:start;
container-type:inline-size}}
.dbv p{{margin:0 0 2px;color:inherit}}
.dbv .dbv-head{{font-size:14px;font-weight:650}}
.dbv .dbv-soft,.dbv figcaption,.dbv summary{{color:{SOFT}}}
.dbv figcaption,.dbv summary{{font-size:12px}}
.dbv summary{{cursor:pointer;margin-top:8px}}
.dbv .dbv-cols{{display:flex;flex-wrap:wrap;gap:10px 22px;margin-top:8px;align-items:flex-start}}
.dbv figure{{flex:1 1 300px;max-width:430px;margin:0}}
.dbv .dbv-side{{flex:2 1 320px;min-width:0;overflow-x:auto}}
.dbv .dbv-scroll{{max-height:320px;overflow:auto}}
.dbv.dbv.dbv table{{width:100%;margin:8px 0 0;border-collapse:collapse;font-size:12.5px;color:inherit}}
.dbv.dbv.dbv tr{{background:none}}
.dbv.dbv.dbv th,.dbv.dbv.dbv td{{padding:4px 12px 4px 0;border:0;border-top:1px solid {LINE};text-align:end;
vertical-align:baseline;font-weight:400;white-space:nowrap;font-variant-numeric:tabular-nums}}
.dbv.dbv.dbv thead th{{color:{SOFT};font-weight:600;border-top:0}}
.dbv.dbv.dbv .dbv-left{{text-align:start;white-space:normal;overflow-wrap:anywhere}}
.dbv.dbv.dbv .dbv-under{{border-top:0;padding-top:0;color:{SOFT}}}
.dbv.dbv.dbv td:nth-child(2){{min-width:10em}}
.dbv .dbv-box{{display:inline-block;min-width:20px;padding:0 5px;border-radius:10px;color:{PAPER};
text-align:center;font-weight:700}}
@container (max-width:600px){{.dbv .dbv-bar{{display:none}}}}
"""


def as_html(view: View) -> str:
    """The card: the selection, its map if there is one, gains and coverage, and the same as tables."""
    facts = "".join(f'<p class="dbv-soft">{escape(clean(fact))}</p>' for fact in view.facts)
    columns = ""
    if view.picks:
        figure = "" if view.map is None else _figure(view.map)
        side = f'<div class="dbv-side">{_coverage_bar(view)}{_picks(view)}</div>'
        columns = f'<div class="dbv-cols">{figure}{side}</div>'
    return (
        f'<div class="dbv"><style>{_STYLE}</style><p class="dbv-head">{escape(clean(view.head))}</p>'
        f"{facts}{columns}{_map_as_table(view)}</div>"
    )


def _figure(drawn: Map) -> str:
    """The map and its caption."""
    shown = len(drawn.names)
    of_all = "" if shown == drawn.total else f" The {shown} nearest of {drawn.total:,} candidates are shown."
    lines = " A line leads to the pick that stands for a candidate." if (drawn.owner >= 0).any() else ""
    caption = (
        f"Ring: {drawn.distance_is}. Area: {drawn.weight_is}.{lines}{of_all} "
        f"Angles are fitted (stress {drawn.stress:.2f})."
    )
    return f"<figure>{draw_map(drawn)}<figcaption>{escape(caption)}</figcaption></figure>"


def _coverage_bar(view: View) -> str:
    """The gains of the picks side by side, and a line at the upper bound of any set."""
    gains = [pick.gain for pick in view.picks if pick.gain is not None]
    if not gains:
        return ""
    # What was seen, or is on earlier pages, is covered before the first pick.
    start = max(0.0, (view.picks[0].coverage or 0.0) - gains[0])
    parts = [_bar_part(0.0, 1.0, _REST)]
    if start > 1e-6:
        parts.append(_bar_part(0.0, start, ALONE))
    for order, gain in enumerate(gains):
        parts.append(_bar_part(start, gain, colour(order), ' class="dbv-pick"'))
        if gain > 0.035:
            parts.append(
                f'<text x="{100 * (start + gain / 2):.2f}%" y="11" dy="0.36em" fill="{PAPER}" '
                f'text-anchor="middle" font-weight="700" font-size="12">{order + 1}</text>'
            )
        start += gain
    if view.most is not None and start < view.most < 0.9995:
        at = f"{100 * view.most:.2f}%"
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="0" y2="22" stroke="{INK}" stroke-width="2" '
            'stroke-dasharray="3 2"/>'
        )
    label = escape(f"The picks cover {percent(min(start, 1.0))}")
    head = f'<svg class="dbv-mass" width="100%" height="22" role="img" aria-label="{label}">'
    return f"{head}{''.join(parts)}</svg>"


def _bar_part(start: float, wide: float, fill: str, kind: str = "") -> str:
    return f'<rect{kind} x="{100 * start:.2f}%" width="{100 * wide:.2f}%" height="22" fill="{fill}"/>'


def _picks(view: View) -> str:
    """The picks in order, with the known columns; texts and notes below each."""
    largest = max((pick.gain or 0.0 for pick in view.picks), default=0.0)
    stands = "stands for" if view.targets_are == "candidates" else f"stands for ({view.targets_are})"
    titles = ["#", view.names_are, "similarity", "gain", "coverage", stands]
    rows = [_cells(pick, order, largest) for order, pick in enumerate(view.picks)]
    known = [any(row[column] for row in rows) for column in range(len(titles))]

    def line(cells: list[str], tag: str) -> str:
        kinds = (' class="dbv-left"', ' class="dbv-left"', "", "", "", ' class="dbv-left"')
        shown = zip(kinds, cells, known, strict=True)
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell, there in shown if there)

    body = ""
    for pick, row in zip(view.picks, rows, strict=True):
        body += f"<tr>{line(row, 'td')}</tr>"
        below = [f"<div>{_text(one, _LONGEST_TEXT)}</div>" for one in (pick.text, *pick.notes) if one]
        if below:
            body += (
                '<tr><td class="dbv-under"></td>'
                f'<td class="dbv-left dbv-under" colspan="{sum(known) - 1}">{"".join(below)}</td></tr>'
            )
    heads = line([escape(title) for title in titles], "th")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cells(pick: Pick, order: int, largest: float) -> list[str]:
    gain = ""
    if pick.gain is not None:
        share = pick.gain / largest if largest > 0 else 0.0
        gain = (
            f'<svg class="dbv-bar" width="{_BAR}" height="9" aria-hidden="true">'
            f'<rect width="{_BAR}" height="9" fill="{_REST}"/>'
            f'<rect width="{_BAR * share:.1f}" height="9" fill="{colour(order)}"/></svg> '
            f"{escape(percent(pick.gain))}"
        )
    return [
        f'<span class="dbv-box" style="background:{colour(order)}">{order + 1}</span>',
        _text(pick.name, _LONGEST_NAME),
        "" if pick.similarity is None else f"{pick.similarity:.3f}",
        gain,
        "" if pick.coverage is None else escape(percent(pick.coverage)),
        _text(pick.stands_for_text(2 if pick.text else 4), _LONGEST_NAME),
    ]


def _map_as_table(view: View) -> str:
    """The map's candidates, nearest first, in a collapsed section."""
    drawn = view.map
    if drawn is None or len(drawn.names) <= len(view.picks):
        return ""
    rows = "".join(
        f'<tr><td class="dbv-left">{_text(drawn.names[place], _LONGEST_NAME)}</td>'
        f"<td>{drawn.distance[place]:.3f}</td><td>{escape(percent(float(drawn.weight[place])))}</td>"
        f'<td class="dbv-left">{drawn.state(place)}</td></tr>'
        for place in np.argsort(drawn.distance, kind="stable").tolist()
    )
    return (
        '<details><summary>The map as a table</summary><div class="dbv-scroll" tabindex="0"><table>'
        f'<thead><tr><th class="dbv-left">{escape(view.names_are)}</th><th>distance</th>'
        f"<th>{escape(drawn.weight_is)}</th>"
        f'<th class="dbv-left">state</th></tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _text(text: str, most: int) -> str:
    """A text in one line; ``bdi`` keeps its direction of writing from its neighbours."""
    return f"<bdi>{escape(shortened(text, most))}</bdi>" if text else ""
