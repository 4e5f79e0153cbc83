"""Evidence counts only if it stands in a context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.evidence import check_quote

NOTE = Document("note", "The “Code” of door 7\n   is 4711 — keep it secret. It was Chloé who set it.")
OTHER = Document("other", "Doors open inwards. LSU")


@pytest.mark.parametrize(
    ("evidence", "kept"),
    [
        ("of door 7 is 4711", "of door 7\n   is 4711"),
        ('the "code" OF door 7', "The “Code” of door 7"),
        ("'is 4711 - keep it secret.'", "is 4711 — keep it secret."),
        ("Chloe who set it", "Chloé who set it"),
        ("code” of door ... keep it secret", "Code” of door … keep it secret"),
        ("Doors open inwards […] Chloé who", "Doors open inwards … Chloé who"),
    ],
)
def test_a_quote_is_kept_in_the_contexts_spelling(evidence, kept):
    quote = check_quote(evidence, [NOTE, OTHER])
    assert (quote.text, quote.trouble) == (kept, "")


@pytest.mark.parametrize(
    ("evidence", "trouble"),
    [
        ("", "no evidence"),
        (" ... ", "no evidence"),
        ("the code of door 8 is 4711", "stands in no context"),
        ("code of door 7 ... is 4712", "stands in no context"),
        ("4711", "too short"),
        ("ode” of door 7 is", "stands in no context"),
        ("of door 7 is 47", "stands in no context"),
    ],
)
def test_other_quotes_do_not_count(evidence, trouble):
    quote = check_quote(evidence, [NOTE, OTHER])
    assert quote.text == ""
    assert trouble in quote.trouble


def test_a_whole_context_may_be_short():
    assert check_quote("LSU", [Document("d", "LSU.")]).text == "LSU"


@pytest.mark.parametrize(
    ("evidence", "answers", "counts"),
    [
        ("12 grams", (), True),
        ("12 grams", (("12 grams",),), True),
        ("grams", (), False),
        ("12", (), False),
        ("12", (("twelve", "12"),), True),
        ("green", (), False),
        ("green", (("blue",), ("green",)), True),
        ("7 cups", (), False),
        ("is 12", (), False),
        ("2 grams", (), False),
    ],
)
def test_a_short_quote_counts_if_it_says_something(evidence, answers, counts):
    context = Document("d", "Take 12 grams of green tea for 7 cups of water, and wait: it is 12 now.")
    quote = check_quote(evidence, [context], question="How much tea do I take for 7 cups?", answers=answers)
    assert quote.text == (evidence if counts else "")
    assert counts or "too short" in quote.trouble or "stands in no context" in quote.trouble


def test_repeating_the_question_is_no_evidence():
    stuffed = Document("d", "What is the code of door 7? This page is about the code of door 7.")
    question = "What is the code of door 7?"
    assert "repeats words" in check_quote("the code of door 7", [stuffed], question=question).trouble
    assert check_quote("This page is about", [stuffed], question=question).trouble == ""
    words = Document("d", "Code of the door: is 7 the door, what code? Door 7 code.")
    assert (
        "repeats words" in check_quote("is 7 the door, what code? Door 7", [words], question=question).trouble
    )


def test_quoting_everything_shows_nothing():
    long = Document("d", "word " * 2000)
    assert "so long" in check_quote(long.text, [long]).trouble


@given(st.text(min_size=1, max_size=120), st.data())
def test_whole_lines_of_a_context_stand_in_it(text, data):
    quote = check_quote(text, [Document("d", f"before\n{text}\nafter")])
    if quote.text:
        assert all(part in f"before\n{text}\nafter" for part in quote.text.split(" … "))
    else:
        assert quote.trouble
