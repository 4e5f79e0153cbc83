"""A document of any framework, as a selection needs it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dartboard.errors import InvalidInputError

_SHOWN = 40
_D = TypeVar("_D")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """A document, its place among those that were given, and what is known of it.

    ``text`` is what a model would embed, ``shown`` what a reader gets where that is not the same. ``vector``
    and ``score`` are what the document itself carries, unchecked.
    """

    document: Any
    position: int
    own_id: str | None
    text: str | None
    metadata: Mapping[str, Any]
    shown: str | None = None
    vector: Any = None
    score: Any = None

    @property
    def id(self) -> str | int:
        """Its own id, or where it has none its position."""
        return self.position if self.own_id is None else self.own_id

    @property
    def label(self) -> str:
        """How an error names it."""
        if self.own_id is not None:
            return f"document {self.own_id!r}"
        text = " ".join((self.text or "").split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return f"document {self.position} ({shown!r})"


def check_documents(documents: Iterable[_D], kind: type[_D], example: str) -> list[_D]:
    """The documents as a list; an error where one is of another ``kind`` says how to make one."""
    if isinstance(documents, kind | str) or not isinstance(documents, Iterable):
        raise InvalidInputError(
            f"documents must be a list such as [{example}], got {type(documents).__name__}"
        )
    listed = list(documents)
    for place, document in enumerate(listed):
        if not isinstance(document, kind):
            raise InvalidInputError(
                f"document {place} must be a {kind.__name__}, got {type(document).__name__}: make one with "
                f"{example}"
            )
    return listed
