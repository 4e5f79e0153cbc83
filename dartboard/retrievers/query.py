"""A query while it is being answered: each encoder reads it once, however many retrievers ask."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray

_Made = TypeVar("_Made")


def check_query(text: str, name: str = "query") -> None:
    """Refuse a query without a word.

    Raises:
        InvalidInputError: ``text`` is no string, or blank.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError(f"{name} is empty: ask something")


class Query:
    """The query's text, its encodings so far, and how many seconds they took.

    A retriever gets it in :meth:`~dartboard.retrievers.ranking.RankingRetriever.rank`, reads ``text``, and
    asks for ``vector(model)``.
    """

    def __init__(self, text: str) -> None:
        check_query(text)
        self.text = text
        self.seconds = 0.0
        self._encodings: dict[tuple[str, int], tuple[Any, Any]] = {}

    def vector(self, model: Any) -> FloatArray:
        """The query's vector by an embedding model, ``(d,)``."""
        return self.once("vector", model, lambda: model.encode_query(self.text))

    def set_vector(self, model: Any, vector: FloatArray) -> None:
        """Use a vector that the caller has: ``model`` is not asked."""
        self._encodings["vector", id(model)] = (model, vector)

    def once(self, what: str, encoder: Any, make: Callable[[], _Made]) -> _Made:
        """What ``make`` gives, made when an encoder is first asked for it."""
        key = (what, id(encoder))
        if key not in self._encodings:
            check()
            started = time.perf_counter()
            self._encodings[key] = (encoder, make())  # the encoder is held, so that its id stays its own
            self.seconds += time.perf_counter() - started
        made: _Made = self._encodings[key][1]
        return made
