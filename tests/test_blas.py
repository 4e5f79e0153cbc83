"""How many threads BLAS takes, inside and after."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import threadpoolctl

from dartboard import blas, select
from dartboard.errors import InvalidInputError
from dartboard.selection import TopK


@pytest.fixture(autouse=True)
def found_anew():
    """Who looks after BLAS knows the libraries of its first use; tests before may have loaded more."""
    blas.libraries.cache_clear()
    yield
    blas.libraries.cache_clear()


def threads():
    return {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"}


def test_one_inside_and_as_before_afterwards():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with blas.one_thread_each():
            assert threads() == {1}
            with blas.one_thread_each():
                assert threads() == {1}
            assert threads() == {1}
        assert 2 in threads()


def test_callers_at_the_same_time_leave_it_as_it_was():
    first_in, second_in, first_out = Barrier(2), Barrier(2), Barrier(2)

    def first():
        with blas.one_thread_each():
            first_in.wait(60)
            second_in.wait(60)
            inside = threads()
        first_out.wait(60)
        return inside

    def second():
        first_in.wait(60)
        with blas.one_thread_each():
            second_in.wait(60)
            first_out.wait(60)

    with blas.one_thread_each():
        pass
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(second)
            assert first() == {1}  # here: only the thread that set a number of threads may change it
            other.result(60)
        assert threads() == before and 2 in before


@pytest.mark.parametrize(("count", "wanted"), [(blas.SMALL, 1), (blas.SMALL + 1, 2)])
def test_small_pools_take_one_thread(count, wanted):
    seen = []

    class Watching:
        name = "watching"

        def select(self, pool, limits):
            seen.append(max(threads()))
            return TopK().select(pool, limits)

    rows = np.random.default_rng(0).standard_normal((count, 4))
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        select(rows, rows[0], k=2, method=Watching())
        assert 2 in threads()
    assert seen == [wanted]


def test_an_error_inside_leaves_it_as_it_was():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with pytest.raises(InvalidInputError):
            select(np.array(5.0), [1.0])
        with pytest.raises(InvalidInputError):
            select([[1.0, np.nan]], [1.0, 2.0])
        assert 2 in threads()
        with blas.one_thread_each():
            assert threads() == {1}
