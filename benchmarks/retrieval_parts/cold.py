"""New processes: a search from the command line, and imports of the package.

A search imports, opens the index, loads the model, searches and prints. The index of 5,000 chunks is made
once, with the default model's fingerprint and synthetic vectors: what they say does not change the time. The
operating system may have the files in memory, and Python its bytecode, as they have after a first run.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import passages, say
from retrieval_parts.search import made_up_texts

from dartboard.embeddings import default_model
from dartboard.engine import Engine
from dartboard.stores import Record

QUERIES = ("how is w120 rotated by w340", "which w77 leads w900", "what fills w51", "who may w210 a w4000")


IMPORTS = ("import dartboard", "from dartboard import select", "import dartboard.engine")


def measure(*, quick: bool) -> dict[str, Any]:
    count, rounds = (500, 2) if quick else (5_000, 12)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cold.dartboard")
        _filled(path, count)
        environment = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        for line in IMPORTS:
            _run(["-c", line], environment)  # compiles what Python keeps
        _run(_search(path, 0), environment, "1. ")
        taken: list[tuple[float, float]] = []
        imports: dict[str, list[tuple[float, float]]] = {line: [] for line in IMPORTS}
        for number in range(rounds):
            taken.append(_run(_search(path, number), environment, "1. "))
            for line in IMPORTS:
                imports[line].append(_run(["-c", line], environment))
            say(f"cold: {taken[-1][0]:.2f} s")
    return {
        "chunks": count,
        "runs": rounds,
        **_summary(taken),
        "imports": {line: _summary(runs) for line, runs in imports.items()},
    }


def _summary(taken: list[tuple[float, float]]) -> dict[str, float]:
    wall, processor = ([each[at] for each in taken] for at in (0, 1))
    return {
        "wall_seconds": round(statistics.median(wall), 3),
        "wall_seconds_fastest": round(min(wall), 3),
        "wall_seconds_slowest": round(max(wall), 3),
        "processor_seconds": round(statistics.median(processor), 3),
    }


def _filled(path: str, count: int) -> None:
    vectors = np.concatenate(list(passages(count)))
    with Engine.open(path, model=default_model()) as engine:
        engine.create().upsert(
            [
                Record(f"{at:05d}", text, vector, {"source": f"{at // 10}.txt"})
                for at, (text, vector) in enumerate(zip(made_up_texts(count), vectors, strict=True))
            ]
        )


def _search(path: str, number: int) -> list[str]:
    return ["-m", "dartboard", "search", QUERIES[number % len(QUERIES)], "--store", path]


def _run(arguments: list[str], environment: dict[str, str], expected: str = "") -> tuple[float, float]:
    """Seconds on the clock and of the processor, of one process of Python from start to end."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    shown = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode or expected not in shown:
        sys.exit(f"{' '.join(arguments)} failed: {shown}")
    return wall, used.ru_utime + used.ru_stime
