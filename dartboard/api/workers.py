"""Blocking work off the event loop: a bounded number at a time, a bounded queue, a time limit for each.

A thread cannot be stopped from outside. So work runs within a :func:`~dartboard.deadline.deadline` and looks
at it between its steps; the client gets its answer (504) when time is up, whatever the thread does, and the
thread's place is free again when the thread really ends. Time spent in the queue counts.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import Any, NamedTuple, Protocol, TypeVar

from dartboard.api.clients import current_client
from dartboard.api.crowding import PROCESSORS, Crowding
from dartboard.api.errors import ApiError, Busy, Stopping, TimedOut
from dartboard.api.settings import ServiceSettings
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError

T = TypeVar("T")
_LAST_CALL = 1.0
"""Seconds that work gets to notice that it was cancelled, when the service stops."""


class ClientGone(ApiError):
    """Nobody waits for the answer; the status is what logs show."""

    def __init__(self) -> None:
        super().__init__(499, "client_gone", "the client has left")


class Counting(Protocol):
    """Who hears how busy workers are."""

    def queue(self, running: int, waiting: int) -> None:
        """So many run and wait now."""

    def rejected(self, reason: str) -> None:
        """A request was refused."""


class Counters(NamedTuple):
    """The same from two functions, for workers that are counted apart from others."""

    queue: Callable[[int, int], None]
    rejected: Callable[[str], None]


class Workers:
    """Runs functions in threads for one event loop."""

    def __init__(self, settings: ServiceSettings, metrics: Counting, *, few: int | None = PROCESSORS) -> None:
        self._settings = settings
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="dartboard-worker")
        self._queue: deque[asyncio.Future[None]] = deque()
        self._joined: dict[asyncio.Future[None], float] = {}
        self._crowding = Crowding(few)
        self._cancels: set[Event] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self._usual = 0.05
        self.running = 0
        """Threads that are busy, those whose client was told 504 included."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    async def run(
        self, function: Callable[..., T], *arguments: Any, timeout: float | None = None, **options: Any
    ) -> T:
        """The function's result; Busy, Stopping, TimedOut or ClientGone where there is none."""
        end = time.monotonic() + (self._settings.timeout if timeout is None else timeout)
        client = current_client()
        leaving = None if client is None else asyncio.ensure_future(client.gone())
        try:
            await self._enter(end, leaving)
            return await self._work(end, leaving, function, arguments, options)
        finally:
            if leaving is not None:
                leaving.cancel()

    def turned_away(self) -> Busy | None:
        """Why a request need not even be read: there is a crowd, and as many wait as will be let in."""
        now = time.monotonic()
        crowded = self._crowding.lasting(now) and len(self._queue) >= self._room(now)
        return self.refusal(now) if crowded else None

    async def stop(self, grace: float | None = None) -> None:
        """Take nothing more, let what runs finish within the grace (or what is left of it), then end it."""
        self._stopping = True
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_exception(Stopping())
        self._report()
        if not await self._idle_within(self._settings.grace if grace is None else grace):
            for cancelled in self._cancels:
                cancelled.set()
            await self._idle_within(_LAST_CALL)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _enter(self, end: float, leaving: "asyncio.Future[None] | None") -> None:
        """Take a place, waiting in the queue if need be."""
        if self._stopping:
            self._metrics.rejected("stopping")
            raise Stopping
        now = time.monotonic()
        if self.running < self._places(now):
            self._crowding.admitted(now)
            self._take()
            return
        if len(self._queue) >= self._room(now):
            raise self.refusal(now)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        self._joined[place] = now
        self._report()
        try:
            await _first(place, leaving, end)
        except BaseException:
            self._give_back(place)
            raise
        if not place.done():
            self._give_back(place)
            raise self._why(leaving)
        place.result()

    def refusal(self, now: float | None = None) -> Busy:
        """The error for a request that finds no room; counted."""
        now = time.monotonic() if now is None else now
        self._crowding.refused(now)
        self._metrics.rejected("busy")
        return Busy(retry_after=self._delay())

    async def _work(
        self,
        end: float,
        leaving: "asyncio.Future[None] | None",
        function: Callable[..., T],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> T:
        loop, cancelled, began = asyncio.get_running_loop(), Event(), time.monotonic()

        def call() -> T:
            with deadline(max(1e-3, end - time.monotonic()), cancelled=cancelled):
                try:
                    return function(*arguments, **options)
                except StopIteration as error:  # no future can carry one
                    raise RuntimeError("StopIteration") from error

        def ended(_: "Future[T]") -> None:
            try:
                loop.call_soon_threadsafe(self._leave, cancelled, time.monotonic() - began)
            except RuntimeError:  # pragma: no cover - the loop is closed, and nobody counts any more
                return

        self._cancels.add(cancelled)
        try:
            thread = self._pool.submit(copy_context().run, call)
        except RuntimeError:  # the pool is shut down
            self._leave(cancelled, 0.0)
            raise Stopping from None
        thread.add_done_callback(ended)
        result = asyncio.wrap_future(thread)
        result.add_done_callback(_retrieved)
        try:
            await _first(result, leaving, end)
        except BaseException:
            cancelled.set()
            raise
        if not result.done():
            cancelled.set()
            raise self._why(leaving)
        try:
            return result.result()
        except DeadlineError as error:
            raise self._why(leaving) from error

    def _why(self, leaving: "asyncio.Future[None] | None") -> ApiError:
        if leaving is not None and leaving.done():
            self._metrics.rejected("client_gone")
            return ClientGone()
        self._metrics.rejected("timed_out")
        return TimedOut()

    def _take(self) -> None:
        self.running += 1
        self._idle.clear()
        self._report()

    def _leave(self, cancelled: Event, seconds: float) -> None:
        self._cancels.discard(cancelled)
        self._usual += 0.1 * (seconds - self._usual)
        self.running -= 1
        self._next()

    def _next(self) -> None:
        """Give free places to those who wait longest, but not to those who waited too long in a crowd."""
        now = time.monotonic()
        patience = self._crowding.patience(now, self._usual)
        places = self._places(now)
        while self._queue and self.running < places:
            place = self._queue.popleft()
            waited = now - self._joined.pop(place, now)
            if place.done():
                continue
            if waited > patience:
                place.set_exception(self.refusal(now))
                continue
            self.running += 1
            self._crowding.admitted(now)
            place.set_result(None)
        if not self.running:
            self._idle.set()
        self._report()

    def _places(self, now: float) -> int:
        return self._crowding.places(now, self._settings.workers)

    def _room(self, now: float) -> int:
        """How many may wait; in a crowd as many as are worked on, since the others would wait in vain."""
        queue = self._settings.queue
        return min(queue, self._places(now)) if self._crowding.lasting(now) else queue

    def _give_back(self, place: "asyncio.Future[None]") -> None:
        """Leave the queue; a place that was given in the same moment goes to the next."""
        if place in self._queue:
            self._queue.remove(place)
            self._joined.pop(place, None)
            place.cancel()
            self._report()
        elif place.done() and not place.cancelled() and place.exception() is None:
            self.running -= 1
            self._next()

    def _delay(self) -> float:
        """Seconds until the queue has probably moved by one."""
        usual = self._usual * (len(self._queue) + 1) / self._settings.workers
        return min(self._settings.timeout, max(1.0, math.ceil(usual)))

    async def _idle_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self) -> None:
        self._metrics.queue(self.running, len(self._queue))


async def _first(wanted: "asyncio.Future[Any]", leaving: "asyncio.Future[None] | None", end: float) -> None:
    """Wait for a result, the client's leaving, or the end of time."""
    futures = [wanted] if leaving is None else [wanted, leaving]
    await asyncio.wait(futures, timeout=max(0.0, end - time.monotonic()), return_when=asyncio.FIRST_COMPLETED)


def _retrieved(future: "asyncio.Future[Any]") -> None:
    """Look at an error that nobody waits for, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()
