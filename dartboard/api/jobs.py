"""Long tasks: one runs, a few wait, finished ones are kept for a while to be asked about.

A task reports its progress through a function that it is given; the same function stops it once it is
cancelled, as do the looks at the deadline that the library takes between its steps. When the service stops,
the running task gets what is left of its grace, and those that wait are dropped.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Literal

from dartboard.api.errors import ApiError, Busy, NotFound, as_api_error
from dartboard.api.metrics import Metrics
from dartboard.deadline import deadline
from dartboard.errors import DartboardError, DeadlineError

logger = logging.getLogger(__name__)

State = Literal["queued", "running", "done", "failed", "cancelled"]
Progress = Callable[[int, int, str], None]
Task = Callable[[Progress], dict[str, Any]]
_LONGEST = 24 * 3600.0


@dataclass(slots=True, eq=False)
class Job:
    """A task and how far it is; times are seconds since 1970."""

    id: str
    kind: str
    owner: str | None
    task: Task | None
    state: State = "queued"
    done: int = 0
    total: int = 0
    message: str = ""
    created: float = field(default_factory=time.time)
    started: float | None = None
    finished: float | None = None
    result: dict[str, Any] | None = None
    problem: ApiError | None = None
    """The error as a request would be answered with it."""
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    @property
    def error(self) -> str | None:
        """Why it failed."""
        return None if self.problem is None else self.problem.message

    def run(self) -> None:
        """Do the task, in this thread."""
        task, self.task = self.task, None
        self.state, self.started = "running", time.time()
        try:
            with deadline(_LONGEST, cancelled=self.stop):
                self.result = task(self._progress) if task else {}
            self.state = "done"
        except Exception as error:
            self.state = "cancelled" if self.stop.is_set() else "failed"
            if self.state == "failed":
                self.problem = as_api_error(error)
                if not isinstance(error, (ApiError, DartboardError)):
                    logger.error("job %s failed", self.id, exc_info=error)
        self.end()

    def end(self) -> None:
        """It does not run any more, or never will."""
        self.task, self.finished = None, time.time()
        self.ended.set()

    def _progress(self, done: int, total: int, message: str = "") -> None:
        if self.stop.is_set():
            raise DeadlineError("cancelled")
        self.done, self.total, self.message = done, total, message


class Jobs:
    """The tasks of one service, in the order in which they came."""

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most, self._metrics = most, metrics
        self._kept: dict[str, Job] = {}
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._stopping = False

    def start(self, kind: str, task: Task, owner: str | None = None) -> Job:
        """Take a task in; ``Busy`` where unfinished ones have all places."""
        job = Job(secrets.token_hex(8), kind, owner, task)
        with self._lock:
            self._forget_one()
            if self._stopping or len(self._kept) >= self._most:
                raise Busy("too many tasks are waiting: try again when one has finished", retry_after=10)
            self._kept[job.id] = job
            self._metrics.job("queued")
            if self._thread is None:
                self._thread = Thread(target=self._work, name="dartboard-jobs", daemon=True)
                self._thread.start()
        self._queue.put(job)
        return job

    def get(self, job_id: str) -> Job:
        """A job that is kept, or ``NotFound``."""
        job = self._kept.get(job_id)
        if job is None:
            raise NotFound("there is no such job: finished ones are kept for a while only")
        return job

    def list(self) -> list[Job]:
        """All that are kept, newest first."""
        with self._lock:
            return list(reversed(self._kept.values()))

    def running(self) -> Sequence[Job]:
        """The one that runs, if any."""
        return [job for job in self.list() if job.state == "running"]

    def cancel(self, job_id: str) -> Job:
        """Stop a job: at once if it waits, at its next step if it runs; a finished one stays as it is."""
        job = self.get(job_id)
        with self._lock:
            job.stop.set()
            if job.state == "queued":
                job.state = "cancelled"
                job.end()
                self._metrics.job("cancelled")
        return job

    async def stop(self, grace: float) -> None:
        """Drop what waits, and let the running task end within ``grace`` seconds, then cancel it."""
        self._stopping = True
        for job in self.list():
            if job.state == "queued":
                logger.warning("job %s (%s) is dropped before its turn: the service stops", job.id, job.kind)
                self.cancel(job.id)
        for job in self.running():
            if not await asyncio.to_thread(job.ended.wait, grace):
                logger.warning(
                    "job %s (%s) is dropped at %d of %d: the service stops",
                    job.id,
                    job.kind,
                    job.done,
                    job.total,
                )
                job.stop.set()
                await asyncio.to_thread(job.ended.wait, 5.0)
        self._queue.put(None)

    def _forget_one(self) -> None:
        if len(self._kept) >= self._most:
            oldest = next((job for job in self._kept.values() if job.ended.is_set()), None)
            if oldest is not None:
                del self._kept[oldest.id]

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.state != "queued":
                    continue
                job.state = "running"
            self._metrics.job("running")
            job.run()
            self._metrics.job(job.state)
