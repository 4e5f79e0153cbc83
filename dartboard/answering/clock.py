"""How long an answer may take: at once, and without a word.

Bytes are no sign of life, since a proxy may send comments for ever: only what carries something of an answer
is. Time that whoever reads the answer takes does not count.
"""

import time

import httpx

from dartboard.errors import ConfigError


class TooLongError(Exception):
    """The answer is not there within the time for all of it."""


class Clock:
    """Runs from the first attempt to the end of the answer; ``silence`` and ``longest`` are in seconds."""

    def __init__(self, silence: float, longest: float) -> None:
        self.silence, self.longest = silence, longest
        self._began = self._life = time.monotonic()

    def alive(self) -> None:
        """Something of the answer has come, or an attempt begins."""
        self._life = time.monotonic()

    def skip(self, seconds: float) -> None:
        """So long nobody waited for the endpoint."""
        self._began += seconds
        self._life += seconds

    def check(self) -> None:
        """Go on, or stop here."""
        now = time.monotonic()
        if now - self._began >= self.longest:
            raise TooLongError
        if now - self._life >= self.silence:
            raise httpx.ReadTimeout("silence")


def checked_limit(seconds: float) -> float:
    """A time for a whole answer; infinity is none."""
    if not seconds > 0:
        raise ConfigError(f"the time for an answer must be a positive number of seconds, got {seconds}")
    return seconds
