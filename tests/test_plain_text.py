"""Text that cannot steer a terminal, whole and in pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.plain_text import PlainText, clean, plain_text

CODES = [
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[2J",
    "\x1b[?25l",
    "\x1b[38;5;1m",
    "\x9b31m",
    "\x1b(B",
    "\x1b]0;owned\x07",
]
CODES += [
    "\x1b]0;owned\x07",
    "\x1b]8;;http://a.example\x1b\\",
    "\x1b]8;;\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x9d0;owned\x9c",
    "\x1b[1 q",
]


@pytest.mark.parametrize("code", CODES)
def test_whole_codes_are_left_out(code):
    assert plain_text(f"a{code}red{code} b") == "ared b"
    assert clean(f"a {code}red{code}") == "a red"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[31m and [1] stay", "[31m and [1] stay"),
        ("a\x1b]0;never ended, all of it stays", "a]0;never ended, all of it stays"),
        ("a\x1b[31", "a"),
        ("a\x1b[31é", "aé"),
        ("\x1b\x1b[31mred", "red"),
        ("a\x1bHello", "aHello"),
        ("a\tb\nc\r", "a\tb\nc"),
        ("\ud800", "?"),
    ],
)
def test_what_is_no_whole_code(text, shown):
    assert plain_text(text) == shown


@given(
    st.lists(st.sampled_from([*CODES, *"\x1b[]m1;\\\x07\x9b\x9c(B ", "text", "é"]), max_size=12), st.data()
)
def test_pieces_come_to_the_same_as_the_whole(parts, data):
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    plain = PlainText()
    edges = [0, *cuts, len(text)]
    pieces = [plain.after(text[start:end]) for start, end in pairwise(edges)]
    assert "".join(pieces) + plain.rest() == plain_text(text)
    assert "\x1b" not in plain_text(text)


def test_a_code_without_an_end_holds_little_back():
    plain = PlainText()
    shown = plain.after("a\x1b]0;") + "".join(plain.after("long ") for _ in range(1000))
    assert shown.startswith("a]0;long") and len(shown) + len(plain.rest()) == 4 + 5000
