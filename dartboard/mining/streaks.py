"""When to give up on a model that does not answer.

A call that is refused, or whose answer is empty, cut short or unreadable, says nothing of its question. One
such call is an accident, or a question that a model will not touch. Many in a row, over several questions,
are a wrong model, key or setting, and every further call is money for nothing.
"""

from threading import Lock

from dartboard.errors import EndpointError

_LONGEST_REASON = 300


class NoAnswersError(EndpointError):
    """A model has given no readable answer for so long that asking on is no use."""


class Streaks:
    """Calls in a row without a readable answer, by judge; shared by threads.

    ``most`` in a row end the run, if they are about at least two questions: all contexts of one question may
    rightly be refused.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[str, list[str]] = {}
        self._lock = Lock()

    def answered(self, judge: str) -> None:
        """A readable answer: the row is over."""
        with self._lock:
            self._rows.pop(judge, None)

    def unanswered(self, judge: str, question: str, why: str) -> None:
        """One more call without an answer; an error where that is one too many."""
        with self._lock:
            row = self._rows.setdefault(judge, [])
            row.append(question)
            if len(row) >= self._most and len(set(row)) >= min(2, self._most):
                raise NoAnswersError(no_answers(judge, f"{len(row)} calls in a row", why))


def no_answers(judge: str, calls: str, why: str) -> str:
    """What happened, and what to do."""
    return (
        f"{judge} gave no readable answer to {calls}, at last because: {why[:_LONGEST_REASON]}. None of "
        "these calls counts as a verdict. Mend the model's name, the key or the limits (--max-output, "
        "--timeout) and resume: they are asked again. If the model is right to refuse, allow more in a row "
        "(--give-up-after)"
    )
