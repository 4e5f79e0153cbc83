"""Arrays that were used lately, up to a number of bytes."""

from collections import OrderedDict
from threading import Lock

from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError


class RecentArrays:
    """Text → array; when full, what has not been asked for longest goes first."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ConfigError(f"cache_bytes must be >= 0, got {max_bytes}")
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> Vectors | None:
        """The array, now the most recent one, or None."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
            return self._kept.get(text)

    def put(self, text: str, array: Vectors) -> None:
        """Keep an array; one larger than the whole space is not kept."""
        with self._lock:
            if text in self._kept:
                self.bytes -= self._kept.pop(text).nbytes
            if array.nbytes > self.max_bytes:
                return
            self._kept[text] = array
            self.bytes += array.nbytes
            while self.bytes > self.max_bytes:
                self.bytes -= self._kept.popitem(last=False)[1].nbytes
