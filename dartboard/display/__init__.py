"""Display of results: terminal, notebook, JSON.

::

    view.py            a result as plain values (View), and sentences about it
    selection_view.py  the same for the result of ``select``; its map and data frame
    terminal.py        a table at a Python prompt (as_text); passages on the command line (print_result)
    html.py            the card of a notebook (as_html): svg_map.py draws its map, layout.py computes the
                       positions, style.py has colours and rules
    records.py         a result as dictionaries: JSON, and metadata of other frameworks' documents
    plain_text.py      untrusted text made safe; a passage's location; counts as text

Nothing here uses a model or a store.
"""

from dartboard.display.html import as_html
from dartboard.display.layout import Layout, kruskal_stress, radial_layout
from dartboard.display.terminal import as_text
from dartboard.display.view import Board, Pick, View

__all__ = [
    "Board",
    "Layout",
    "Pick",
    "View",
    "as_html",
    "as_text",
    "kruskal_stress",
    "radial_layout",
]
