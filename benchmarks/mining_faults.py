"""An endpoint that fails often, and a run that is killed often: is anything lost, repeated or miscounted?

The server is that of the tests (``tests/mining/faulty_server.py``): over a real socket it answers, delays,
rate-limits, breaks off, drops connections, sends broken JSON and lies, on a seeded schedule, and keeps its
own books. First an undisturbed run of a thousand calls, then one whose process is killed (SIGKILL) at random
points and resumed.
"""

import json
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.mining.journaled_judge import JournaledJudge
from dartboard.mining.judge_runner import judge_many
from dartboard.mining.verdict_journal import Journal

FAULTS = 0.2
SCHEDULE = {"seed": 3, "faults": FAULTS, "lies": 0.05, "babble": 0.01}
CONCURRENCY = 8


def measure_faults() -> dict[str, Any]:
    """Both runs, at the size that the tests call full."""
    os.environ["DARTBOARD_FAULTS"] = "full"
    from tests.mining import test_faults as tests

    with tempfile.TemporaryDirectory() as name:
        return {
            "faults": FAULTS,
            "undisturbed": _undisturbed(Path(name), tests),
            "killed": _killed(Path(name), tests),
        }


def _undisturbed(folder: Path, tests: Any) -> dict[str, Any]:
    tasks = tests.door_tasks(tests.CALLS)
    started = time.perf_counter()
    with tests.FaultyServer(**SCHEDULE) as server, tests.door_judge(server.url) as judge:
        with Journal.open(folder / "undisturbed.jsonl") as journal:
            limiter = CallLimiter(CallLimits(concurrency=CONCURRENCY))
            judged = list(judge_many(JournaledJudge(judge, journal), tasks, limiter))
            spent = journal.usage
        books, happened, requests = dict(server.books), dict(server.happened), len(server.bodies)
    counted = (spent.calls, spent.input_tokens, spent.output_tokens, spent.unanswered)
    theirs = tuple(books[key] for key in ("delivered", "prompt_tokens", "completion_tokens", "lost"))
    return {
        "calls": len(tasks),
        "requests": requests,
        "happened": dict(sorted(happened.items())),
        "verdicts": dict(sorted(Counter(verdict.label for _, verdict in judged).items())),
        "missing": len(tasks) - len(judged),
        "tokens": spent.input_tokens + spent.output_tokens,
        "cost": spent.cost,
        "unanswered": spent.unanswered,
        "counted as the server did": counted == theirs,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _killed(folder: Path, tests: Any) -> dict[str, Any]:
    whole, killed = folder / "whole", folder / "killed"
    started = time.perf_counter()
    with tests.FaultyServer(**SCHEDULE) as server:
        whole.mkdir()
        tests.run(server.url, whole, tests.CALLS)
    points = random.Random(11)
    farthest = 3 * tests.CALLS // (2 * tests.KILLS)
    with tests.FaultyServer(**SCHEDULE) as server:
        killed.mkdir()
        codes = [tests.killed_at(server, killed, points.randint(1, farthest)) for _ in range(tests.KILLS)]
        tests.run(server.url, killed, tests.CALLS)
        with Journal.open(killed / "journal.jsonl", resume=True) as journal:
            known, spent = len(journal), journal.usage
    lines = (killed / "journal.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    keys = Counter(json.loads(line)["key"] for line in lines)
    same = (killed / "verdicts.jsonl").read_bytes() == (whole / "verdicts.jsonl").read_bytes()
    return {
        "calls": tests.CALLS,
        "kills": codes.count(-signal.SIGKILL),
        "verdicts": known,
        "kept twice": sum(count > 1 for count in keys.values()),
        "asked again": server.books["delivered"] - spent.calls,
        "at most": 2 * CONCURRENCY * tests.KILLS,
        "same bytes": same,
        "seconds": round(time.perf_counter() - started, 1),
    }
