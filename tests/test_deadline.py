import time
from contextvars import copy_context
from threading import Event, Thread

import pytest

from dartboard.deadline import check, deadline, remaining
from dartboard.errors import ConfigError, DeadlineError


def test_without_a_deadline_work_goes_on():
    check()
    assert remaining() is None


def test_work_stops_when_time_is_up():
    with deadline(0.01):
        assert 0 < remaining() <= 0.01
        time.sleep(0.02)
        assert remaining() == 0
        with pytest.raises(DeadlineError, match="out of time"):
            check()
    check()


def test_an_inner_limit_cannot_outlast_the_outer_one():
    with deadline(5), deadline(60):
        assert remaining() <= 5
    with deadline(60), deadline(5):
        assert remaining() <= 5


def test_cancelling_stops_work_in_another_thread():
    cancelled, stopped = Event(), Event()

    def work():
        with pytest.raises(DeadlineError, match="cancelled"):
            while True:
                check()
                time.sleep(0.001)
        stopped.set()

    with deadline(60, cancelled=cancelled):
        thread = Thread(target=copy_context().run, args=(work,))
        thread.start()
        cancelled.set()
        thread.join(5)
        with deadline(1), pytest.raises(DeadlineError):
            check()
    assert stopped.is_set()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_is_positive(seconds):
    with pytest.raises(ConfigError, match="positive"), deadline(seconds):
        pass
