"""Tasks on a cluster: started here, run by any free machine, repeated if a machine is lost.

A task is a function of a module with plain arguments and without side effects, so running it twice does no
harm; its result is used once. If a worker or its machine is lost, Ray repeats the task, if possible on
another machine, up to :data:`RETRIES` times.

A worker's error is sent as the name of its class and a message. An exception object would have to be
reconstructed by whatever version of its class is installed at the other end.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any

from dartboard import errors
from dartboard.deadline import check
from dartboard.errors import ClusterError, DartboardError

RETRIES = 3
"""How often a task is repeated when its worker is lost; limited, because a task may kill its workers."""

AHEAD = 2
"""Tasks in progress per slot: enough that no worker waits, few enough to save memory."""

MACHINE_TIMEOUT = 60.0
"""Seconds to wait for a machine to come back when none is left."""

_POLL_SECONDS = 1.0
"""Seconds between two checks of the machines while nothing finishes."""

Outcome = tuple[str, str, Any]
"""The name of an error or nothing, its message, and the function's result."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An available machine of the cluster."""

    id: str
    name: str
    cpus: float


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A task in progress."""

    reference: Any
    cpus: float


class Cluster:
    """A connection to a cluster."""

    def __init__(self, ray: Any, address: str) -> None:
        self.address = address
        self._ray = ray
        self._run = ray.remote(run)

    def machines(self, cpus: float = 1.0) -> list[Machine]:
        """The available machines with at least this many cores, busy or not, by name."""
        found = [
            Machine(node["NodeID"], node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0))
            for node in self._ray.nodes()
            if node["Alive"]
        ]
        return sorted((one for one in found if one.cpus >= cpus), key=lambda one: (one.name, one.id))

    def slots(self, cpus: float = 1.0) -> int:
        """How many tasks with this many cores fit on the machines at a time."""
        return sum(int(machine.cpus // cpus) for machine in self.machines(cpus))

    def begin(
        self,
        work: Callable[..., Any],
        *arguments: Any,
        cpus: float = 1.0,
        machine: Machine | None = None,
    ) -> Task:
        """Start a function of a module on some machine, or on the given one."""
        where: Any = "SPREAD"
        if machine is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            where = NodeAffinitySchedulingStrategy(node_id=machine.id, soft=False)
        remote = self._run.options(
            num_cpus=cpus, max_retries=RETRIES, scheduling_strategy=where, name=f"dartboard {work.__name__}"
        )
        try:
            reference = remote.remote(f"{work.__module__}:{work.__name__}", arguments)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise self._translated(error) from error
        return Task(reference, cpus)

    def keep(self, value: Any) -> list[Any]:
        """Put plain values where every machine can read them with :func:`fetch`; freed when dropped."""
        return [self._ray.put(value)]

    def ready(self, task: Task) -> bool:
        """Whether the result is available."""
        done, _ = self._ray.wait([task.reference], timeout=0)
        return bool(done)

    def result(self, task: Task) -> Any:
        """The result of a task; raises the worker's error."""
        self.first([task])
        try:
            return unwrap(self._ray.get(task.reference))
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise self._translated(error) from error

    def first(self, tasks: Sequence[Task]) -> Task:
        """The first finished task; raises if no machine is left."""
        by_reference = {task.reference: task for task in tasks}
        lonely_since: float | None = None
        while True:
            check()
            try:
                done, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=_POLL_SECONDS)
            except (self._ray.exceptions.RayError, ConnectionError) as error:
                raise self._translated(error) from error
            if done:
                return by_reference[done[0]]
            if self.machines(min(task.cpus for task in tasks)):
                lonely_since = None
                continue
            now = time.monotonic()
            lonely_since = now if lonely_since is None else lonely_since
            if now - lonely_since >= MACHINE_TIMEOUT:
                raise ClusterError(
                    f"no machine is left in the cluster at {self.address} to continue: finished work "
                    "is kept. Start machines (ray start --address HOST:PORT) and give the same command again"
                )

    def unordered(
        self, work: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], *, cpus: float = 1.0
    ) -> Iterator[Any]:
        """The results for the arguments of each job, in order of completion; few jobs run at a time.

        If the caller stops early, those few are finished and their results dropped: cancelling a task that
        ends at the same moment crashes the whole process (Ray 2.60).
        """
        most = max(1, AHEAD * self.slots(cpus))
        under_way: list[Task] = []
        waiting = iter(jobs)
        while True:
            for job in islice(waiting, most - len(under_way)):
                under_way.append(self.begin(work, *job, cpus=cpus))
            if not under_way:
                return
            task = self.first(under_way)
            result = self.result(task)
            under_way.remove(task)
            yield result

    def _translated(self, error: Exception) -> ClusterError:
        known = self._ray.exceptions
        said = last_line(error)
        if isinstance(error, (known.WorkerCrashedError, known.NodeDiedError, known.OutOfMemoryError)):
            return ClusterError(
                f"a task was started {RETRIES + 1} times and its worker was lost each time: {said}. "
                "Its machine may be short of memory. Finished work is kept"
            )
        if isinstance(error, known.RayTaskError):
            return ClusterError(
                f"a worker could not start: {said}. Install the same dartboard, with the extra ray, in "
                "the Python that runs Ray there"
            )
        return ClusterError(f"the cluster at {self.address} failed: {said}. Finished work is kept")


def run(work: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call ``module:function`` on a worker."""
    try:
        module, _, name = work.partition(":")
        return "", "", getattr(import_module(module), name)(*arguments)
    except DartboardError as error:
        return type(error).__name__, f"{error} (on {socket.gethostname()})", None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to the one who waits
        said = f"{type(error).__name__} {error}".strip()
        return ClusterError.__name__, f"a worker on {socket.gethostname()} failed: {said}", None


def unwrap(outcome: Outcome) -> Any:
    """The result of the work; raises its error."""
    name, message, value = outcome
    if not name:
        return value
    kind = getattr(errors, name, ClusterError)
    # Without calling its constructor: some errors build their message from other arguments.
    raise kind.__new__(kind, message)


def fetch(kept: list[Any]) -> Any:
    """On a worker: the value from :meth:`Cluster.keep`."""
    import ray

    return ray.get(kept[0])


def last_line(error: BaseException) -> str:
    """The last non-empty line: Ray's errors include the log before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1] if lines else type(error).__name__
    return said[:300].rstrip(".")
