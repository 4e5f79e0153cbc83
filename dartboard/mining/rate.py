"""Token buckets: so many requests, or tokens, a minute."""

from collections.abc import Callable
from threading import Lock


class Bucket:
    """Fills at a steady rate and is drawn from; whoever finds too little in it is told how long to wait.

    It starts full with a tenth of a minute's worth (one, at least), and the rest of the minute's worth
    flows in over the minute, so that no minute sees more than its limit. A draw larger than the bucket waits
    until it is full and leaves it in debt.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._capacity = max(1.0, per_minute / 10)
        flowing = per_minute - self._capacity if per_minute >= 10 else per_minute
        self._rate = flowing / 60
        self._clock = clock
        self._level = self._capacity
        self._seen = clock()
        self._lock = Lock()

    def draw(self, amount: float) -> float:
        """0 where the amount was drawn, else the seconds to wait before asking again."""
        with self._lock:
            self._fill()
            needed = min(amount, self._capacity)
            if self._level >= needed - 1e-9:
                self._level -= amount
                return 0.0
            return (needed - self._level) / self._rate

    def correct(self, amount: float) -> None:
        """Draw more afterwards, or give back."""
        with self._lock:
            self._fill()
            self._level = min(self._capacity, self._level - amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._seen) * self._rate)
        self._seen = now
