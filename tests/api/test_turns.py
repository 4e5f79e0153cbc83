"""Searches take turns, in their order, and nobody waits beyond the deadline."""

import threading
import time

import pytest

from dartboard.api.turns import Turns
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError


def test_so_many_at_a_time():
    turns, guard, most, now = Turns(2), threading.Lock(), 0, 0

    def work() -> None:
        nonlocal most, now
        with turns.one():
            with guard:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with guard:
                now -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2
    assert turns._free == 2


def test_who_came_first_is_first():
    turns, order = Turns(1), []

    def work(number: int) -> None:
        with turns.one():
            order.append(number)
            time.sleep(0.01)

    threads = []
    for number in range(8):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        _until(lambda n=number: _arrived(turns, order, n))
    for thread in threads:
        thread.join()
    assert order == sorted(order)


def _arrived(turns, order, number) -> bool:
    return len(order) + len(turns._waiting) > number


def _until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_waiting_ends_with_the_deadline_and_keeps_no_place():
    turns = Turns(1)
    with turns.one():
        with pytest.raises(DeadlineError), deadline(0.05), turns.one():
            pass
        assert not turns._waiting
    with turns.one():
        assert turns._free == 0
    assert turns._free == 1


def test_a_turn_given_to_one_who_leaves_goes_on():
    turns = Turns(1)
    turns._begin()
    left, stayed = threading.Event(), threading.Event()
    turns._waiting.append(left)
    turns._waiting.append(stayed)
    turns._end()
    assert left.is_set()
    turns._leave(left)
    assert stayed.is_set()
    turns._end()
    assert turns._free == 1


def test_a_search_that_fails_gives_its_turn_back():
    turns = Turns(1)
    with pytest.raises(ZeroDivisionError), turns.one():
        raise ZeroDivisionError
    assert turns._free == 1
