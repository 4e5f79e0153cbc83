"""When waiting has become pointless: a burst may wait, a crowd that does not end may not.

A bounded queue lets a burst through. Where more comes in than goes out it is always full, and then it only
makes everybody late. So once requests have been refused for a tenth of a second on end, those that waited
longer than a quarter of what a usual request takes are refused too, until nobody had to be for a second. What
is let in is then served about as fast as ever, and there is always somebody fresh to let in. (After Nichols
and Jacobson's CoDel, 2012: judge a queue by how long it stands.)
"""

_STANDING = 0.1
_CALM = 1.0
_SHARE = 0.25
_LEAST = 0.005


class Crowding:
    """Hears of refusals; says how long a request may have waited. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._first = self._last = float("-inf")

    def refused(self, now: float) -> None:
        """A request was refused: the queue was full, or it had waited too long."""
        if now - self._last > _CALM:
            self._first = now
        self._last = now

    def patience(self, now: float, usual: float) -> float:
        """How long a request may have waited and still be served; ``usual`` is the time that one takes."""
        lasting = self._last - self._first >= _STANDING
        return max(_SHARE * usual, _LEAST) if lasting and now - self._last <= _CALM else float("inf")
