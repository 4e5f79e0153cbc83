"""A retrieval's result shows the texts, as text, whatever else it knows."""

import numpy as np
import pytest

from dartboard import Chunk, DartboardConfig, DartboardRetriever, RetrievalResult
from dartboard.explain.view import view_of
from tests.explain.views import HOSTILE, check_alone, rows_of
from tests.models import WordBag

TEXTS = ["the red door", "the red door again", "a blue window", "a green roof with moss", "nothing at all"]


@pytest.fixture(scope="module")
def found():
    model = WordBag()
    chunks = [
        Chunk(f"c{place}", text, vector, {"source": f"{place}.md"})
        for place, (text, vector) in enumerate(zip(TEXTS, model.encode_documents(TEXTS), strict=True))
    ]
    return DartboardRetriever(DartboardConfig(top_k=3), model).search("red door and blue window", chunks)


def test_a_search_shows_passages_gains_and_a_map_of_the_picks(found):
    tree = check_alone(found._repr_html_())
    rows = rows_of(tree)
    assert rows[0][:2] == ["#", "passage"] and len(rows) == 1 + 2 * 3
    for place, chunk in enumerate(found.chunks):
        assert rows[1 + 2 * place][1] == chunk.metadata["source"] and rows[2 + 2 * place][1] == chunk.text
    svg = next(one for one in tree.iter("svg") if one.get("class") == "dbv-map")
    assert {
        one.find("title").text.split(":")[0] for one in svg.iter("circle") if one.find("title") is not None
    } == {chunk.metadata["source"] for chunk in found.chunks}
    said = "".join(tree.itertext())
    assert "3 passages of 5 candidates by dartboard" in said and "σ" in said and "Area: gain." in said


def test_the_map_has_true_distances(found):
    board = view_of(found).board
    assert board.distance == pytest.approx((1 - np.array(found.metadata["similarity"])) / 2)
    assert board.order.tolist() == [0, 1, 2]


def test_it_prints_without_vectors(found):
    text = repr(found)
    assert "red door" in text and "array(" not in text and len(text.splitlines()) < 16


def result(chunks=2, **metadata):
    made = [Chunk(f"c{place}", f"text {place}", np.eye(3)[place]) for place in range(chunks)]
    return RetrievalResult("a query", made, [0.5] * chunks, metadata)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"gain": [0.5], "coverage": "ab", "similarity": [0.1, "x"], "stands_for": [["c0"]]},
        {"gain": [float("nan"), 0.5], "similarity": [0.1, float("inf")], "bound": "high", "sigma": "wide"},
        {"stands_for": [1, 2], "targets": "vocabulary", "sigma": float("nan")},
        {"gain": None, "similarity": 7},
        {"similarity": [0.5, 0.2], "variant": "crossencoder"},
    ],
)
def test_a_result_that_knows_little_shows_what_it_knows(metadata):
    rows = rows_of(check_alone(result(**metadata)._repr_html_()))
    assert rows[1][1] == "c0" and rows[2][1] == "text 0"
    assert "text 1" in repr(result(**metadata))
    assert view_of(result(**metadata)).board is None


def test_equal_areas_where_gains_are_unknown():
    board = view_of(result(similarity=[0.5, 0.2])).board
    assert board.weight.tolist() == [0.5, 0.5] and board.weight_is == "equal"


def test_vectors_that_do_not_fit_together_give_no_map():
    odd = result(similarity=[0.5, 0.2])
    odd.chunks[1] = Chunk.trusted("c1", "text 1", np.ones(5), {})
    assert view_of(odd).board is None
    odd.chunks[1] = Chunk.trusted("c1", "text 1", np.zeros(3), {})
    assert view_of(odd).board is None


def test_an_empty_result():
    empty = RetrievalResult("a query", [], [], {"candidates": 0, "seconds": {}})
    assert "0 passages of 0 candidates" in "".join(check_alone(empty._repr_html_()).itertext())
    assert "0 passages" in repr(empty)


def test_hostile_passages_stay_text():
    chunk = Chunk(HOSTILE, HOSTILE, np.ones(2), {"source": HOSTILE})
    shown = RetrievalResult(
        HOSTILE, [chunk], [1.0], {"stands_for": [[HOSTILE]], "method": HOSTILE, "retriever": HOSTILE}
    )
    check_alone(shown._repr_html_())
    assert "\x1b" not in repr(shown)


def test_it_shows_that_nothing_relevant_was_found():
    shown = result(relevance={"verdict": "nothing_relevant", "message": "Nothing relevant found: so."})
    assert (
        "Nothing relevant found: so." in repr(shown) and "Nothing relevant found: so." in shown._repr_html_()
    )


SEVERAL = {
    "questions": [
        {"text": "what is red", "weight": 0.5, "coverage": 0.8},
        {"text": HOSTILE, "weight": 0.5, "coverage": 0.25},
    ],
    "serves": [1, 0],
    "covered_before": 0.125,
    "gain": [0.5, 0.1],
    "coverage": [0.625, 0.725],
    "copies": [
        [{"id": "old", "year": 2024, "differs": [["2025", "2024"]]}, {"id": "same", "year": 2023}],
        [{"id": f"copy{one}", "year": one} for one in range(5)],
    ],
}


def test_picks_name_their_question_and_the_copies_that_differ():
    shown = result(**SEVERAL)
    tree = check_alone(shown._repr_html_())
    for text in (repr(shown), "\n".join(tree.itertext())):
        lines = [line.strip() for line in text.splitlines()]
        assert "for: what is red" in lines and 'differs: "2025" vs "2024" in old (year 2024)' in lines
        assert "copy: same (year 2023)" in lines and "copy: copy2 (year 2)" in lines
        assert "and 2 more" in lines and "copy3" not in text
        assert "12 % was covered before, by what was seen" in lines and "\x1b" not in text
    seen, first = [one for one in tree.iter("rect") if one.get("class") in ("dbv-a", "dbv-pick dbv-c0")][:2]
    assert (seen.get("width"), first.get("x")) == ("12.50%", "12.50%")


@pytest.mark.parametrize(
    "wrong",
    [
        {"questions": 7, "serves": [0, 1]},
        {"questions": [{}], "serves": [5, 0]},
        {"serves": None, "copies": [[{}], 3]},
        {"copies": [[{"id": "x", "differs": 4}], []]},
    ],
)
def test_questions_and_copies_that_make_no_sense_are_left_out(wrong):
    text = repr(result(**wrong))
    assert "text 0" in text and "for:" not in text and "differs" not in text
