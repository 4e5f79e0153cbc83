"""Search and ask for health while many clients write; write JSON.

    python benchmarks/write_storm.py [--writers 24] [--seconds 15] [--label NAME] [--out FILE]

A real ``dartboard serve`` with a small collection. First one client searches and two ask for health with
nobody writing (``calm``), then the same while every writer sends one small upload after the other
(``storm``). Writers that are refused (429) wait for a tenth of a second and try again. The client runs on the
same cores.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its parts

from load_parts import phases, servers  # noqa: E402
from load_parts.client import percentiles  # noqa: E402
from load_parts.corpus import passages  # noqa: E402

NAME, UPLOAD = "storm", 8
PROBES = {"healthz": "/healthz", "health": "/api/dartboard/health"}
_PAUSE = 0.02
_REFUSED_PAUSE = 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--writers", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--passages", type=int, default=500)
    parser.add_argument("--label", default="now", help="the name under which the result is written")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "write_storm.json")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder, servers.dartboard(Path(folder)) as server:
        measured = asyncio.run(_measured(server.port, options))
    measured["setting"] = {
        "writers": options.writers,
        "documents_an_upload": UPLOAD,
        "passages_before": options.passages,
        "cores": len(os.sched_getaffinity(0)),
        "load_average_after": round(os.getloadavg()[0], 2),
        "measured": datetime.now(UTC).date().isoformat(),
    }
    found[options.label] = measured
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(measured, indent=1))


async def _measured(port: int, options: argparse.Namespace) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=None)
    address = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        (await client.put(f"/api/dartboard/collections/{NAME}")).raise_for_status()
        body = _upload("seed", range(options.passages))
        (await _write(client, body)).raise_for_status()
        return {
            name: await _phase(client, writers, options.seconds)
            for name, writers in (("calm", 0), ("storm", options.writers))
        }


async def _phase(client: httpx.AsyncClient, writers: int, seconds: float) -> dict[str, Any]:
    end = time.monotonic() + seconds
    asked = phases.asked(writers)
    probes: dict[str, Callable[[], Awaitable[httpx.Response]]] = {
        name: lambda path=path: client.get(path) for name, path in PROBES.items()
    }
    probes["search"] = lambda: client.post(
        "/api/dartboard/retrieve", json={"query": next(asked), "collection": NAME}
    )
    taken: dict[str, list[float]] = {name: [] for name in (*probes, "write")}
    statuses: dict[str, Counter[int]] = {name: Counter() for name in taken}

    async def again(name: str, send: Callable[[], Awaitable[httpx.Response]], pause: float) -> None:
        while time.monotonic() < end:
            began = time.monotonic()
            status = (await send()).status_code
            statuses[name][status] += 1
            if status == 200:
                taken[name].append(time.monotonic() - began)
            await asyncio.sleep(_REFUSED_PAUSE if status == 429 else pause)

    def writer(number: int) -> Callable[[], Awaitable[httpx.Response]]:
        rows = iter(range(number * 1_000, number * 1_000 + 1_000_000, UPLOAD))
        return lambda: _write(client, _upload(f"writer {number}", range(at := next(rows), at + UPLOAD)))

    await asyncio.gather(
        *(again(name, send, _PAUSE) for name, send in probes.items()),
        *(again("write", writer(number), 0.0) for number in range(writers)),
    )
    return {
        name: {"statuses": {str(key): count for key, count in sorted(statuses[name].items())}}
        | {"ms": percentiles(taken[name])}
        for name in taken
    }


async def _write(client: httpx.AsyncClient, body: bytes) -> httpx.Response:
    headers = {"content-type": "application/x-ndjson"}
    return await client.post(f"/api/dartboard/collections/{NAME}/documents", content=body, headers=headers)


def _upload(name: str, rows: range) -> bytes:
    lines = (
        json.dumps({"id": f"{name} {row}", "text": f"{TEXTS[row % len(TEXTS)]} Seen in run {row} of {name}."})
        for row in rows
    )
    return "\n".join(lines).encode()


TEXTS = [text for text, _, _ in passages(2_000)]


if __name__ == "__main__":
    main()
