"""Long tasks: one runs, a few wait, finished ones are kept for a while to be asked about.

A task reports its progress through a function that it is given; the same function stops it once it is
cancelled, as do the looks at the deadline that the library takes between its steps.

Tasks of one kind cannot take every place, and kinds take turns: whoever may only evaluate cannot keep those
who upload from being heard. When the service stops, the running task gets what is left of its grace; what was
not begun, or does not end in time, is dropped and named in the log.
"""

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Any, Literal

from dartboard.api.errors import ApiError, Busy, NotFound, ReadOnly, as_api_error
from dartboard.api.guards.request_log import stack_lines
from dartboard.api.settings import ServiceSettings
from dartboard.deadline import deadline
from dartboard.errors import DartboardError, DeadlineError

if TYPE_CHECKING:
    from dartboard.api.metrics import Metrics

logger = logging.getLogger(__name__)

State = Literal["queued", "running", "done", "failed", "cancelled"]
Progress = Callable[[int, int, str], None]
Task = Callable[[Progress], dict[str, Any]]

_LONGEST = 24 * 3600.0
_STOPPING = 5.0
_POLL_SECONDS = 0.05


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
    error: str | None = None
    problem: ApiError | None = None
    """The error as a request would be answered with it."""
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def wait(self, seconds: float) -> bool:
        """Wait until the job has ended, at most so long; whether it has."""
        return self.ended.wait(seconds)

    def as_dict(self) -> dict[str, Any]:
        """What callers are told."""
        names = ("id", "kind", "state", "done", "total", "message", "created", "started", "finished")
        return {name: getattr(self, name) for name in (*names, "result", "error")}


class JobQueue:
    """The tasks of one service, in the order in which they came."""

    def __init__(self, settings: ServiceSettings, metrics: "Metrics") -> None:
        self._most = settings.jobs
        self._processes = settings.processes
        self._metrics = metrics
        self._kept: dict[str, Job] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._stopping = False
        self._hurried = Event()
        self._last_kind = ""

    def start(self, kind: str, task: Task, owner: str | None = None) -> Job:
        """Take a task in; where unfinished ones have all places, or all that its kind may have, ``Busy``."""
        if self._processes > 1:
            raise ReadOnly()
        job = Job(secrets.token_hex(8), kind, owner, task)
        with self._changed:
            if self._stopping or not self._make_room(kind):
                raise Busy("too many tasks are waiting: try again when one has finished", retry_after=10)
            self._kept[job.id] = job
            self._metrics.job("queued")
            if self._thread is None:
                self._thread = Thread(target=self._work, name="dartboard-jobs", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return job

    def get(self, job_id: str) -> Job:
        """A job that is kept, or ``NotFound``."""
        job = self._kept.get(job_id)
        if job is None:
            raise NotFound("there is no such job: finished ones are kept for a while only")
        return job

    def list(self) -> list[Job]:
        """All that are kept, newest first."""
        with self._changed:
            return list(reversed(self._kept.values()))

    def cancel(self, job_id: str) -> Job:
        """Stop a job: at once if it waits, at its next step if it runs; a finished one stays as it is."""
        job = self.get(job_id)
        with self._changed:
            job.stop.set()
            if job.state == "queued":
                self._end(job, "cancelled")
        return job

    def close(self) -> None:
        """Take no more, and drop what waits."""
        with self._changed:
            self._stopping = True
            for job in self._kept.values():
                if job.state == "queued":
                    logger.warning(
                        "job %s (%s) is dropped before its turn: the service stops", job.id, job.kind
                    )
                    job.stop.set()
                    self._end(job, "cancelled")
            self._changed.notify_all()

    def hurry(self) -> None:
        """Give the running task no more time; safe to call from a signal's handler."""
        self._hurried.set()

    def stop(self, grace: float = 0.0) -> None:
        """Let the running task end within ``grace`` seconds, then cancel it; those that wait are dropped."""
        self.close()
        running = next((job for job in self._kept.values() if job.state == "running"), None)
        if running is not None and not self._ended_within(running, grace):
            logger.warning(
                "job %s (%s) is dropped at %d of %d: the service stops",
                running.id, running.kind, running.done, running.total,
            )  # fmt: skip
            running.stop.set()
        if self._thread is not None:
            self._thread.join(_STOPPING)

    def _ended_within(self, job: Job, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not self._hurried.is_set() and (left := end - time.monotonic()) > 0:
            if job.wait(min(_POLL_SECONDS, left)):
                return True
        return job.ended.is_set()

    def _make_room(self, kind: str) -> bool:
        unfinished = [job for job in self._kept.values() if not job.ended.is_set()]
        if sum(job.kind == kind for job in unfinished) >= self._most - self._left_to_others():
            return False
        if len(self._kept) < self._most:
            return True
        oldest = next((job for job in self._kept.values() if job.ended.is_set()), None)
        if oldest is None:
            return False
        del self._kept[oldest.id]
        return True

    def _left_to_others(self) -> int:
        """Places that one kind leaves to the others: a quarter, and at least one where there are two."""
        return max(self._most // 4, min(1, self._most - 1))

    def _work(self) -> None:
        while (job := self._next()) is not None:
            self._run(job)

    def _next(self) -> Job | None:
        with self._changed:
            while not self._stopping:
                queued = [job for job in self._kept.values() if job.state == "queued"]
                if queued:
                    job = next((job for job in queued if job.kind != self._last_kind), queued[0])
                    self._last_kind = job.kind
                    job.state, job.started = "running", time.time()
                    self._metrics.job("running")
                    return job
                self._changed.wait()
        return None

    def _run(self, job: Job) -> None:
        def progress(done: int, total: int, message: str = "") -> None:
            if job.stop.is_set():
                raise DeadlineError("cancelled")
            job.done, job.total, job.message = done, total, message

        task, job.task = job.task, None
        try:
            with deadline(_LONGEST, cancelled=job.stop):
                job.result = task(progress) if task else {}
        except Exception as error:  # noqa: BLE001 - a task must not take the thread down with it
            job.problem = None if job.stop.is_set() else _problem(error, job.id)
        with self._changed:
            if job.problem is not None:
                job.error = job.problem.message
                self._end(job, "failed")
            else:
                self._end(job, "done" if job.result is not None else "cancelled")

    def _end(self, job: Job, state: State) -> None:
        job.state, job.finished, job.task = state, time.time(), None
        job.ended.set()
        self._metrics.job(state)


def _problem(error: Exception, job_id: str) -> ApiError:
    if isinstance(error, (ApiError, DartboardError)):
        return as_api_error(error)
    logger.error("job %s failed by %s: %s", job_id, type(error).__name__, "; ".join(stack_lines(error)))
    return ApiError("the task failed: the service's log has its id")
