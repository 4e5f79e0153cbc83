"""Pieces of work on a cluster: begun here, done by whichever machine is free, done again where one is lost.

A piece of work is a function of a module and plain arguments, and it changes nothing: doing it twice does no
harm, and its result is taken once. Ray does a piece again, on another machine where there is one, when a
worker or its machine is lost, up to :data:`RETRIES` times.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dartboard.cluster.worker import perform, unwrapped
from dartboard.deadline import check
from dartboard.errors import ClusterError

RETRIES = 3
"""How often a piece of work is begun anew when what worked on it is lost: one that kills workers must end."""

AHEAD = 2
"""Pieces under way for each that can be worked on: nobody waits for the next, and memory stays small."""

PATIENCE = 60.0
"""Seconds to wait for a machine to come back when none is left that could work."""

_LOOK = 1.0
"""Seconds between two looks at the machines while nothing is finished."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of the cluster that is there."""

    id: str
    name: str
    cpus: float


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """A piece of work under way."""

    reference: Any
    cpus: float


class Cluster:
    """A connection to a cluster."""

    def __init__(self, ray: Any, address: str) -> None:
        self.address = address
        self._ray = ray
        self._perform = ray.remote(perform)

    def machines(self, cpus: float = 1.0) -> list[Machine]:
        """Those that are there and have so many cores, busy or not, by name."""
        found = [
            Machine(node["NodeID"], node["NodeManagerHostname"], node["Resources"].get("CPU", 0.0))
            for node in self._ray.nodes()
            if node["Alive"]
        ]
        return sorted((one for one in found if one.cpus >= cpus), key=lambda one: (one.name, one.id))

    def slots(self, cpus: float = 1.0) -> int:
        """How many pieces of work of so many cores fit onto the machines at a time."""
        return sum(int(machine.cpus // cpus) for machine in self.machines(cpus))

    def begin(
        self,
        work: Callable[..., Any],
        *arguments: Any,
        cpus: float = 1.0,
        machine: Machine | None = None,
    ) -> Ticket:
        """Let a function of a module be called on some machine, or on this one."""
        where: Any = "SPREAD"
        if machine is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            where = NodeAffinitySchedulingStrategy(node_id=machine.id, soft=False)
        remote = self._perform.options(
            num_cpus=cpus, max_retries=RETRIES, scheduling_strategy=where, name=f"dartboard {work.__name__}"
        )
        try:
            reference = remote.remote(f"{work.__module__}:{work.__name__}", arguments)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise self._in_our_terms(error) from error
        return Ticket(reference, cpus)

    def keep(self, value: Any) -> list[Any]:
        """Put plain values where every machine can read them, for :func:`fetch`; freed when it is dropped."""
        return [self._ray.put(value)]

    def ready(self, ticket: Ticket) -> bool:
        """Whether the result is there."""
        done, _ = self._ray.wait([ticket.reference], timeout=0)
        return bool(done)

    def result(self, ticket: Ticket) -> Any:
        """What the work gave, once it is there; an error of the worker is raised as our own."""
        self.first([ticket])
        try:
            return unwrapped(self._ray.get(ticket.reference))
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise self._in_our_terms(error) from error

    def first(self, tickets: Sequence[Ticket]) -> Ticket:
        """The one that is finished first; an error where no machine is left to work on them."""
        by_reference = {ticket.reference: ticket for ticket in tickets}
        lonely_since: float | None = None
        while True:
            check()
            try:
                done, _ = self._ray.wait(list(by_reference), num_returns=1, timeout=_LOOK)
            except (self._ray.exceptions.RayError, ConnectionError) as error:
                raise self._in_our_terms(error) from error
            if done:
                return by_reference[done[0]]
            if self.machines(min(ticket.cpus for ticket in tickets)):
                lonely_since = None
                continue
            now = time.monotonic()
            lonely_since = now if lonely_since is None else lonely_since
            if now - lonely_since >= PATIENCE:
                raise ClusterError(
                    f"no machine is left in the cluster at {self.address} that could go on: what is finished "
                    "is kept. Start machines (ray start --address HOST:PORT) and give the same command again"
                )

    def unordered(
        self, work: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], *, cpus: float = 1.0
    ) -> Iterator[Any]:
        """What the work gives for the arguments of each job, as it comes; few are under way at a time.

        Where nobody listens any more, those few are still worked on, and their results dropped: to cancel
        work that ends at that moment brings the whole process down (Ray 2.60).
        """
        most = max(1, AHEAD * self.slots(cpus))
        under_way: list[Ticket] = []
        for job in jobs:
            under_way.append(self.begin(work, *job, cpus=cpus))
            while len(under_way) >= most:
                yield self._taken(under_way)
        while under_way:
            yield self._taken(under_way)

    def _taken(self, under_way: list[Ticket]) -> Any:
        ticket = self.first(under_way)
        result = self.result(ticket)
        under_way.remove(ticket)
        return result

    def _in_our_terms(self, error: Exception) -> ClusterError:
        known = self._ray.exceptions
        said = in_one_line(error)
        if isinstance(error, (known.WorkerCrashedError, known.NodeDiedError, known.OutOfMemoryError)):
            return ClusterError(
                f"a piece of work was begun {RETRIES + 1} times and its worker was lost each time: {said}. "
                "Its machine may be short of memory. What is finished is kept"
            )
        if isinstance(error, known.RayTaskError):
            return ClusterError(
                f"a worker could not begin: {said}. Install the same dartboard, with the extra ray, in "
                "the Python that runs Ray there"
            )
        return ClusterError(f"the cluster at {self.address} failed: {said}. What is finished is kept")


def fetch(kept: list[Any]) -> Any:
    """On a worker: what :meth:`Cluster.keep` put there."""
    import ray

    return ray.get(kept[0])


def in_one_line(error: BaseException) -> str:
    """The last line that says something: Ray's errors bring the log of what went before along."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = lines[-1] if lines else type(error).__name__
    return said[:300].rstrip(".")
