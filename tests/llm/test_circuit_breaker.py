"""A model that gives no readable answers is given up."""

import pytest

from dartboard.llm.circuit_breaker import CircuitBreaker
from dartboard.llm.errors import NoAnswersError


def test_a_row_is_of_one_judge_and_ends_with_an_answer():
    breaker = CircuitBreaker(3)
    for _ in range(5):
        breaker.record("a", "1", "no")
    breaker.record("b", "1")
    with pytest.raises(NoAnswersError, match="a gave no readable answer to 6 calls in a row"):
        breaker.record("a", "2", "no")
    breaker.record("a", "1")
    breaker.record("a", "3", "no")
    breaker.record("a", "4", "no")
    breaker.record("b", "5", "no")
    with pytest.raises(NoAnswersError):
        CircuitBreaker(1).record("a", "1", "no")
