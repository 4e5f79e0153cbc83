"""One state of a collection for several calls.

A search asks a collection several things: vectors, words, passages. Whoever writes meanwhile must not mix
two states into one answer. A store that can hold a state still says so by a method ``on_one_state``, and one
that has the unit vectors of its embeddings at hand, without the passages, by a method ``directions``. Such
a store also reads single blobs without the passages, by a method ``read_blobs``.
"""

from collections.abc import Callable
from typing import TypeVar

from dartboard.stores.base import Collection

_Made = TypeVar("_Made")


def on_one_state(collection: Collection, work: Callable[[Collection], _Made]) -> _Made:
    """Do the work on one state of the collection, where its store can hold one; else as it comes.

    The work may be begun anew on a newer state, so it must change nothing outside.
    """
    hold = getattr(collection, "on_one_state", None)
    if hold is None:
        return work(collection)
    made: _Made = hold(work)
    return made
