"""When to give up on a model that does not answer.

A call that is refused, or whose answer is empty, cut short or unreadable, says nothing of its question. One
such call is an accident, or a question that a model will not touch. Many in a row, over several questions,
are a wrong model, key or setting, and every further call is money for nothing.
"""

from threading import Lock

from dartboard.llm.errors import NoAnswersError

_LONGEST_REASON = 300


class CircuitBreaker:
    """Calls in a row without a readable answer, by caller; shared by threads.

    ``most`` in a row end the run, if they are about at least two questions: all contexts of one question may
    rightly be refused.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures: dict[str, list[str]] = {}
        self._lock = Lock()

    def record(self, caller: str, question: str, trouble: str = "") -> None:
        """Count a call; without ``trouble`` its answer could be read, and the row is over.

        Raises:
            NoAnswersError: this was one failure too many.
        """
        with self._lock:
            if not trouble:
                self._failures.pop(caller, None)
                return
            row = self._failures.setdefault(caller, [])
            row.append(question)
            if len(row) >= self._most and len(set(row)) >= min(2, self._most):
                raise NoAnswersError(no_answers(caller, f"{len(row)} calls in a row", trouble))


def no_answers(caller: str, calls: str, why: str) -> str:
    """What happened, and what to do."""
    return (
        f"{caller} gave no readable answer to {calls}, at last because: {why[:_LONGEST_REASON]}. None of "
        "these calls counts as a verdict. Mend the model's name, the key or the limits (--max-output, "
        "--timeout) and resume: they are asked again. If the model is right to refuse, allow more in a row "
        "(--give-up-after)"
    )
