"""What a server is put through: calm, the target rate, as much as it can, twice that, and a long time."""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psutil
from load_parts.client import Load
from load_parts.corpus import questions
from load_parts.servers import Server

CALM, TARGET = 5.0, 100.0
CLIENTS = 8
_BLOCK = 5000
_PAUSE = 3.0
_STOLEN, _TRIES = 0.03, 3
"""A phase in which a host took more processor time than this share away says little: it is measured again."""


def body_of(question: str) -> bytes:
    """The request that both services understand; all else is at its default."""
    return json.dumps({"query": question}).encode()


def asked(seed: int, *, long: bool = False) -> Iterator[str]:
    """Questions without end, mostly new ones; lists of them follow each other and share some."""
    for block in itertools.count():
        yield from questions(_BLOCK, seed=seed * 1000 + block, long=long)


def run(work: Callable[[], Any]) -> Any:
    """A coroutine to its end, on uvloop where it is installed: the client shares the cores."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work())


PHASES = ("calm", "target", "capacity", "overload", "long questions", "calm after")
APART = (("calm",), ("target",), ("capacity",), ("overload", "calm after"), ("long questions",))
"""For a service that is long busy with what nobody waits for any more: a new process for each of these."""


async def measured(
    server: Server,
    names: Sequence[str] = PHASES,
    *,
    scale: float = 1.0,
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """These phases; ``scale`` shortens them, ``known`` are earlier ones: overload is twice their capacity."""
    load = Load(server.port, server.path, body_of)
    seeds = itertools.count(2)
    found = dict(known or {})

    def steady(rate: float, seconds: float) -> Callable[[], Any]:
        def again() -> Any:
            seed = next(seeds)
            return load.at_rate(asked(seed), rate, seconds * scale, seed=seed)

        return again

    def clients(*, long: bool = False) -> Callable[[], Any]:
        return lambda: load.saturating(asked(next(seeds), long=long), CLIENTS, 20 * scale)

    work: dict[str, Callable[[], Callable[[], Any]]] = {
        "calm": lambda: steady(CALM, 60),
        "target": lambda: steady(TARGET, 60),
        "capacity": clients,
        "overload": lambda: steady(2 * max(1.0, found["capacity"]["served_a_second"]), 120),
        "long questions": lambda: clients(long=True),
        "calm after": lambda: steady(CALM, 20),
    }
    try:
        await load.saturating(asked(1), 4, 3 * scale)
        for name in names:
            found[name] = await _undisturbed(name, server, work[name]())
    finally:
        load.close()
    return found


async def soak(server: Server, seconds: float, rate: float) -> dict[str, Any]:
    """Half of what it can do, for long: memory must stay where it is once the caches are full."""
    load = Load(server.port, server.path, body_of)
    held: list[tuple[float, float]] = []

    async def watch() -> None:
        while True:
            held.append((server.megabytes(), server.own_megabytes()))
            await asyncio.sleep(1)

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        found = await _phase("soak", server, load.at_rate(asked(99), rate, seconds, seed=99))
    finally:
        watching.cancel()
        load.close()
    memory = np.array(held)
    fifths = [np.median(part, axis=0) for part in np.array_split(memory, 5)]
    (begin, own_begin), (end, own_end) = fifths[1].tolist(), fifths[-1].tolist()
    return found | {
        "megabytes": {
            "start": round(memory[0, 0], 1),
            "second fifth": round(begin, 1),
            "last fifth": round(end, 1),
            "most": round(memory[:, 0].max(), 1),
            "own, by fifths": [round(float(part[1]), 1) for part in fifths],
        },
        "growth": round(end / begin - 1, 4),
        "own_growth": round(own_end / own_begin - 1, 4),
    }


async def _undisturbed(name: str, server: Server, work: Callable[[], Any]) -> dict[str, Any]:
    """A phase, again while the host takes too much away; then the least disturbed, whatever it says."""
    tried: list[dict[str, Any]] = []
    while len(tried) < _TRIES and (not tried or tried[-1]["stolen"] > _STOLEN):
        tried.append(await _phase(name, server, work()))
    least = min(tried, key=lambda one: float(one["stolen"]))
    return least | {"tries": len(tried)}


async def _phase(name: str, server: Server, work: Any) -> dict[str, Any]:
    await asyncio.sleep(_PAUSE)
    before, machine, here = server.cpu_seconds(), psutil.cpu_times(), time.process_time()
    found: dict[str, Any] = await work
    used, after = server.cpu_seconds() - before, psutil.cpu_times()
    found["cpu_ms_a_request"] = round(1000 * used / max(1, found["served"]), 2)
    found["stolen"] = _stolen(machine, after)
    found["others"] = _others(machine, after, used + time.process_time() - here)
    found["megabytes_held"] = round(server.megabytes(), 1)
    print(f"  {name}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def _others(before: Any, after: Any, ours: float) -> float:
    """The share of processor time that other processes of this machine took."""
    busy = sum(getattr(after, kind) - getattr(before, kind) for kind in ("user", "nice", "system"))
    return round(max(0.0, busy - ours) / max(sum(after) - sum(before), 1e-9), 4)


def _stolen(before: Any, after: Any) -> float:
    """The share of processor time that a host gave to others; 0 where the system does not say."""
    used = sum(after) - sum(before)
    return round((getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)) / max(used, 1e-9), 4)
