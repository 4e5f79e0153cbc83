"""Views to draw, and a reader of what was drawn."""

import re
from xml.etree import ElementTree

import numpy as np

from dartboard.explain.html import as_html
from dartboard.explain.view import Board, Pick, View

HOSTILE = (
    '</p><script>alert(1)</script><img src=x onerror="alert(2)">&amp; "quoted" \'single\' \x1b[31mred\x07'
)


def board(**changed):
    values = {
        "points": np.array([[0.0, 0.5], [1.0, 0.0], [0.1, 0.5]]),
        "distance": np.array([0.2, 0.4, 0.204]),
        "weight": np.array([0.6, 0.1, 0.3]),
        "order": np.array([0, 1, -1]),
        "owner": np.array([0, 1, 0]),
        "names": ["7", "3", "9"],
        "total": 3,
        "stress": 0.25,
    }
    return Board(**values | changed)


def view(**changed):
    values = {
        "head": "2 of 3 candidates by dartboard",
        "facts": ("covers 75 % of the probable targets", "σ 0.08 from the candidates"),
        "picks": (
            Pick(name="7", similarity=0.6, gain=0.5, coverage=0.5, stands_for=("7", "9")),
            Pick(name="3", similarity=0.2, gain=0.25, coverage=0.75, stands_for=("3",)),
        ),
        "most": 0.9,
        "board": board(),
    }
    return View(**values | changed)


def parsed(html):
    """The card as a tree: it is well-formed, so nothing in it can have broken out of its place."""
    return ElementTree.fromstring(html)


def check_alone(html):
    """No script, no handler, nothing to fetch."""
    tree = parsed(html)
    for element in tree.iter():
        assert element.tag not in {
            "script",
            "iframe",
            "link",
            "img",
            "object",
            "embed",
            "foreignObject",
            "a",
            "use",
        }
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on") and name not in {"href", "src", "id", "action"}
            assert not re.search(r"url\(|javascript:|https?:", value)
    style = "".join(element.text or "" for element in tree.iter("style"))
    assert "@import" not in style and "url(" not in style and "<" not in style
    return tree


def rows_of(tree):
    """The cells of the picks' table, line by line."""
    table = next(tree.iter("table"))
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def drawn(**changed):
    return check_alone(as_html(view(**changed)))
