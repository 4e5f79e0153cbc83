"""A light HTTP client that sends when it said it would, whatever the server does.

Open loop: requests leave at times drawn beforehand (Poisson), and latency counts from the time that a request
should have left, so a server that stalls is not spared the requests that would have come meanwhile
(coordinated omission). Connections are kept alive; a request that finds none idle opens one more, and one
whose kept connection is closed in that moment is sent again, as HTTP clients do.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

PATIENCE = 30.0
SETTLED = 1.0
"""Seconds after which a rate is no longer a sudden change."""


class Connection(asyncio.Protocol):
    """One request at a time over one kept connection."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._need = -1
        self._status = 0
        self._transport: Any = None
        self._answer: asyncio.Future[int] | None = None
        self.open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    @property
    def answering(self) -> bool:
        """Whether a part of the answer has come."""
        return bool(self._data)

    def ask(self, request: bytes) -> "asyncio.Future[int]":
        """Send; the future is the status, or -1 if the connection broke."""
        self._answer = asyncio.get_running_loop().create_future()
        self._data.clear()
        self._need = -1
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._need < 0:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._data[:end]).lower().split(b"\r\n")
            self._status = int(head[0].split()[1])
            lengths = [line for line in head if line.startswith(b"content-length:")]
            self._need = end + 4 + (int(lengths[0].split(b":")[1]) if lengths else 0)
        if len(self._data) >= self._need:
            self._finish(self._status)

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._finish(-1)

    def close(self) -> None:
        self._transport.close()

    def _finish(self, status: int) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(status)


class Load:
    """Drives one server; ``body_of`` makes the JSON of a question."""

    def __init__(self, port: int, path: str, body_of: Callable[[str], bytes]) -> None:
        self._port, self._path, self._body_of = port, path, body_of
        self._idle: list[Connection] = []

    async def at_rate(
        self, questions: Iterable[str], rate: float, seconds: float, *, seed: int
    ) -> dict[str, Any]:
        """Offer ``rate`` requests a second for a time; see the module."""
        draw, loop = random.Random(seed), asyncio.get_running_loop()
        began = loop.time() + 0.05
        taken, tasks, at = _Taken(began + SETTLED), [], 0.0
        for question in questions:
            at += draw.expovariate(rate)
            if at >= seconds:
                break
            intended = began + at
            delay = intended - loop.time()
            if delay > 0:
                await asyncio.sleep(delay)
            tasks.append(loop.create_task(self._one(question, intended, taken)))
        await asyncio.gather(*tasks)
        return taken.summary(seconds, loop.time() - began) | {"rate": rate}

    async def saturating(self, questions: Iterable[str], clients: int, seconds: float) -> dict[str, Any]:
        """Closed loop: so many clients ask one question after the other. What comes back is the capacity."""
        loop, taken, left = asyncio.get_running_loop(), _Taken(), iter(questions)
        began = loop.time()

        async def client() -> None:
            while loop.time() < began + seconds:
                await self._one(next(left), loop.time(), taken)

        await asyncio.gather(*(client() for _ in range(clients)))
        return taken.summary(seconds, loop.time() - began) | {"clients": clients}

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _one(self, question: str, intended: float, taken: "_Taken") -> None:
        loop = asyncio.get_running_loop()
        body = self._body_of(question)
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            connection, kept = await self._connection()
            taken.late.append(loop.time() - intended)
            async with asyncio.timeout(PATIENCE):
                status = await connection.ask(head.encode() + body)
                if kept and status == -1 and not connection.answering:
                    connection = await self._new()
                    status = await connection.ask(head.encode() + body)
        except (OSError, TimeoutError) as error:
            taken.statuses[type(error).__name__] += 1
            return
        taken.add(status, intended, loop.time() - intended)
        if connection.open:
            self._idle.append(connection)

    async def _connection(self) -> tuple[Connection, bool]:
        """A connection, and whether it was kept: a server may close one just when it is used again."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection, True
        return await self._new(), False

    async def _new(self) -> Connection:
        _, made = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self._port)
        return made


class _Taken:
    """What happened to the requests of a phase."""

    def __init__(self, settled_at: float = float("-inf")) -> None:
        self._settled_at = settled_at
        self.statuses: Counter[str] = Counter()
        self.seconds: dict[int, list[float]] = {}
        self.settled: list[float] = []
        self.late: list[float] = []

    def add(self, status: int, intended: float, seconds: float) -> None:
        """An answer to a request that was due at ``intended``."""
        self.statuses[str(status)] += 1
        self.seconds.setdefault(status, []).append(seconds)
        if status == 200 and intended >= self._settled_at:
            self.settled.append(seconds)

    def summary(self, planned: float, took: float) -> dict[str, Any]:
        served = self.seconds.get(200, [])
        refused = self.statuses.get("429", 0)
        asked = sum(self.statuses.values())
        return {
            "seconds": round(planned, 1),
            "asked": asked,
            "served": len(served),
            "served_a_second": round(len(served) / max(planned, took), 1),
            "refused": refused,
            "failed": asked - len(served) - refused,
            "ms": percentiles(served),
            "settled_ms": percentiles(self.settled),
            "refused_ms": percentiles(self.seconds.get(429, [])),
            "sent_late_ms": percentiles(self.late),
        }


def percentiles(seconds: list[float]) -> dict[str, float] | None:
    """Milliseconds; None where nothing was measured."""
    if not seconds:
        return None
    values = np.percentile(np.array(seconds) * 1000, [50, 95, 99, 100])
    return dict(zip(("p50", "p95", "p99", "max"), (round(float(value), 2) for value in values), strict=True))
