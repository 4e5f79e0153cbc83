"""Token counts that were worked out before: a tokenizer takes longer over the passages than all the rest.

A count depends on the model and the text alone, so it is kept by the hash of both, whatever collection or
question it came from.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from dartboard.types import Chunk


class Lengths:
    """Counts by text; when full, what has not been asked for longest goes first. Usable from many threads."""

    def __init__(self, most: int = 50_000) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def of(
        self, chunks: Sequence[Chunk], model: str, count: Callable[[Sequence[Chunk]], Sequence[int]]
    ) -> list[int]:
        """The count of each chunk; ``count`` is asked for those that are not known, all at once."""
        keys = [
            hashlib.blake2b(f"{model}\0{chunk.text}".encode(), digest_size=16).digest() for chunk in chunks
        ]
        with self._lock:
            known = {key: self._kept[key] for key in keys if key in self._kept}
        missing = {key: chunk for key, chunk in zip(keys, chunks, strict=True) if key not in known}
        if missing:
            known |= dict(zip(missing, count(list(missing.values())), strict=True))
        with self._lock:
            for key in keys:
                self._kept[key] = known[key]
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return [known[key] for key in keys]


LENGTHS = Lengths()
"""What all explorations of a process share."""
