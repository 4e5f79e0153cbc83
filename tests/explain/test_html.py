"""The card of a notebook: true to the numbers, alone in its place, and readable everywhere."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.explain.html import as_html
from dartboard.explain.style import DARK, LIGHT, PICKS, colour, number_colour, sheet, tint
from dartboard.explain.svg_map import round_gap
from dartboard.explain.view import Pick
from dartboard.plain_text import clean, shortened
from tests.examples import examples
from tests.explain.views import HOSTILE, board, check_alone, drawn, parsed, rows_of, view


def test_the_table_has_the_numbers():
    rows = rows_of(drawn())
    assert rows[0] == ["#", "index", "similarity", "gain", "coverage", "stands for"]
    assert rows[1] == ["1", "7", "0.600", "50 %", "50 %", "itself and 1: 9"]
    assert rows[2] == ["2", "3", "0.200", "25 %", "75 %", "itself"]


def test_what_is_not_known_has_no_column():
    rows = rows_of(drawn(picks=(Pick(name="a", text="one"), Pick(name="b")), board=None, names_are="passage"))
    assert rows == [["#", "passage"], ["1", "a"], ["", "one"], ["2", "b"]]


def test_the_coverage_bar_adds_up_and_marks_what_no_set_can_exceed():
    tree = drawn()
    bar = next(svg for svg in tree.iter("svg") if svg.get("class") == "dbv-mass")
    parts = [
        (float(part.get("x")[:-1]), float(part.get("width")[:-1]))
        for part in bar.iter("rect")
        if part.get("x")
    ]
    assert parts == [(0.0, 50.0), (50.0, 25.0)]
    assert [line.get("x1") for line in bar.iter("line")] == ["90.00%"]
    assert "75 %" in bar.get("aria-label")
    for most in (None, 0.75, 1.0):
        svg = next(svg for svg in drawn(most=most).iter("svg") if svg.get("class") == "dbv-mass")
        assert not list(svg.iter("line"))


def circles(tree, kind):
    found = next(svg for svg in tree.iter("svg") if svg.get("class") == "dbv-map")
    return [one for one in found.iter("circle") if (kind in (one.get("class") or ""))]


def test_the_map_is_true():
    tree = drawn()
    rings = circles(tree, "dbv-ring")
    picks = circles(tree, "dbv-pick")
    labels = [one.text for one in tree.iter("text") if one.get("class") == "dbv-scale"]
    assert labels == ["0.1", "0.2", "0.3", "0.4"]
    at = {one.find("title").text.split(":")[0]: one for one in picks}
    radius = {
        name: math.dist((200, 200), (float(one.get("cx")), float(one.get("cy")))) for name, one in at.items()
    }
    ring = {label: float(one.get("r")) for label, one in zip(labels, reversed(rings), strict=True)}
    assert ring["0.4"] == pytest.approx(174.0) and ring["0.2"] == pytest.approx(87.0)
    assert radius["3"] == pytest.approx(ring["0.4"], abs=16)  # its number stands beside it, outwards
    first = next(one for one in picks if one.find("title").text.startswith("7:"))
    assert float(first.get("cy")) == pytest.approx(200 - ring["0.2"], abs=0.06)
    numbers = [one.text for one in tree.iter("text") if "dbv-no" in one.get("class", "")]
    assert sorted(numbers) == ["1", "1", "2", "2"]  # on the map and in the bar


def test_areas_are_weights():
    tree = drawn(board=board(weight=np.array([0.64, 0.16, 0.04])))
    first = next(one for one in circles(tree, "dbv-pick") if one.find("title").text.startswith("7:"))
    other = next(
        one for one in tree.iter("circle") if one.find("title") is not None and "9:" in one.find("title").text
    )
    assert float(first.get("r")) / float(other.get("r")) == pytest.approx(4.0, rel=0.02)


def test_lines_lead_to_the_pick_that_stands_for_a_candidate():
    tree = drawn()
    lines = [one for one in tree.iter("path") if one.get("class") == tint(0)]
    assert len(lines) == 1 and lines[0].get("d").count("M") == 1
    alone = drawn(board=board(owner=np.array([0, 1, -1])))
    assert not [one for one in alone.iter("path") if one.get("class") != "dbv-eye"]
    assert "no pick stands for it" in "".join(alone.itertext())


def test_the_map_as_a_table_is_sorted_by_distance():
    details = next(drawn().iter("details"))
    rows = [["".join(cell.itertext()) for cell in row] for row in details.iter("tr")]
    assert [row[0] for row in rows] == ["index", "7", "9", "3"]
    assert rows[2] == ["9", "0.204", "30 %", "pick 1 stands for it"]


def test_it_says_when_not_all_candidates_are_shown():
    caption = "".join(next(drawn(board=board(total=12_000)).iter("figcaption")).itertext())
    assert "The 3 nearest of 12,000 candidates are shown." in caption
    assert "shown" not in "".join(next(drawn().iter("figcaption")).itertext())


def test_candidates_at_the_query_are_drawn_in_the_middle():
    same = board(points=np.zeros((3, 2)), distance=np.zeros(3), weight=np.zeros(3))
    tree = drawn(board=same)
    assert not circles(tree, "dbv-ring")
    assert {(one.get("cx"), one.get("cy")) for one in circles(tree, "dbv-pick")} >= {("200.0", "200.0")}


def test_nothing_selected_is_a_card_without_tables():
    tree = drawn(picks=(), board=None, facts=())
    assert not list(tree.iter("table")) and "2 of 3" in "".join(tree.itertext())


def test_texts_cannot_break_out():
    hostile = (Pick(name=HOSTILE, gain=0.5, stands_for=(HOSTILE, "<b>"), text=HOSTILE),)
    one = board(
        points=np.zeros((1, 2)),
        distance=np.zeros(1),
        weight=np.ones(1),
        order=np.array([0]),
        owner=np.array([0]),
        names=[HOSTILE],
        weight_is="<i>",
        distance_is="<u>",
    )
    html = as_html(
        view(head=HOSTILE, facts=(HOSTILE,), picks=hostile, board=one, names_are="<th>", targets_are="<s>")
    )
    tree = check_alone(html)
    assert "<script" not in html and "onerror=&quot;" in html and "\x1b" not in html
    assert clean(HOSTILE) in "".join(next(tree.iter("p")).itertext())


@given(st.text(st.characters(exclude_categories=("Cn", "Cs")), max_size=400))
@examples(150)
def test_any_text_comes_out_as_it_went_in(text):
    tree = parsed(as_html(view(picks=(Pick(name=text, text=text or "x"),), board=None)))
    cells = rows_of(tree)
    assert cells[1][1] == shortened(text, 60)
    if clean(text):
        assert cells[2][1] == shortened(text, 300)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_words_are_readable_in_both_themes(theme):
    assert contrast(theme["ink"], theme["surface"]) >= 7
    assert contrast(theme["soft"], theme["surface"]) >= 4.5
    assert contrast(theme["alone"], theme["surface"]) >= 3


def test_numbers_are_readable_on_every_colour():
    for order in range(len(PICKS)):
        assert contrast(colour(order), number_colour(order)) >= 4.4
    assert tint(8) == tint(0) and colour(9) == colour(1) and tint(-1) == "dbv-a"


def test_every_rule_stays_inside_the_card():
    text = sheet()
    assert text.count("{") == text.count("}")
    inner = text.replace("@media (prefers-color-scheme:dark){", "").replace(
        "@container (max-width:600px){", ""
    )
    for rule in inner.split("}"):
        for selector in rule.split("{")[0].split(","):
            assert not selector or ".dbv" in selector, selector


@pytest.mark.parametrize(("about", "gap"), [(0.11, 0.1), (0.16, 0.2), (3.4, 5.0), (0.8, 1.0), (2.3e-7, 2e-7)])
def test_rings_stand_at_round_distances(about, gap):
    assert round_gap(about) == pytest.approx(gap)


def test_badges_make_way_for_one_another():
    close = board(
        points=np.array([[0.0, 0.5], [0.01, 0.5], [0.0, 0.49], [0.02, 0.5]]),
        distance=np.array([0.5, 0.5, 0.49, 0.5]),
        weight=np.array([0.01, 0.01, 0.01, 1.0]),
        order=np.array([0, 1, 2, -1]),
        owner=np.array([0, 1, 2, -1]),
        names=["1", "2", "3", "4"],
        total=4,
    )
    badges = [one for one in circles(drawn(board=close), "dbv-pick") if one.get("r") == "9.0"]
    centres = [(float(one.get("cx")), float(one.get("cy"))) for one in badges]
    assert len(centres) == 3
    assert min(math.dist(one, other) for one, other in itertools.combinations(centres, 2)) > 12
