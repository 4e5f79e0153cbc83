"""Processor time of one request to the service, and where it goes; write JSON and a flame graph.

    python benchmarks/request.py [--beside CHECKOUT] [--rounds N] [--flame FILE]

A ``dartboard serve`` on the demo corpus (150 passages, hybrid retrieval), one client, one request after the
other. *Cached* asks a few questions again and again, so their vectors are in the service's cache; *new* asks
each question once; *health* is ``GET /healthz``, what HTTP costs without a search. Processor time is that of
the server's process, and of its event loop by itself. A round is 500 requests; the median of the rounds is
written, and with ``--beside`` the rounds of another checkout alternate with those of this one.

``--flame`` lets py-spy (``pip install py-spy``) draw the cached requests of this checkout as an SVG.
"""

import argparse
import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import httpx

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its parts

from load_parts import servers  # noqa: E402
from load_parts.corpus import questions  # noqa: E402

CACHED = (
    "Why are our consumers falling behind?",
    "How do I replay messages?",
    "What happens when a broker dies?",
    "How are keys chosen?",
    "Why is the disk full?",
)
REQUESTS = 500
KINDS = ("cached", "new", "health")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with this version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flame", type=Path, metavar="FILE", help="draw a flame graph")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "request.json")
    options = parser.parse_args()
    checkouts = {"now": servers.ROOT}
    if options.beside:
        checkouts["before"] = options.beside.resolve()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
    for _ in range(options.rounds):
        for name, root in checkouts.items():
            rows[name].append(measured(root))
    found = {
        "setting": {
            "measured": datetime.now(UTC).date().isoformat(),
            "rounds": options.rounds,
            "commits": {name: _commit(root) for name, root in checkouts.items()},
        },
        **{name: _medians(listed) for name, listed in rows.items()},
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    if options.flame:
        draw(options.flame)


def measured(root: Path) -> dict[str, Any]:
    """One server: milliseconds of processor time a request by kind, and of the stages of a search."""
    with _asking(root) as (server, ask, client):
        new = iter(questions(2 * REQUESTS, seed=3))
        cached = itertools.cycle(CACHED)
        work: dict[str, Callable[[], Any]] = {
            "cached": lambda: ask(next(cached)),
            "new": lambda: ask(next(new)),
            "health": lambda: client.get("/healthz").raise_for_status(),
        }
        found: dict[str, Any] = {}
        for kind in KINDS:
            before, loop = server.cpu_seconds(), server.loop_seconds()
            for _ in range(REQUESTS):
                work[kind]()
            found[kind] = {
                "cpu_ms": 1000 * (server.cpu_seconds() - before) / REQUESTS,
                "event_loop_ms": 1000 * (server.loop_seconds() - loop) / REQUESTS,
            }
        stages = [ask(next(cached), explain=True)["seconds"] for _ in range(50)]
        names = dict.fromkeys(name for stage in stages for name in stage)
        found["stages_ms"] = {name: 1000 * median(stage.get(name, 0.0) for stage in stages) for name in names}
        return found


def draw(path: Path) -> None:
    """A flame graph of cached requests, by py-spy: as wide as the share of time with the interpreter."""
    with _asking(servers.ROOT) as (server, ask, _):
        spy_command = shutil.which("py-spy") or str(Path(sys.executable).with_name("py-spy"))
        command = [spy_command, "record", "--gil", "--rate", "250", "--format", "flamegraph"]
        command += ["--pid", str(server.process.pid), "--output", str(path), "--duration", "20"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as spy:
            for question in itertools.cycle(CACHED):
                ask(question)
                if spy.poll() is not None:
                    break
        if spy.returncode:
            sys.exit("py-spy could not look at the server: it may need to run as root")
    # Its title is the command, with paths of this machine.
    path.write_text(re.sub(r"[^<>]*py-spy record[^<>]*", "Requests with cached vectors", path.read_text()))


@contextmanager
def _asking(root: Path) -> Iterator[tuple[servers.Server, Callable[..., Any], httpx.Client]]:
    """A server whose cache holds the vectors of ``CACHED``, a function that asks it, and a client."""
    with (
        tempfile.TemporaryDirectory() as home,
        servers.playground(Path(home), root=root) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60) as client,
    ):

        def ask(question: str, **options: Any) -> Any:
            reply = client.post(server.path, json={"query": question, **options})
            return reply.raise_for_status().json()

        for question in CACHED * 20:
            ask(question)
        yield server, ask, client


def _commit(root: Path) -> str:
    asked = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Row by row, number by number."""
    first = rows[0]
    return {
        name: _medians([row[name] for row in rows])
        if isinstance(value, dict)
        else round(median(row[name] for row in rows), 2)
        for name, value in first.items()
    }


if __name__ == "__main__":
    main()
