"""Searches take places, in their order, and nobody waits beyond the deadline."""

import threading

import pytest

from dartboard.api.locks import FifoSemaphore
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError
from tests.waiting import wait_until


def test_so_many_at_a_time():
    places, guard, most, now = FifoSemaphore(2), threading.Lock(), 0, 0
    pair = threading.Barrier(2)

    def work() -> None:
        nonlocal most, now
        with places.held():
            with guard:
                now += 1
                most = max(most, now)
            pair.wait(60)
            with guard:
                now -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2
    assert places._free == 2


def test_who_came_first_is_first():
    places, order = FifoSemaphore(1), []

    def work(number: int) -> None:
        with places.held():
            order.append(number)

    threads = []
    with places.held():
        for number in range(8):
            threads.append(threading.Thread(target=work, args=(number,)))
            threads[-1].start()
            wait_until(lambda: len(places._waiting) == len(threads))
    for thread in threads:
        thread.join()
    assert order == list(range(8))


def test_waiting_ends_with_the_deadline_and_keeps_no_place():
    places = FifoSemaphore(1)
    with places.held():
        with pytest.raises(DeadlineError), deadline(0.05), places.held():  # timing: has to run out
            pass
        assert not places._waiting
    with places.held():
        assert places._free == 0
    assert places._free == 1


def test_a_turn_given_to_one_who_leaves_goes_on():
    places = FifoSemaphore(1)
    places._acquire()
    left, stayed = threading.Event(), threading.Event()
    places._waiting.append(left)
    places._waiting.append(stayed)
    places._release()
    assert left.is_set()
    places._leave(left)
    assert stayed.is_set()
    places._release()
    assert places._free == 1


def test_a_search_that_fails_gives_its_turn_back():
    places = FifoSemaphore(1)
    with pytest.raises(ZeroDivisionError), places.held():
        raise ZeroDivisionError
    assert places._free == 1
