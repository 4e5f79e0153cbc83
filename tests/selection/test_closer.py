"""A closer look: when, at which σ, and that the picks are those of two walks one after the other."""

import numpy as np
import pytest

from dartboard.selection import from_embeddings, select
from dartboard.selection.closer import ENOUGH, covered_early
from dartboard.selection.kernels import unit_rows

pytestmark = pytest.mark.usefixtures("engine")


def repeating_itself(seed: int, n: int = 100, dim: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """A query, and candidates of which those near it have neighbours at all sorts of distances."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal(dim)
    facts = centre + rng.standard_normal((n // 4, dim))
    told = facts.repeat(4, axis=0) + rng.uniform(0.05, 0.75, (n, 1)) * rng.standard_normal((n, dim))
    query = 0.3 * centre + facts[0]
    return unit_rows(query[None])[0].astype(np.float32), unit_rows(told).astype(np.float32)


TEXTS = [f"What is said here of Place{i} stands nowhere else, and nobody else says it." for i in range(100)]
POOLS = [repeating_itself(seed) for seed in range(40)]
LOOKED = [(q, v) for q, v in POOLS if "closer_after" in select(v, q, 20, texts=TEXTS).parameters]


def by_hand(query: np.ndarray, vectors: np.ndarray, k: int) -> list[int]:
    """Picks at σ until enough is covered, then at the closer σ, over distances in double precision."""
    pool = from_embeddings(query, vectors, texts=TEXTS).without_copies()
    closer = pool.closer().sigma.value if pool.closer else pool.sigma.value
    leaders = pool.leaders()
    rows = unit_rows(vectors[leaders].astype(np.float64))
    to_query = (1 - rows @ unit_rows(query[None].astype(np.float64))[0]) / 2
    apart = np.maximum((1 - rows @ rows.T) / 2, 0)
    sigma, picks = pool.sigma.value, [int(to_query.argmin())]
    while len(picks) < k:
        weights, kernel = np.exp(-0.5 * (to_query / sigma) ** 2), np.exp(-0.5 * (apart / sigma) ** 2)
        covered = kernel[picks].max(axis=0)
        if sigma != closer and covered @ weights >= ENOUGH * weights.sum():
            sigma = closer
            continue
        gains = np.maximum(kernel - covered, 0) @ weights
        gains[picks] = -1
        picks.append(int(gains.argmax()))
    return leaders[picks].tolist()


def test_it_happens():
    assert len(LOOKED) >= 10


@pytest.mark.parametrize("k", [5, 12, 20])
def test_picks_are_those_of_a_walk_at_one_sigma_and_then_at_another(k):
    for query, vectors in POOLS:
        assert select(vectors, query, k, texts=TEXTS).indices.tolist() == by_hand(query, vectors, k)


def test_what_comes_first_does_not_depend_on_what_follows():
    for query, vectors in LOOKED:
        many = select(vectors, query, 20, texts=TEXTS).indices
        for k in (1, 4, 9):
            assert select(vectors, query, k, texts=TEXTS).indices.tolist() == many[:k].tolist()


def test_it_is_told_from_where_on_and_gains_stay_those_of_sigma():
    query, vectors = LOOKED[0]
    found = select(vectors, query, 20, texts=TEXTS)
    after, sigma = found.parameters["closer_after"], found.parameters["closer_sigma"]
    assert found.coverage[after - 1] >= ENOUGH > (found.coverage[after - 2] if after > 1 else 0.0)
    assert sigma < found.sigma.value and found.sigma.source == "candidates"
    assert (found.gains >= 0).all() and found.coverage[-1] == pytest.approx(found.gains.sum())
    assert found.coverage[-1] <= 1.0 and 0 < found.bound <= 1.0
    assert f"after {after} pick" in repr(found)


def test_copies_by_words_do_not_come_back():
    for query, vectors in LOOKED:
        plain = select(vectors, query, 12, texts=TEXTS)
        after = plain.parameters.get("closer_after", 12)
        for back in plain.indices[after:].tolist():
            copied = list(TEXTS)
            copied[back] = "As was said before: " + TEXTS[plain.indices[0]]
            again = select(vectors, query, 12, texts=copied)
            assert again.indices[:after].tolist() == plain.indices[:after].tolist()
            assert back not in again.indices


def test_not_without_words_nor_where_sigma_or_scores_are_given_or_little_gains_end_it():
    query, vectors = LOOKED[0]
    assert select(vectors, query, 20).parameters == {}
    assert select(vectors, query, 20, texts=[str(i) for i in range(100)]).parameters == {}
    automatic = select(vectors, query, 20, texts=TEXTS)
    given = select(vectors, query, 20, sigma=automatic.sigma.value, texts=TEXTS)
    assert given.parameters == {} and (np.diff(given.gains[1:]) <= 1e-9).all()
    assert select(vectors, query, 20, min_gain_share=1e-9, texts=TEXTS).parameters == {}
    assert select(vectors, query, 20, scores=vectors @ query, texts=TEXTS).parameters == {}
    assert from_embeddings(query, vectors, sigma=0.05, texts=TEXTS).closer is None
    assert from_embeddings(query, vectors[:40], texts=TEXTS[:40]).closer is None  # too few to tell


def test_limits_hold_on_the_way():
    for query, vectors in LOOKED:
        last = int(select(vectors, query, 20, texts=TEXTS).indices[-1])
        forced = [int(i) for i in np.argsort(vectors @ query)[:3] if i != last]
        found = select(vectors, query, 20, texts=TEXTS, exclude=[last], must_include=forced)
        assert last not in found.indices and found.indices[: len(forced)].tolist() == forced
        assert len(set(found)) == 20
        within = select(vectors, query, token_budget=50, costs=[5] * len(vectors), texts=TEXTS)
        assert 0 < len(within) <= 10


def test_a_sigma_that_may_not_be_given_is_not_looked_at():
    rng = np.random.default_rng(1)
    query = rng.standard_normal(24)
    near = query + 1e-5 * rng.standard_normal((50, 24))
    pool = np.concatenate([near, near + 1e-7 * rng.standard_normal((50, 24))])
    assert len(select(pool, query, 10, texts=TEXTS)) == 10


@pytest.mark.parametrize(
    ("coverage", "early"), [([], False), ([0.99], False), ([0.5, 0.96], False), ([0.5, 0.96, 0.97], True)]
)
def test_early_is_before_the_last(coverage, early):
    assert covered_early(np.array(coverage)) is early
