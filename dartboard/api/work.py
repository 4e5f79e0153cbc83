"""Blocking work off the event loop: so many at a time, so many in line, each within its time.

A thread cannot be stopped from outside. So work runs within a :func:`~dartboard.deadline.deadline` and looks
at it between its steps; the client gets its answer (504) when time is up, whatever the thread does, and the
thread's place is free again when the thread really ends. Time in line counts. Where the line is full, a
request is refused (429) before its body is read. When the client leaves, its work is cancelled.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event
from typing import Any, TypeVar

from starlette.types import Receive

from dartboard.api.errors import ApiError, Busy, ClientGone, Stopping, TimedOut
from dartboard.api.metrics import Metrics
from dartboard.deadline import deadline
from dartboard.errors import DeadlineError

T = TypeVar("T")
_LAST_CALL = 1.0
"""Seconds that work gets to notice that it was cancelled, when the service stops."""

client: ContextVar[Receive | None] = ContextVar("dartboard_client", default=None)
"""How to hear that the client of this request has left, once its body was read."""


class Work:
    """Runs functions in threads for one event loop.

    Args:
        name: Of the threads and in the metrics.
        threads: How many work at a time.
        waiting: How many requests may wait for a thread.
        seconds: For waiting and working.
        metrics: Hears what runs, waits and is refused.
    """

    def __init__(self, name: str, *, threads: int, waiting: int, seconds: float, metrics: Metrics) -> None:
        self.name = name
        self._threads, self._most_waiting, self._seconds = threads, waiting, seconds
        self._metrics = metrics
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dartboard-{name}")
        self._free = asyncio.Semaphore(threads)
        self._entering: set[asyncio.Future[Any]] = set()
        self._cancels: set[Event] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self._admitted = 0
        self._usual = 0.05
        self.running = 0
        """Threads that are busy, those whose client was told 504 included."""

    @property
    def waiting(self) -> int:
        """Requests in line."""
        return len(self._entering)

    def check_room(self) -> None:
        """``Busy`` where another request would find no place in line, ``Stopping`` at the end."""
        if self._stopping:
            self._metrics.rejected("stopping")
            raise Stopping
        if max(self._admitted, self.running + self.waiting) >= self._threads + self._most_waiting:
            self._metrics.rejected("busy")
            soon = self._usual * (self.waiting + 1) / self._threads
            raise Busy(retry_after=min(self._seconds, max(1.0, math.ceil(soon))))

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A place for one request and all its steps: it is refused before anything is done, or not at all."""
        self.check_room()
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    async def run(self, function: Callable[..., T], *arguments: Any, step: bool = False) -> T:
        """Call a function in a thread.

        Args:
            function: What to call, with ``arguments``.
            step: Whether this is a step of a request that is :meth:`admitted` and whose body is still read.

        Returns:
            Its result.

        Raises:
            Busy: The line is full.
            Stopping: The service is shutting down.
            TimedOut: The time is up, in line or at work.
            ClientGone: Nobody waits for the result.
        """
        if not step:
            with self.admitted():
                return await self._run(function, arguments, client.get())
        if self._stopping:
            raise Stopping
        return await self._run(function, arguments, None)

    async def stop(self, grace: float) -> None:
        """Take nothing more, let what runs finish within the grace, then cancel it."""
        self._stopping = True
        for place in self._entering:
            place.cancel()
        if not await self._idle_within(grace):
            for cancelled in self._cancels:
                cancelled.set()
            await self._idle_within(_LAST_CALL)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(
        self, function: Callable[..., T], arguments: tuple[Any, ...], receive: Receive | None
    ) -> T:
        time_left = _Time(self._seconds, receive)
        try:
            await self._enter(time_left)
            return await self._work(time_left, function, arguments)
        except (TimedOut, ClientGone) as error:
            self._metrics.rejected(error.code)
            raise
        finally:
            time_left.close()

    async def _enter(self, time_left: "_Time") -> None:
        """Take a thread's place, waiting in line if need be."""
        if not self._free.locked():
            await self._free.acquire()  # at once
        else:
            place = asyncio.ensure_future(self._free.acquire())
            self._entering.add(place)
            self._report()
            try:
                await time_left.wait(place)
            except BaseException:
                if not place.cancel() and not place.cancelled():  # it came at this very moment: give it back
                    self._free.release()
                raise
            finally:
                self._entering.discard(place)
                self._report()
            if place.cancelled():
                raise Stopping
        self.running += 1
        self._idle.clear()
        self._report()

    async def _work(self, time_left: "_Time", function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        loop, cancelled, began = asyncio.get_running_loop(), Event(), time.monotonic()

        def call() -> T:
            with deadline(max(1e-3, time_left.left), cancelled=cancelled):
                return function(*arguments)

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
        result.add_done_callback(_look_at_error)
        try:
            await time_left.wait(result)
        except BaseException:
            cancelled.set()
            raise
        try:
            return result.result()
        except DeadlineError as error:
            raise time_left.error() from error

    def _leave(self, cancelled: Event, seconds: float) -> None:
        self._cancels.discard(cancelled)
        self._usual += 0.1 * (seconds - self._usual)
        self.running -= 1
        self._free.release()
        if not self.running:
            self._idle.set()
        self._report()

    async def _idle_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _report(self) -> None:
        self._metrics.work(self.name, self.running, self.waiting)


class _Time:
    """The time of one request: it ends after so many seconds, or when its client leaves."""

    def __init__(self, seconds: float, receive: Receive | None) -> None:
        self._end = time.monotonic() + seconds
        self._leaving = None if receive is None else asyncio.ensure_future(_gone(receive))

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    async def wait(self, wanted: "asyncio.Future[Any]") -> None:
        """Wait until a future is done; ``TimedOut`` or ``ClientGone`` where the time ends before it."""
        futures = [wanted] if self._leaving is None else [wanted, self._leaving]
        await asyncio.wait(futures, timeout=self.left, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            raise self.error()

    def error(self) -> ApiError:
        """Why the time has ended."""
        return ClientGone() if self._leaving is not None and self._leaving.done() else TimedOut()

    def close(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()


async def _gone(receive: Receive) -> None:
    """Return when the client has left; a request without a body still has its empty one to be read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _look_at_error(future: "asyncio.Future[Any]") -> None:
    """Look at an error that nobody waits for, so that asyncio does not complain of it."""
    if not future.cancelled():
        future.exception()
