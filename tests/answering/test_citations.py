"""Citations: which passages a text cites, where, and what it cites that is not there."""

from hypothesis import given
from hypothesis import strategies as st

from dartboard.answering import Passage, find_citations
from dartboard.answering.citations import without_citations

PASSAGES = [Passage(number=number, text="…", chunk_id=f"c{number}") for number in (1, 2, 3, 4)]


def cited(text):
    return [citation.number for citation in find_citations(text, PASSAGES).known]


def test_forms():
    assert cited("One [1]. Two [2][3], and [1, 4].") == [1, 2, 3, 1, 4]
    assert cited("All [1-3] of [2–4]; also [ 3 ; 1 ].") == [1, 2, 3, 2, 3, 4, 3, 1]
    assert cited("Odd brackets 【2】 and 【3†source】.") == [2, 3]
    assert cited("a link [2](http://x) is a citation") == [2]
    assert cited("none: [x] [] [1.5] 1] [2 [a1] (3)") == []


def test_places_and_ids():
    text = "Rotate the keys [2, 3]. Then restart."
    known = find_citations(text, PASSAGES).known
    assert {text[one.start : one.end] for one in known} == {"[2, 3]"}
    assert [one.chunk_id for one in known] == ["c2", "c3"]


def test_what_is_not_there_is_told_apart():
    found = find_citations("True [1]. False [9]. Both [2, 7]. [0]", PASSAGES)
    assert list(dict.fromkeys(one.number for one in found.known)) == [1, 2]
    assert [one.number for one in found.unknown] == [9, 7, 0]
    assert all(one.chunk_id == "" for one in found.unknown)


def test_code_is_not_looked_into():
    assert cited("Write `row[1]` and\n```\nx = y[2]\n```\nas said [3]. ``` z[4]") == [3]


def test_ranges_that_make_no_sense_are_their_ends():
    found = find_citations("[4-1] and [1-999]", PASSAGES)
    assert [one.number for one in found.known] == [4, 1, 1]
    assert [one.number for one in found.unknown] == [999]


def test_without_citations():
    assert without_citations("In 1066 [1], 3 ships [2, 3].") == "In 1066  , 3 ships  ."
    assert without_citations("none") == "none"


@given(st.text(alphabet="[]【】0123456789,- `a\n", max_size=60))
def test_any_text_can_be_read(text):
    found = find_citations(text, PASSAGES)
    for citation in (*found.known, *found.unknown):
        assert text[citation.start] in "[【" and text[citation.end - 1] in "]】"
    for several in (found.known, found.unknown):
        assert [one.start for one in several] == sorted(one.start for one in several)
    assert {one.number for one in found.known} <= {1, 2, 3, 4}
    assert not {one.number for one in found.unknown} & {1, 2, 3, 4}
