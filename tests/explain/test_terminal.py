"""A result at a Python prompt."""

import io
import sys

import pytest

from dartboard.explain.terminal import as_text
from dartboard.explain.view import Pick, coverage_text, percent, sigma_text, stands_for_text
from dartboard.plain_text import clean, shortened
from tests.explain.views import HOSTILE, view

TABLE = """\
2 of 3 candidates by dartboard
#  index  similarity  gain              coverage  stands for
1      7       0.600  50 %  ██████████      50 %  itself and 1: 9
2      3       0.200  25 %  █████           75 %  itself
covers 75 % of the probable targets
σ 0.08 from the candidates"""


def test_the_table():
    assert as_text(view(), blocks=True) == TABLE
    plain = as_text(view(), blocks=False)
    assert plain.isascii() and "##########" in plain and "sigma 0.08" in plain


@pytest.mark.parametrize(("encoding", "blocks"), [("utf-8", True), ("ascii", False), ("cp1252", False)])
def test_it_uses_what_stdout_can_write(encoding, blocks, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    text = as_text(view())
    assert ("█" in text) is blocks
    stream.write(text)


def test_texts_stand_below_their_line_and_hold_no_control_characters():
    text = as_text(view(picks=(Pick(name=HOSTILE, text=HOSTILE),), names_are="passage"), blocks=True)
    lines = text.splitlines()
    assert len(lines) == 6 and lines[3].startswith("   </p><script>")
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    assert "gain" not in lines[1] and max(map(len, lines)) <= 90


def test_nothing_selected():
    assert (
        as_text(view(picks=(), facts=("σ 1 as given",)), blocks=True)
        == "2 of 3 candidates by dartboard\nσ 1 as given"
    )


def test_gains_of_nothing_have_no_bar():
    text = as_text(view(picks=(Pick(name="1", gain=0.0, coverage=0.0),)), blocks=True)
    assert "█" not in text and "0 %" in text


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 %"),
        (-1.0, "0 %"),
        (1e-9, "<0.1 %"),
        (0.0123, "1.2 %"),
        (0.0996, "10 %"),
        (0.5, "50 %"),
        (0.9971, "99.7 %"),
        (0.99999, ">99.9 %"),
        (1.0, "100 %"),
        (float("nan"), "0 %"),
    ],
)
def test_shares_in_words(share, words):
    assert percent(share) == words


def test_what_is_covered_in_words():
    words, most = coverage_text(0.75, 0.8)
    assert most == pytest.approx(0.9375) and words.endswith("covers more than 94 %")
    assert coverage_text(0.75, 1.0) == (
        "covers 75 % of the probable targets: no set within the same limits covers more",
        0.75,
    )
    assert coverage_text(0.9, 0.9) == ("covers 90 % of the probable targets", 1.0)
    assert coverage_text(0.0, 0.0) == ("covers 0 % of the probable targets", None)


def test_sigma_in_words():
    assert sigma_text(0.07768, "candidates") == "σ 0.0777 from the candidates"
    assert sigma_text(0.5, "elsewhere") == "σ 0.5 from elsewhere"
    assert sigma_text(float("nan"), "none") == "probabilities as given, without a σ"


def test_what_a_pick_stands_for_in_words():
    assert stands_for_text(Pick(name="1", stands_for=("1", "2", "3", "4")), 2) == "itself and 3: 2, 3 …"
    assert stands_for_text(Pick(name="1", stands_for=("t2", "t3")), 2) == "2: t2, t3"
    assert stands_for_text(Pick(name="1", stands_for=("1",)), 2) == "itself"
    assert stands_for_text(Pick(name="1", stands_for=()), 2) == "nothing new"
    assert stands_for_text(Pick(name="1"), 2) == ""


def test_shortened_texts():
    assert shortened("one two three", 20) == "one two three"
    assert shortened("one  two\n\tthree four", 15) == "one two three …"
    assert shortened("x" * 50, 10) == "xxxxxxxx …"
    assert clean("a\u202eb\ud800c\x00d\x1b e\x0cf") == "ab?cd e f"
