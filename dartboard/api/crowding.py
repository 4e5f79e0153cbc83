"""When waiting has become pointless: a burst may wait, a crowd that does not end may not.

A bounded queue lets a burst through. Where far more comes in than goes out it is always full, and then it
only makes everybody late. So when 40 % had to be refused for .2 s, it is a crowd: no more are worked on at a
time than there are processors, and those that waited longer than a quarter of what a usual request takes are
refused too. What is let in is then served about as fast as ever, and there is always somebody fresh to let
in. (After Nichols and Jacobson's CoDel, 2012: judge a queue by how long it stands.)

Fewer at a time also means smaller batches for the encoder, so a crowd lowers what can be done. It is over
when nobody had to be refused for a second, or in a whole second fewer than a third, who may fit in again.
"""

import os

_STANDING = 0.2
_CALM = 1.0
_MANY, _STILL_MANY = 0.4, 1 / 3
_SHARE = 0.25
_LEAST = 0.005
PROCESSORS = max(2, os.cpu_count() or 1)


class Crowding:
    """Hears who is refused and who is let in, says who may wait. Times are seconds of one clock.

    ``few`` are worked on at a time in a crowd: as many as there are processors, more where they only wait.
    With None there never is a crowd: whoever is in the queue may wait.
    """

    def __init__(self, few: int | None = PROCESSORS) -> None:
        self._few = few
        self._on = False
        self._last = self._since = float("-inf")
        self._refused = self._admitted = 0

    def refused(self, now: float) -> None:
        """A request was refused: the queue was full, or it had waited too long."""
        if now - self._last > _CALM:
            self._look_anew(now, on=False)
        self._last = now
        self._refused += 1
        self._judge(now)

    def admitted(self, now: float) -> None:
        """A request was let in."""
        self._admitted += 1
        self._judge(now)

    def lasting(self, now: float) -> bool:
        """Whether there is a crowd."""
        return self._few is not None and self._on and now - self._last <= _CALM

    def patience(self, now: float, usual: float) -> float:
        """How long a request may have waited and still be served; ``usual`` is the time that one takes."""
        return max(_SHARE * usual, _LEAST) if self.lasting(now) else float("inf")

    def places(self, now: float, most: int) -> int:
        """How many may be worked on at a time, of ``most`` in better times."""
        return min(most, self._few) if self._few is not None and self.lasting(now) else most

    def _judge(self, now: float) -> None:
        if now - self._since < (_CALM if self._on else _STANDING):
            return
        many = (_STILL_MANY if self._on else _MANY) * (self._refused + self._admitted)
        self._look_anew(now, on=self._refused > 0 and self._refused >= many)

    def _look_anew(self, now: float, *, on: bool) -> None:
        self._on, self._since = on, now
        self._refused = self._admitted = 0
