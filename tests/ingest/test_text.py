"""What cannot be seen goes; what carries meaning stays."""

from hypothesis import given
from hypothesis import strategies as st

from dartboard.ingest.text import clean, one_line, plain_json, tidy


def test_tidy_keeps_lines_and_spaces():
    assert tidy("a  b\r\n\r\n\r\n\tc\u200b\ufeff\ufffd\x07 d\rcafe\u0301") == "a  b\n\n\n\tc d\ncaf\u00e9"
    assert tidy("नमस्\u200dते \U0001f468\u200d\U0001f469") == "नमस्\u200dते \U0001f468\u200d\U0001f469"
    assert tidy("a\u2028b\x0bc") == "a b c"


def test_clean_is_tidy_and_more():
    assert clean("  a   b\u00a0c \n\n\n\n  d ") == "  a b c\n\n  d"
    assert one_line(" My\n  page\u200b ") == "My page"


@given(st.text())
def test_any_text(text):
    for done in (tidy(text), clean(text), one_line(text)):
        done.encode()
        assert "\x00" not in done
    assert tidy(text).count("\n") == text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def test_plain_metadata():
    deep = value = []
    for _ in range(20):
        value.append([])
        value = value[0]
    mixed = {"a": 2**60, "b": float("inf"), "c": (1, None, True), 3: object, "": 1, "d\x00": "\ud800x\x00"}
    assert plain_json(mixed) | {"3": ""} == {
        "a": str(2**60),
        "b": "inf",
        "c": [1, None, True],
        "3": "",
        "d": "x",
    }
    assert isinstance(plain_json(deep)[0][0][0][0][0][0][0][0], str)
