"""A deadline ends a filter that looks at one record after the other, in Python and in SQLite."""

from threading import Event

import numpy as np
import pytest

from dartboard.deadline import deadline
from dartboard.errors import DeadlineError
from dartboard.stores import Manifest, Record, open_store, parse_filter
from dartboard.stores.filters import Equal

ROWS = 3000
ODD = 'a "name" that only Python reads'


class Cancelling(Equal):
    """A comparison during which somebody loses interest."""

    __slots__ = ("cancelled", "seen")

    def matches(self, metadata, id=None):
        self.seen.append(id)
        if len(self.seen) == 10:
            self.cancelled.set()
        return False


@pytest.fixture(scope="module", params=["memory", "embedded"])
def collection(request, tmp_path_factory):
    url = "memory://" if request.param == "memory" else str(tmp_path_factory.mktemp("s") / "i.dartboard")
    with open_store(url) as store:
        kept = store.create("c", Manifest(model="m", dimension=2))
        vector = np.array([1, 0], np.float32)
        kept.upsert([Record(f"{n}", "some words", vector, {"n": n + 0.5, "w": "x"}) for n in range(ROWS)])
        kept.prepare()
        yield kept


def asking(kept):
    return {
        "vectors": lambda where: kept.search_vector(np.array([1, 0], np.float32), 3, where=where),
        "words": lambda where: kept.search_text("words", 3, where=where),
        "count": lambda where: kept.count(where),
        "delete": lambda where: kept.delete(where=where),
        "iterate": lambda where: list(kept.iterate(where=where)),
    }


@pytest.mark.parametrize("collection", ["memory"], indirect=True)
@pytest.mark.parametrize("ask", asking(None))
def test_python_stops_when_the_work_is_cancelled(collection, ask):
    cancelled, where = Event(), Cancelling(ODD, 1)
    object.__setattr__(where, "cancelled", cancelled)
    object.__setattr__(where, "seen", [])
    with deadline(600, cancelled=cancelled), pytest.raises(DeadlineError, match="cancelled"):
        asking(collection)[ask](where)
    assert 10 <= len(where.seen) < ROWS / 2
    assert collection.count() == ROWS


@pytest.mark.parametrize("ask", asking(None))
@pytest.mark.parametrize("text", ['w = "y"', "n > 1e9", 'w in ["y", "z"] or not n exists'])
def test_a_filter_that_is_out_of_time_ends(collection, ask, text):
    with deadline(1e-9), pytest.raises(DeadlineError, match="out of time"):  # timing: has to run out
        asking(collection)[ask](parse_filter(f"({text}) and not w = '{ask}'"))
    assert collection.count() == ROWS


def test_in_time_nothing_changes(collection):
    with deadline(600):
        assert collection.count(parse_filter("n < 10")) == 10
        assert len(collection.search_text("words", 3, where=parse_filter("n < 10"))) == 3
        assert sum(map(len, collection.iterate(where=parse_filter('w = "x"')))) == ROWS
