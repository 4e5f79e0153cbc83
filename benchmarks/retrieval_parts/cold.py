"""A search from the command line: a new process that imports, opens, loads the model, searches and prints.

The index of 5,000 chunks is made once, with the default model's fingerprint and synthetic vectors: what they
say does not change the time. The operating system may have the files in memory, as it has after a first run.
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


def measure(*, quick: bool) -> dict[str, Any]:
    count, rounds = (500, 2) if quick else (5_000, 12)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cold.dartboard")
        _filled(path, count)
        _run(path, QUERIES[0])  # compiles what Python keeps
        taken = []
        for number in range(rounds):
            taken.append(_run(path, QUERIES[number % len(QUERIES)]))
            say(f"cold: {taken[-1][0]:.2f} s")
    wall, processor = ([float(each[at]) for each in taken] for at in (0, 1))
    return {
        "chunks": count,
        "runs": rounds,
        "wall_seconds": round(statistics.median(wall), 3),
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


def _run(path: str, query: str) -> tuple[float, float]:
    """Seconds on the clock and of the processor, of one process from start to end."""
    command = [sys.executable, "-m", "dartboard", "search", query, "--store", path]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    shown = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode or "1. " not in shown:
        sys.exit(f"the search failed: {shown}")
    return wall, used.ru_utime + used.ru_stime
