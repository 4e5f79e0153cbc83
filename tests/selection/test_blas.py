"""How many threads BLAS takes, inside and after."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from dartboard.selection import blas

threadpoolctl = pytest.importorskip("threadpoolctl")


@pytest.fixture(autouse=True)
def found_anew():
    """Who looks after BLAS knows the libraries of its first use; tests before may have loaded more."""
    blas._controller.cache_clear()
    yield
    blas._controller.cache_clear()


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


def test_without_threadpoolctl_nothing_is_set(monkeypatch):
    monkeypatch.setattr(blas, "find_spec", lambda name: None)
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        with blas.one_thread_each():
            assert threads() == before
