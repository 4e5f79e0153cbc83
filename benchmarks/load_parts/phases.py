"""What a server is put through: calm, the target rate, as much as it can, twice that, and a long time."""

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Iterator
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


def body_of(question: str) -> bytes:
    """The request that both services understand; all else is at its default."""
    return json.dumps({"query": question}).encode()


def asked(seed: int, *, long: bool = False) -> Iterator[str]:
    """Questions without end, mostly new ones."""
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


async def whole(server: Server, *, scale: float) -> dict[str, Any]:
    """All phases but the soak; ``scale`` shortens them."""
    load = Load(server.port, server.path, body_of)
    found: dict[str, Any] = {}
    try:
        await load.saturating(asked(1), 4, 3 * scale)
        found["calm"] = await _phase("calm", server, load.at_rate(asked(2), CALM, 60 * scale, seed=2))
        found["target"] = await _phase("target", server, load.at_rate(asked(3), TARGET, 60 * scale, seed=3))
        found["capacity"] = await _phase("capacity", server, load.saturating(asked(4), CLIENTS, 20 * scale))
        twice = 2 * found["capacity"]["served_a_second"]
        found["overload"] = await _phase(
            "overload", server, load.at_rate(asked(5), twice, 120 * scale, seed=5)
        )
        found["long questions"] = await _phase(
            "long questions", server, load.saturating(asked(8, long=True), CLIENTS, 20 * scale)
        )
        found["calm after"] = await _phase(
            "calm after", server, load.at_rate(asked(6), CALM, 20 * scale, seed=6)
        )
    finally:
        load.close()
    return found


async def soak(server: Server, seconds: float, rate: float) -> dict[str, Any]:
    """Half of what it can do, for long: memory must stay where it is once the caches are full."""
    load = Load(server.port, server.path, body_of)
    memory: list[float] = []

    async def watch() -> None:
        while True:
            memory.append(server.megabytes())
            await asyncio.sleep(1)

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        found = await _phase("soak", server, load.at_rate(asked(7), rate, seconds, seed=7))
    finally:
        watching.cancel()
        load.close()
    fifth = max(1, len(memory) // 5)
    begin, end = float(np.median(memory[fifth : 2 * fifth] or memory)), float(np.median(memory[-fifth:]))
    return found | {
        "megabytes": {
            "start": round(memory[0], 1),
            "second fifth": round(begin, 1),
            "last fifth": round(end, 1),
            "most": round(max(memory), 1),
        },
        "growth": round(end / begin - 1, 4),
    }


async def _phase(name: str, server: Server, work: Any) -> dict[str, Any]:
    await asyncio.sleep(_PAUSE)
    before, machine = server.cpu_seconds(), psutil.cpu_times()
    found: dict[str, Any] = await work
    used = server.cpu_seconds() - before
    found["cpu_ms_a_request"] = round(1000 * used / max(1, found["served"]), 2)
    found["stolen"] = _stolen(machine, psutil.cpu_times())
    found["megabytes_held"] = round(server.megabytes(), 1)
    print(f"  {name}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def _stolen(before: Any, after: Any) -> float:
    """The share of processor time that a host gave to others; 0 where the system does not say."""
    used = sum(after) - sum(before)
    return round((getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)) / max(used, 1e-9), 4)
