"""Thoughts before an answer are left out, in whatever pieces they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.llm.reply_parser import Thoughts


def said(*pieces):
    thoughts = Thoughts()
    return "".join(thoughts.after(piece) for piece in pieces) + thoughts.rest()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("An answer [1].", "An answer [1]."),
        ("<think>hmm</think>An answer", "An answer"),
        ("\n<think>hmm\n</think>\n\nAn answer", "An answer"),
        ("<think>never ends", ""),
        ("<think>a</think>", ""),
        ("<thin", "<thin"),
        ("<b>bold</b> <think>later</think>", "<b>bold</b> <think>later</think>"),
        ("", ""),
    ],
)
def test_forms(text, kept):
    assert said(text) == kept
    assert said(*text) == kept


@given(st.text(alphabet="<think>/ abc", max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_pieces_change_nothing(text, one, two):
    first, second = sorted((one, two))
    assert said(text[:first], text[first:second], text[second:]) == said(*text)
