"""A selection as people meet it: an index, a table, a card."""

import re

import numpy as np
import pytest

from dartboard.explain.selection_view import MOST, board_of, view_of
from dartboard.selection import (
    Dartboard,
    Limits,
    from_distances,
    from_log_probs,
    log_softmax,
    select,
    select_many,
)
from dartboard.selection.kernels import distances, unit_rows
from tests.explain.views import check_alone, rows_of
from tests.selection.pools import topical

QUERY, VECTORS = topical(100, seed=3, copies=1, noise=0.3)


def true_distances(query, vectors):
    unit = unit_rows(np.asarray(vectors), np.float64)
    return (1.0 - unit @ unit_rows(np.asarray(query)[None], np.float64)[0]) / 2.0


def test_a_selection_is_an_index():
    found = select(VECTORS, QUERY, k=4)
    assert np.array_equal(VECTORS[found], VECTORS[found.indices])
    assert list(found) == found.indices.tolist() and all(type(one) is int for one in found)
    assert np.asarray(found).dtype == np.intp and np.shares_memory(np.asarray(found), found.indices)
    assert np.array(found, dtype=np.int32).dtype == np.int32
    copied = np.array(found)
    copied[0] = -1
    assert found.indices[0] != -1


def test_the_map_shows_what_was_selected_from():
    found = select(VECTORS, QUERY, k=5)
    board = board_of(found)
    assert board.total == len(board.names) == 200
    assert board.names[:5] == [str(one) for one in found] and board.order[:6].tolist() == [0, 1, 2, 3, 4, -1]
    positions = np.array(board.names, dtype=int)
    assert board.distance == pytest.approx(true_distances(QUERY, VECTORS)[positions], abs=1e-6)
    assert np.linalg.norm(board.points, axis=1) * board.distance.max() == pytest.approx(
        board.distance, abs=1e-9
    )
    assert board.weight.sum() == pytest.approx(1.0)
    expected = np.exp(-(board.distance**2) / (2 * found.sigma.value**2))
    assert board.weight == pytest.approx(expected / expected.sum(), rel=1e-3)
    for order, stands in enumerate(found.stands_for):
        assert set(positions[board.owner == order]) == set(stands)


def test_the_card_and_the_table_agree():
    found = select(VECTORS, QUERY, k=5)
    rows = rows_of(check_alone(found._repr_html_()))
    text = repr(found)
    for place, pick in enumerate(found):
        assert rows[1 + place][:3] == [str(place + 1), str(pick), f"{found.similarity[place]:.3f}"]
        assert re.search(rf"^{place + 1} +{pick} +{found.similarity[place]:.3f} ", text, flags=re.MULTILINE)
    assert text.startswith("5 of 200 candidates by dartboard\n")
    assert f"σ {found.sigma.value:.3g} from the candidates" in text
    assert "no set within the same limits covers more than" in text


def test_large_pools_show_the_nearest():
    query, vectors = topical(1500, seed=1, dim=32)
    found = select(vectors, query, k=4, must_include=[int(np.argmax(true_distances(query, vectors)))])
    board = board_of(found)
    assert len(board.names) == MOST and board.total == 1500
    farthest = board.distance[4:].max()
    hidden = np.setdiff1d(np.arange(1500), np.array(board.names, dtype=int))
    assert true_distances(query, vectors)[hidden].min() >= farthest - 1e-9
    html = found._repr_html_()
    assert "The 300 nearest of 1,500 candidates are shown." in html and len(html) < 120_000


def test_candidates_that_limits_leave_out_are_not_on_the_map():
    found = select(VECTORS, QUERY, k=3, exclude=[0, 1, 2])
    assert board_of(found).total == 197 and not {"0", "1", "2"} & set(board_of(found).names)


def test_scores_make_the_areas():
    scores = np.linspace(0, 1, 200)
    found = select(VECTORS, QUERY, k=3, scores=scores)
    board = board_of(found)
    wanted = np.exp(log_softmax(scores))[np.array(board.names, dtype=int)]
    assert board.weight == pytest.approx(wanted)


def test_a_vocabulary_has_no_lines():
    found = select(VECTORS, QUERY, k=3, targets=VECTORS[:20], sigma=0.2, exclude=[5])
    board = board_of(found)
    assert (board.owner == -1).all() and board.total == 200
    view = view_of(found)
    assert view.targets_are == "vocabulary" and view.head == "3 of 199 candidates by dartboard"
    said = [one for pick in view.picks for one in pick.stands_for]
    assert all(one.startswith("t") and int(one[1:]) < 20 for one in said)


@pytest.mark.parametrize("distance", ["scaled_cosine", "euclidean"])
def test_euclidean_maps_have_euclidean_rings(distance):
    found = select(VECTORS, QUERY, k=3, distance=distance)
    shown = board_of(found).distance
    gaps = np.linalg.norm(VECTORS[found].astype(np.float64) - QUERY, axis=1)
    assert shown[:3] == pytest.approx(
        gaps if distance == "euclidean" else true_distances(QUERY, VECTORS)[found], abs=1e-6
    )


def test_distances_are_enough_for_a_map():
    unit = unit_rows(VECTORS.astype(np.float64))
    between = distances(unit, unit, "scaled_cosine")
    to_query = true_distances(QUERY, VECTORS)
    lopsided = between + np.triu(np.full_like(between, 0.01), 1)
    found = Dartboard().select(from_distances(to_query, lopsided), Limits(k=4))
    board = board_of(found)
    assert board.distance[:4] == pytest.approx(to_query[found.indices]) and board.total == 200
    check_alone(found._repr_html_())


def test_without_distances_there_are_bars_and_a_table():
    logs = np.log(np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]]))
    found = Dartboard().select(from_log_probs(np.log([0.5, 0.3, 0.2]), logs), Limits(k=2))
    assert board_of(found) is None
    tree = check_alone(found._repr_html_())
    assert len(rows_of(tree)) == 3 and not list(tree.iter("figure"))
    assert "probabilities as given" in repr(found)


def test_many_queries_at_once_show_tables():
    queries = np.stack([QUERY, VECTORS[7]])
    pools = np.stack([VECTORS, VECTORS])
    for found in select_many(pools, queries, k=3):
        assert len(rows_of(check_alone(found._repr_html_()))) == 4 and "by dartboard" in repr(found)


def test_other_methods_say_how_they_selected():
    assert repr(select(VECTORS, QUERY, k=2, method="mmr")).startswith(
        "2 of 200 candidates by mmr (relevance_weight = 0.7)\n"
    )


def test_an_empty_selection_shows_itself():
    found = select(VECTORS, QUERY, token_budget=1, costs=np.full(200, 5.0))
    assert len(found) == 0 and list(found) == []
    assert repr(found).startswith("0 of 200 candidates by dartboard")
    assert not list(check_alone(found._repr_html_()).iter("table"))


def test_arrays_that_changed_since_give_no_map():
    candidates = VECTORS[:20].copy()
    found = select(candidates, QUERY, k=3)
    assert board_of(found) is not None
    candidates[0, 0] = float("nan")
    assert board_of(found) is None and len(rows_of(check_alone(found._repr_html_()))) == 4
    candidates[0, 0] = 1.0
    assert board_of(found) is not None


def test_lists_may_change():
    candidates = VECTORS[:20].tolist()
    found = select(candidates, QUERY, k=3)
    del candidates[5:]
    assert board_of(found) is not None


def test_nothing_is_kept_but_what_the_caller_gave():
    found = select(VECTORS, QUERY, k=3)
    assert found.origin.candidates is VECTORS and found.origin.query is QUERY
    assert found.relevance.shape == (200,)


def test_several_questions_and_what_was_seen_are_named():
    found = select(VECTORS, VECTORS[:2] + 0.1, k=3, seen=[7])
    text = repr(found)
    assert text.count("for: question ") == 3 and "of question 0\n" in text and "of question 1\n" in text
    assert text.rstrip().endswith("was covered before, by what was seen")
    assert "for: question" in found._repr_html_()
