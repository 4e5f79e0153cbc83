"""A query while it is being answered: each encoder reads it once, however many retrievers ask."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray

_Made = TypeVar("_Made")


def check_question(text: str) -> None:
    """A query with something in it."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError("query is empty: ask something")


class Question:
    """The query's text, what encoders made of it so far, and how many seconds they took."""

    def __init__(self, text: str) -> None:
        check_question(text)
        self.text = text
        self.seconds = 0.0
        self._made: dict[tuple[str, int], tuple[Any, Any]] = {}

    def vector(self, model: Any) -> FloatArray:
        """The query's vector by an embedding model, ``(d,)``."""
        return self.once("vector", model, lambda: model.encode_query(self.text))

    def once(self, what: str, encoder: Any, make: Callable[[], _Made]) -> _Made:
        """What ``make`` gives, made when an encoder is first asked for it."""
        key = (what, id(encoder))
        if key not in self._made:
            check()
            started = time.perf_counter()
            self._made[key] = (encoder, make())  # the encoder is held, so that its id stays its own
            self.seconds += time.perf_counter() - started
        made: _Made = self._made[key][1]
        return made
