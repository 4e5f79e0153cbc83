"""Selections end when their time is up, wherever they are: between picks, candidates, sets, queries."""

from threading import Event

import numpy as np
import pytest

from dartboard import select
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError
from dartboard.selection import Exhaustive, select_many


class After(Event):
    """Set from outside, as it seems, once work has looked at it so many times."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    def is_set(self):
        self.left -= 1
        return self.left < 0


def pool(n=300, dim=8, seed=0):
    chance = np.random.default_rng(seed)
    return chance.standard_normal((n, dim)), chance.standard_normal(dim)


WAYS = {
    "plain": {},
    "capped": {"sources": ["one", "other"] * 150, "max_per_source": 90},
    "in a budget": {"k": None, "token_budget": 150, "costs": [1] * 300},
    "mmr": {"method": "mmr"},
    "top_k": {"method": "top_k"},
    "near-duplicate filter": {"method": "near_duplicate_filter"},
    "random": {"method": "random"},
}


@pytest.mark.parametrize("way", WAYS)
def test_selection_checks_its_deadline_as_it_goes(way):
    options = {"k": 150, "sigma": 0.3} | WAYS[way]
    vectors, query = pool()
    undisturbed = select(vectors, query, **options)
    with deadline(600, cancelled=Event()):
        assert select(vectors, query, **options).indices.tolist() == undisturbed.indices.tolist()
    for looks in (0, 5):
        event = After(looks)
        with deadline(600, cancelled=event), pytest.raises(DeadlineError, match="cancelled"):
            select(vectors, query, **options)
        assert event.left == -1


def test_a_long_selection_ends_in_time():
    """All sets of 5 among 45 would take most of a minute."""
    vectors, query = pool(45)
    with deadline(0.05), pytest.raises(DeadlineError, match="out of time"):  # timing: has to run out
        select(vectors, query, 5, method=Exhaustive())


@pytest.mark.parametrize("uniform", [True, False])
def test_many_queries_keep_the_deadline_of_their_caller_in_every_thread(uniform):
    chance = np.random.default_rng(1)
    pools = chance.standard_normal((400, 60, 8)).astype(np.float32)
    queries = chance.standard_normal((400, 8)).astype(np.float32)
    given = pools if uniform else list(pools)
    with deadline(600, cancelled=Event()):
        assert len(select_many(given, queries, 5)) == 400
    for looks in (0, 3):
        event = After(looks)
        with deadline(600, cancelled=event), pytest.raises(DeadlineError):
            select_many(given, queries, 5)
