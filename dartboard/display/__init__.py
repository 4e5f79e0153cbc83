"""What results look like: a table in a terminal; a map, gains and a table in a notebook.

A result says what it holds as a :class:`~dartboard.display.view.View` of plain values; :func:`as_text` and
:func:`as_html` draw that. The command line prints passages by ``terminal.print_result``. Nothing here knows a
model, a store or a way to select.
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
