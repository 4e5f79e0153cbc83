"""A query during a search: each encoder runs once, for any number of retrievers."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray

_Made = TypeVar("_Made")


def check_query(text: str, name: str = "query") -> None:
    """Reject an empty query.

    Raises:
        InvalidInputError: ``text`` is not a string, or blank.
    """
    if not isinstance(text, str):
        raise InvalidInputError(
            f"{name} must be text, got {type(text).__name__}: ask one question as a string"
        )
    if not text.strip():
        raise InvalidInputError(f"{name} is empty: ask something")


class Query:
    """The query's text, its cached encodings, and the seconds that they took.

    A retriever gets it in :meth:`~dartboard.retrievers.base.Retriever.rank` and uses ``text`` or
    ``vector(model)``.
    """

    def __init__(self, text: str) -> None:
        check_query(text)
        self.text = text
        self.seconds = 0.0
        self._encodings: dict[tuple[str, int], tuple[Any, Any]] = {}

    def vector(self, model: Any) -> FloatArray:
        """The query's vector from an embedding model, ``(d,)``."""
        return self.once("vector", model, lambda: model.encode_query(self.text))

    def set_vector(self, model: Any, vector: FloatArray) -> None:
        """Use a vector of the caller instead of calling ``model``."""
        self._encodings["vector", id(model)] = (model, vector)

    def once(self, what: str, encoder: Any, make: Callable[[], _Made]) -> _Made:
        """The cached result of ``make``, by encoder."""
        key = (what, id(encoder))
        if key not in self._encodings:
            check()
            started = time.perf_counter()
            self._encodings[key] = (encoder, make())  # the reference keeps the encoder's id() unique
            self.seconds += time.perf_counter() - started
        made: _Made = self._encodings[key][1]
        return made
