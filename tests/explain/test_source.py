"""What is shown of passages steers no terminal and says where they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.plain_text import heading_of, place_of, plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", ""),
        ("\x9b2Jgone\x90q\x9c", "gone"),
        ("good\rbad", "goodbad"),
        ("back\x08\x7f", "back"),
        ("\u202egnorw\u2066", "gnorw"),
        ("a\U000e0041b", "ab"),
        ("half \ud800 pair", "half ? pair"),
        ("lines\n\tstay, so do ä 😀 \u200d می\u200cخواهم", "lines\n\tstay, so do ä 😀 \u200d می\u200cخواهم"),
    ],
)
def test_what_steers_goes(text, shown):
    assert plain_text(text) == shown


@given(st.text())
def test_what_is_plain_stays(text):
    assert plain_text(plain_text(text)) == plain_text(text)
    assert "\x1b" not in plain_text(text)


def test_places():
    assert place_of({"source": "a.pdf", "page": 3, "start_line": 9}, "id") == "a.pdf, page 3"
    assert place_of({"source": "a\x1b.md", "start_line": 9}, "id") == "a.md:9"
    assert (place_of({}, "id"), heading_of({})) == ("id", "")
    assert heading_of({"section": " One\n two ", "title": "T"}) == "One two"
    assert heading_of({"title": "T\x07"}) == "T"
