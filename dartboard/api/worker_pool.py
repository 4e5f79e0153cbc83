"""Blocking work off the event loop: a bounded number at a time, a bounded queue, a time limit for each.

A thread cannot be stopped from outside. So work runs within a :func:`~dartboard.deadline.deadline` and looks
at it between its steps; the client gets its answer (504) when time is up, whatever the thread does, and the
thread's place is free again when the thread really ends. Time spent in the queue counts. Starlette's own
thread pool has neither a bound on its queue nor a time limit.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar

from dartboard.api.errors import Busy, ClientGone, Stopping, TimedOut
from dartboard.api.guards.admission_control import PROCESSORS, OverloadDetector
from dartboard.api.guards.timeouts import TimeLimit
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError

T = TypeVar("T")
WRITERS = 2
"""Threads that change collections."""
_LAST_CALL = 1.0
"""Seconds that work gets to notice that it was cancelled, when the service stops."""


class WorkerPool:
    """Runs functions in threads for one event loop.

    Args:
        settings: How many threads (``workers``), places in the queue, seconds for each and at the end.
        metrics: What is refused is counted there.
        report: Hears how many run and wait, whenever that changes; that of searches where none is given.
        overload_concurrency: See :class:`OverloadDetector`.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        metrics: Metrics,
        *,
        report: Callable[[int, int], None] | None = None,
        overload_concurrency: int | None = PROCESSORS,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._report_to = report or metrics.queue
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="dartboard-worker")
        self._queue: dict[asyncio.Future[None], float] = {}  # in order of arrival, with its time
        self._overload = OverloadDetector(overload_concurrency)
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
        """Call a function in a thread.

        Args:
            function: What to call, with ``arguments`` and ``options``.
            timeout: Seconds for waiting and working; the settings' where it is None.

        Returns:
            Its result.

        Raises:
            Busy: The queue is full, or the request waited too long in overload.
            Stopping: The service is shutting down.
            TimedOut: The time is up, in the queue or at work.
            ClientGone: Nobody waits for the result.
        """
        with closing(TimeLimit(self._settings.timeout if timeout is None else timeout)) as limit:
            try:
                await self._enter(limit)
                return await self._work(limit, function, arguments, options)
            except (TimedOut, ClientGone) as error:
                self._metrics.rejected(error.code)
                raise

    def overload_refusal(self) -> Busy | None:
        """The error for a request that need not even be read, since overload fills the queue; else None."""
        now = time.monotonic()
        hopeless = self._overload.overloaded(now) and len(self._queue) >= self._room(now)
        return self.refusal(now) if hopeless else None

    def refusal(self, now: float | None = None) -> Busy:
        """The error for a request that finds no room; counted."""
        self._overload.refused(time.monotonic() if now is None else now)
        self._metrics.rejected("busy")
        usual = self._usual * (len(self._queue) + 1) / self._settings.workers
        return Busy(retry_after=min(self._settings.timeout, max(1.0, math.ceil(usual))))

    async def stop(self, grace: float | None = None) -> None:
        """Take nothing more, let what runs finish within the grace (or what is left of it), then end it."""
        self._stopping = True
        for place in self._queue:
            if not place.done():
                place.set_exception(Stopping())
        self._queue.clear()
        self._report()
        if not await self._idle_within(self._settings.grace if grace is None else grace):
            for cancelled in self._cancels:
                cancelled.set()
            await self._idle_within(_LAST_CALL)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _enter(self, limit: TimeLimit) -> None:
        """Take a place, waiting in the queue if need be."""
        if self._stopping:
            self._metrics.rejected("stopping")
            raise Stopping
        now = time.monotonic()
        if self.running < self._places(now):
            self._overload.admitted(now)
            self.running += 1
            self._idle.clear()
            self._report()
            return
        if len(self._queue) >= self._room(now):
            raise self.refusal(now)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue[place] = now
        self._report()
        try:
            await limit.wait(place)
        except BaseException:
            self._give_back(place)
            raise
        place.result()

    async def _work(
        self,
        limit: TimeLimit,
        function: Callable[..., T],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> T:
        loop, cancelled, began = asyncio.get_running_loop(), Event(), time.monotonic()

        def call() -> T:
            with deadline(max(1e-3, limit.left), cancelled=cancelled):
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
        result.add_done_callback(_retrieve_error)
        try:
            await limit.wait(result)
        except BaseException:
            cancelled.set()
            raise
        try:
            return result.result()
        except DeadlineError as error:
            raise limit.error() from error

    def _leave(self, cancelled: Event, seconds: float) -> None:
        self._cancels.discard(cancelled)
        self._usual += 0.1 * (seconds - self._usual)
        self.running -= 1
        self._next()

    def _next(self) -> None:
        """Give free places to those who wait longest, but not to those who waited too long in overload."""
        now = time.monotonic()
        patience = self._overload.patience(now, self._usual)
        places = self._places(now)
        while self._queue and self.running < places:
            place = next(iter(self._queue))
            waited = now - self._queue.pop(place)
            if place.done():
                continue
            if waited > patience:
                place.set_exception(self.refusal(now))
                continue
            self.running += 1
            self._overload.admitted(now)
            place.set_result(None)
        if not self.running:
            self._idle.set()
        self._report()

    def _places(self, now: float) -> int:
        return self._overload.places(now, self._settings.workers)

    def _room(self, now: float) -> int:
        """How many may wait; in overload as many as are worked on, since the others would wait in vain."""
        queue = self._settings.queue
        return min(queue, self._places(now)) if self._overload.overloaded(now) else queue

    def _give_back(self, place: "asyncio.Future[None]") -> None:
        """Leave the queue; a place that was given in the same moment goes to the next."""
        if self._queue.pop(place, None) is not None:
            place.cancel()
            self._report()
        elif place.done() and not place.cancelled() and place.exception() is None:
            self.running -= 1
            self._next()

    async def _idle_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self) -> None:
        self._report_to(self.running, len(self._queue))


class WriteQueue(WorkerPool):
    """Changes of collections have threads and a bounded queue of their own: no search waits behind one.

    The store takes one writer at a time, so two threads are enough: one writes while the other splits
    documents. ``settings.write_queue`` requests are admitted beside those that are worked on. A request
    counts from its admission to its end, whatever the number of its steps: it is refused (429) before
    anything of it is kept, or not at all.
    """

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._most = WRITERS + settings.write_queue
        self._admitted = 0
        own = replace(settings, workers=WRITERS, queue=self._most)
        super().__init__(own, metrics, report=metrics.write_queue, overload_concurrency=None)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A place for one request, for all of its steps; ``Busy`` where all are taken."""
        if self._admitted >= self._most:
            raise self.refusal()
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1


def _retrieve_error(future: "asyncio.Future[Any]") -> None:
    """Look at an error that nobody waits for, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()
