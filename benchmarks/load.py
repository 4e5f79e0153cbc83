"""Put the service under load, beside the service that tutorials build; write JSON.

    python benchmarks/load.py [--servers dartboard hybrid processes plain] [--soak SECONDS] [--scale X]
    python benchmarks/load.py --servers hybrid --beside CHECKOUT --rounds 3 --out FILE

Loopback only, and it ends by itself. A real ``dartboard serve`` answers over 100,000 passages (made once,
kept with temporary files), found by vectors alone as the plain service does, and as ``hybrid`` by words too,
which is the default for an index; ``processes`` is the same from two processes. Requests leave at drawn
times; latency counts from when they were due. Phases: calm (5 a second), the target (100 a second), capacity
(8 clients, one question after the other), overload (twice the capacity), calm again, and with ``--soak`` half
the capacity for long. ``--scale .2`` is a short look.

With ``--beside``, the capacity of this version and of the one in another checkout (``git worktree add``) is
measured in turns, over the same index, and their ratio is printed.

The client runs beside the servers on the same cores, so run it when nothing else does.
"""

import argparse
import functools
import json
import os
import signal
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its parts

from load_parts import phases, servers  # noqa: E402
from load_parts.corpus import HOT, SHARE_REPEATED, prepared  # noqa: E402

FLAGS = {
    "dartboard": ("--retriever", "dense"),
    "hybrid": ("--retriever", "hybrid"),
    "processes": ("--retriever", "hybrid", "--processes", "2"),
}
SERVERS = (*FLAGS, "plain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--servers", nargs="+", choices=SERVERS, default=list(SERVERS))
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--soak-only", action="store_true")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument(
        "--serve", nargs="+", default=[], metavar="FLAG", help="more of dartboard serve's flags, without --"
    )
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="compare with this version")
    parser.add_argument("--rounds", type=int, default=3, help="with --beside: turns of each version")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "load.json")
    options = parser.parse_args()
    if options.beside:
        if not (options.beside / "dartboard" / "__init__.py").exists():
            parser.error(f"{options.beside} is no checkout of dartboard: make one with git worktree add")
        if options.out == parser.get_default("out") or not set(options.servers) & set(FLAGS):
            parser.error(f"--beside needs --out FILE, and --servers {' or '.join(FLAGS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are stopped on the way out
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    folder = prepared(options.chunks)
    if options.beside:
        for name in set(options.servers) & set(FLAGS):
            found[f"{name} beside"] = _beside(name, folder, options)
        options.out.write_text(json.dumps(found, indent=1) + "\n")
        return
    found["setting"] = _setting(options)
    for name in options.servers:
        print(f"== {name}", file=sys.stderr, flush=True)
        found[name] = found.get(name, {}) | _measured(name, folder, options)
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def _measured(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    if name == "plain":
        return _plain(folder, options.scale)
    flags = [f"--{flag}" if not flag[0].isdigit() else flag for flag in options.serve]
    with servers.dartboard(folder, *FLAGS[name], *flags) as server:
        found: dict[str, Any] = {}
        if not options.soak_only:
            found = phases.run(lambda: phases.measured(server, scale=options.scale))
        if options.soak and name == "dartboard":
            rate = _half_capacity(found, options.out)
            soak = phases.run(lambda: phases.soak(server, options.soak, rate))
            found["soak"] = {"measured": datetime.now(UTC).date().isoformat(), **soak}
    return found


def _beside(name: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Capacity and processor time of two versions, in turns; the ratios are those of the medians."""
    rows: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
    for _ in range(options.rounds):
        for version, root in (("before", options.beside.resolve()), ("now", servers.ROOT)):
            with servers.dartboard(folder, *FLAGS[name], root=root) as server:
                one = functools.partial(phases.measured, server, ("capacity",), scale=options.scale)
                rows[version].append(phases.run(one)["capacity"])

    def ratio(field: str) -> float:
        before, now = (statistics.median(row[field] for row in rows[version]) for version in rows)
        return round(now / before, 3)

    found = {
        "served": ratio("served_a_second"),
        "cpu": ratio("cpu_ms_a_request"),
        "setting": _setting(options),
        **rows,
    }
    print(f"{name}: {found['served']:.2f} times as many a second, {found['cpu']:.2f} of the processor time")
    return found


def _plain(folder: Path, scale: float) -> dict[str, Any]:
    """It takes in whatever comes, and is busy long after its clients left: a new process for each phase."""
    found: dict[str, Any] = {}
    for names in phases.APART:
        with servers.plain(folder) as server:
            found = phases.run(functools.partial(phases.measured, server, names, scale=scale, known=found))
    return {name: found[name] for name in phases.PHASES}


def _half_capacity(found: dict[str, Any], out: Path) -> float:
    known = found or json.loads(out.read_text())["dartboard"]
    return float(round(known["capacity"]["served_a_second"] / 2, 1))


def _setting(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "chunks": options.chunks,
        "cores": len(os.sched_getaffinity(0)),
        "scale": options.scale,
        "serve": options.serve,
        "share_repeated": SHARE_REPEATED,
        "hot_questions": HOT,
        "load_average_before": round(os.getloadavg()[0], 2),
        "measured": datetime.now(UTC).date().isoformat(),
    }


if __name__ == "__main__":
    main()
