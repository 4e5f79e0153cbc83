"""Admission control: in overload, refuse early instead of letting everybody wait.

A bounded queue lets a burst through. Where far more comes in than goes out it is always full, and then it
only makes everybody late. So when 40 % had to be refused for .2 s, the service is overloaded: no more are
worked on at a time than there are processors, and those that waited longer than a quarter of what a usual
request takes are refused too. What is let in is then served about as fast as ever. (After CoDel, Nichols and
Jacobson 2012: judge a queue by how long it stands.)

Fewer at a time also means smaller batches for the encoder, so overload lowers what can be done. It is over
when nobody had to be refused for a second, or in a whole second fewer than a third, who may fit in again.
"""

import os
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from dartboard.api.errors import problem

if TYPE_CHECKING:
    from dartboard.api.worker_pool import WorkerPool

PROCESSORS = max(2, os.cpu_count() or 1)
CONTROLLED = frozenset(
    (
        "/api/dartboard/retrieve",
        "/api/dartboard/retrieve/batch",
        "/api/dartboard/context",
        "/api/dartboard/select",
        "/api/dartboard/explore",
        "/rerank",
        "/v1/rerank",
        "/v2/rerank",
    )
)
"""What workers do. All else (health, metrics, jobs, pages) is let in as ever."""
_ONSET = 0.2
_CALM = 1.0
_MANY, _STILL_MANY = 0.4, 1 / 3
_PATIENCE_SHARE = 0.25
_LEAST_PATIENCE = 0.005


class AdmissionControl:
    """Refuses (429) before the body is read while overload fills the queue of ``workers``."""

    def __init__(self, app: ASGIApp, workers: "WorkerPool") -> None:
        self.app = app
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] in CONTROLLED and scope["method"] == "POST":
            refusal = self._workers.overload_refusal()
            if refusal is not None:
                await problem(refusal, scope)(scope, receive, send)
                return
        await self.app(scope, receive, send)


class OverloadDetector:
    """Hears who is refused and who is admitted, says who may wait. Times are seconds of one clock.

    Args:
        concurrency: How many are worked on at a time in overload: as many as there are processors, more
            where they only wait. With None overload is never detected: whoever is in the queue may wait.
    """

    def __init__(self, concurrency: int | None = PROCESSORS) -> None:
        self._concurrency = concurrency
        self._on = False
        self._last_refusal = self._since = float("-inf")
        self._refused = self._admitted = 0

    def refused(self, now: float) -> None:
        """A request was refused: the queue was full, or it had waited too long."""
        if now - self._last_refusal > _CALM:
            self._restart(now, on=False)
        self._last_refusal = now
        self._refused += 1
        self._judge(now)

    def admitted(self, now: float) -> None:
        """A request was let in."""
        self._admitted += 1
        self._judge(now)

    def overloaded(self, now: float) -> bool:
        """Whether there is overload."""
        return self._concurrency is not None and self._on and now - self._last_refusal <= _CALM

    def patience(self, now: float, usual: float) -> float:
        """How long a request may have waited and still be served; ``usual`` is the time that one takes."""
        return max(_PATIENCE_SHARE * usual, _LEAST_PATIENCE) if self.overloaded(now) else float("inf")

    def places(self, now: float, most: int) -> int:
        """How many may be worked on at a time, of ``most`` in better times."""
        return min(most, self._concurrency or most) if self.overloaded(now) else most

    def _judge(self, now: float) -> None:
        if now - self._since < (_CALM if self._on else _ONSET):
            return
        many = (_STILL_MANY if self._on else _MANY) * (self._refused + self._admitted)
        self._restart(now, on=self._refused > 0 and self._refused >= many)

    def _restart(self, now: float, *, on: bool) -> None:
        self._on, self._since = on, now
        self._refused = self._admitted = 0
