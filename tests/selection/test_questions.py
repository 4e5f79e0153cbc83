"""Several questions at once: the mixture of their probable targets, and whom each pick serves."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import MMR, Dartboard, Limits, TopK, from_embeddings, select
from tests.examples import examples
from tests.selection import oracle
from tests.selection.pools import topical, unit


def asked(n=24, m=3, seed=0, dim=12):
    """``m`` questions, each near a candidate of its own, and ``n`` candidates."""
    rng = np.random.default_rng(seed)
    _, embeddings = topical(n, seed=seed, dim=dim, dtype=np.float64)
    return unit(embeddings[:m] + 0.4 * unit(rng.standard_normal((m, dim)))), embeddings


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03, 0.09, 0.3])
@pytest.mark.parametrize("weights", [[1.2, 1.0, 1.1], [1.0, 5.0, 2.0]])  # equal ones tie at a small σ
def test_picks_and_gains_equal_the_oracle(sigma, weights):
    questions, embeddings = asked(14, seed=int(1e4 * sigma))
    distances = [oracle.scaled_cosine(question, embeddings) for question in questions]
    weight = oracle.mixture([to_query for to_query, _ in distances], weights, sigma)
    picks, gains, total = oracle.greedy(None, distances[0][1], sigma, 8, weight=weight)
    ours = select(embeddings, questions, 8, sigma=sigma, weights=weights)
    assert ours.indices.tolist() == picks
    for got, want in zip(ours.log_gains, gains, strict=True):
        assert got == pytest.approx(float(mpmath.log(want / total)), rel=1e-9, abs=1e-6)


@examples(40)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.02, 0.09, "auto"]))
def test_gains_and_coverage_split_between_the_questions(seed, m, sigma):
    questions, embeddings = asked(30, m, seed)
    weights = np.random.default_rng(seed).uniform(0.1, 3.0, m)
    found = select(embeddings, questions, 6, sigma=sigma, weights=weights)
    assert found.question_gains.shape == (6, m)
    np.testing.assert_allclose(found.question_gains.sum(axis=1), found.gains, atol=1e-6)
    assert (found.question_gains >= -1e-9).all()
    assert ((found.question_coverage >= 0) & (found.question_coverage <= 1)).all()
    mixed = found.question_coverage @ (weights / weights.sum())
    assert mixed == pytest.approx(found.coverage[-1], abs=1e-6)
    assert found.question_of.tolist() == found.question_gains.argmax(axis=1).tolist()
    assert found.coverage[-1] / found.bound <= 1 + 1e-9


def test_every_question_gets_its_passage_however_far_away_it_is():
    """Each question counts alike, though the passages of one are all far from it."""
    rng = np.random.default_rng(4)
    near, far = unit(rng.standard_normal((2, 64)))
    about_near = unit(near + 0.05 * rng.standard_normal((20, 64)))
    about_far = unit(far + 0.2 * rng.standard_normal((20, 64)))
    found = select(np.concatenate([about_near, about_far]), np.stack([near, far]), 4, sigma=0.05)
    assert {int(pick >= 20) for pick in found.indices[:2]} == {0, 1}
    assert found.question_of.tolist() == [int(pick >= 20) for pick in found.indices]


def test_one_question_as_a_matrix_is_one_question():
    query, embeddings = topical(30)
    one, other = select(embeddings, query), select(embeddings, query[None])
    assert one.indices.tolist() == other.indices.tolist() and other.question_gains is None


def test_the_same_question_twice_is_that_question():
    query, embeddings = topical(40)
    once, twice = select(embeddings, query, 8), select(embeddings, np.stack([query, query]), 8)
    assert once.indices.tolist() == twice.indices.tolist()
    np.testing.assert_allclose(once.gains, twice.gains, rtol=1e-6)


def test_near_duplicates_do_not_weaken_their_question():
    """A question with twenty copies of its answer counts no less than one with a single passage."""
    questions, embeddings = asked(20, 2, 7)
    copied = np.concatenate([embeddings, np.repeat(embeddings[:1], 20, axis=0)])
    groups = np.append(np.arange(20), np.zeros(20, dtype=int))
    plain = select(embeddings, questions, 5, sigma=0.05)
    crowded = select(copied, questions, 5, sigma=0.05, groups=groups)
    np.testing.assert_array_equal(embeddings[plain.indices], copied[crowded.indices])
    np.testing.assert_allclose(plain.gains, crowded.gains, rtol=1e-9)
    np.testing.assert_allclose(plain.question_coverage, crowded.question_coverage, rtol=1e-9)


def test_a_vocabulary_is_covered_for_every_question():
    questions, embeddings = asked(20, 2, 3)
    words = unit(np.random.default_rng(1).standard_normal((40, 12)))
    found = select(embeddings, questions, 5, targets=words, sigma=0.1)
    np.testing.assert_allclose(found.question_gains.sum(axis=1), found.gains, atol=1e-6)


def test_scores_of_each_question_replace_its_distances():
    questions, embeddings = asked(12, 2)
    scores = np.zeros((2, 12))
    scores[0, 5] = scores[1, 9] = 50.0
    found = select(embeddings, questions, 2, scores=scores, sigma=0.02)
    assert set(found.indices.tolist()) == {5, 9}
    ranking = -np.abs(np.arange(12) - np.array([[5], [9]])).astype(float)
    pool = from_embeddings(questions, embeddings, ranking=ranking, sigma=0.02)
    assert set(Dartboard().select(pool, Limits(k=2)).indices.tolist()) == {5, 9}


@pytest.mark.parametrize("method", [TopK(), MMR()])
def test_other_methods_take_the_mixture_too(method):
    questions, embeddings = asked()
    found = select(embeddings, questions, 4, method=method)
    assert len(found) == 4 and found.question_gains.shape == (4, 3)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"weights": [1.0]}, ConfigError, "one number per question: got 1 for 3"),
        ({"weights": [1.0, 0.0, 1.0]}, ConfigError, "finite numbers > 0"),
        ({"weights": [1.0, -1.0, 1.0]}, ConfigError, "finite numbers > 0"),
        ({"weights": [1.0, np.inf, 1.0]}, ConfigError, "finite numbers > 0"),
        ({"weights": "abc"}, ConfigError, "one number per question"),
        ({"scores": [1.0] * 24}, InvalidInputError, "3 questions need \\(3, 24\\)"),
    ],
)
def test_bad_weights_and_scores_are_refused(options, error, says):
    questions, embeddings = asked()
    with pytest.raises(error, match=says):
        select(embeddings, questions, 3, **options)


def test_bad_questions_are_refused():
    questions, embeddings = asked()
    questions[1] = 0.0
    with pytest.raises(InvalidInputError, match="query 1 is all zeros"):
        select(embeddings, questions)
    with pytest.raises(InvalidInputError, match="at most 16"):
        select(embeddings, np.ones((17, 12)))
