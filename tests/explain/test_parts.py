"""Sets, survival along σ, and what is remembered."""

import numpy as np
import pytest

from dartboard.deadline import deadline
from dartboard.errors import DeadlineError
from dartboard.evaluation.metrics import pairwise_diversity
from dartboard.explain.exploration import plain
from dartboard.explain.search_session import CachedScorer, TokenCounts
from dartboard.explain.set_comparison import overlap, picked_set, redundancy, sigma_range, spaced, survival
from dartboard.selection import Dartboard, Limits, TopK, from_embeddings
from tests.models import SharedWords, chunks_of
from tests.selection.pools import topical

TEXTS = ["tea grows on hills", "tea grows on hills", "coffee is roasted", "cups are made of clay"]


def test_redundancy_is_the_mean_of_the_nearest_cosines():
    cosines = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    assert redundancy(cosines) == pytest.approx((0.9 + 0.9 + 0.2) / 3)
    assert redundancy(np.ones((1, 1))) == redundancy(np.zeros((0, 0))) == 0.0


def test_a_set_describes_itself():
    chunks = chunks_of(TEXTS)
    rows = np.stack([chunk.embedding for chunk in chunks]).astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pool = from_embeddings(unit[0] + 0.2 * unit[2], rows, sigma=0.1)
    sets = {
        method.name: picked_set(
            method.select(pool, Limits(k=2)), chunks, unit @ unit.T, unit @ unit[0], [4, 4, 3, 5]
        )
        for method in (TopK(), Dartboard())
    }
    top, chosen = sets["top_k"], sets["dartboard"]
    assert sorted(top.picks) == [0, 1] and top.redundancy == pytest.approx(1.0) and top.tokens == 8
    assert chosen.picks[0] in (0, 1) and not {0, 1} <= set(chosen.picks)
    assert chosen.redundancy < top.redundancy and chosen.coverage > top.coverage
    for each in sets.values():
        expected = pairwise_diversity([chunks[pick] for pick in each.picks])
        assert each.pairwise_diversity == pytest.approx(expected, abs=1e-6)
    assert chosen.matrix.shape == (2, 2) and top.mean_similarity == pytest.approx(1.0)
    assert overlap(sets) == {"top_k|dartboard": 1}


def test_survival_selects_at_each_sigma():
    query, rows = topical(60, copies=1, noise=0.2)
    asked = []

    def pool_at(sigma):
        asked.append(sigma)
        return from_embeddings(query, rows, sigma=sigma)

    found = survival(pool_at, Limits(k=4), 0.08)
    assert asked == found.sigmas == sorted(found.sigmas) and len(asked) == 25 and 0.08 in asked
    assert (found.sigmas[0], found.sigmas[-1]) == pytest.approx(sigma_range(0.08))
    for sigma, picks in zip(found.sigmas, found.picks, strict=True):
        assert picks == Dartboard().select(pool_at(sigma), Limits(k=4)).indices.tolist()
    assert len({tuple(picks) for picks in found.picks}) > 1


@pytest.mark.parametrize("centre", [1e-5, 3e-5, 0.09, 4.0, 10.0])
def test_sigmas_stay_within_what_a_search_takes(centre):
    sigmas = spaced(centre)
    assert centre in sigmas and sigmas == sorted(sigmas)
    assert sigmas[0] >= 1e-5 * (1 - 1e-12) and sigmas[-1] <= 10.0 * (1 + 1e-12)


def test_survival_ends_with_its_time():
    query, rows = topical(20)
    with deadline(1e-6), pytest.raises(DeadlineError):  # timing: has to run out
        survival(lambda sigma: from_embeddings(query, rows, sigma=sigma), Limits(k=2), 0.1)


def test_lengths_are_counted_once():
    asked = []

    def count(chunks):
        asked.append([chunk.text for chunk in chunks])
        return [len(chunk.text.split()) for chunk in chunks]

    lengths, chunks = TokenCounts(3), chunks_of(TEXTS)
    assert lengths.of(chunks[:3], "m", count) == [4, 4, 3]
    assert asked == [["tea grows on hills", "coffee is roasted"]]
    assert lengths.of(chunks, "m", count) == [4, 4, 3, 5]
    assert asked[1:] == [["cups are made of clay"]] and len(lengths) == 3
    assert lengths.of(chunks[:1], "another", count) == [4] and len(asked) == 3 and len(lengths) == 3
    assert lengths.of([], "m", count) == []


def test_a_scorer_is_asked_once():
    scorer = SharedWords()
    kept = CachedScorer(scorer)
    for _ in range(3):
        assert kept.score("tea", TEXTS).tolist() == scorer.score("tea", TEXTS).tolist()
        kept.score("tea", TEXTS)[:] = 9.0  # whoever gets scores may change them
        assert kept.score_matrix(TEXTS).shape == (4, 4)
    assert kept.bounds == scorer.bounds
    assert [what for what, _ in scorer.asked] == ["score", "score", "matrix", "score", "score"]
    assert kept.asked is scorer.asked


def test_plain_values():
    given = {"a": [1, 2.5, float("nan"), None, True], "b": {1: (float("inf"), "x")}, "c": b"y"}
    assert plain(given) == {"a": [1, 2.5, None, None, True], "b": {"1": [None, "x"]}, "c": "b'y'"}
