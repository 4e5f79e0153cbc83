"""The whole chain through an endpoint that fails often: nothing lost, spend exact, any kill survived."""

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from pathlib import Path
from threading import Event

import pytest

from dartboard.llm.journal import Journal
from dartboard.llm.usage import Usage
from tests.mining.faulty_run import door_judge, judge_all, run
from tests.mining.faulty_server import FAULTS, FaultyServer, door_tasks

FULL = os.environ.get("DARTBOARD_FAULTS") == "full"
CALLS, KILLS = (1000, 50) if FULL else (300, 30)
PATIENCE = 300


def test_a_thousand_calls_with_faults_lose_nothing_and_count_every_token(tmp_path):
    tasks = door_tasks(1000)
    with FaultyServer(seed=3, faults=0.2, lies=0.05, babble=0.01) as server, door_judge(server.url) as judge:
        with Journal.open(tmp_path / "journal.jsonl") as journal:
            judged = list(zip(tasks, judge_all(judge, tasks, journal), strict=True))
            spent = journal.usage
        assert all(server.happened[kind] > 10 for kind in FAULTS), server.happened
        assert server.busiest > 1
        expected = Usage(
            calls=server.books["delivered"],
            input_tokens=server.books["prompt_tokens"],
            output_tokens=server.books["completion_tokens"],
            unanswered=server.books["lost"],
        )
        assert spent == expected
        check_labels(server, judged)


def check_labels(server, judged):
    labels = Counter(verdict.label for _, verdict in judged)
    assert min(labels["YES"], labels["NO"], labels["UNSURE"]) > 20
    for (case, context), verdict in judged:
        if verdict.label == "UNSURE":
            assert "stands in no context" in verdict.reason or "cannot be read" in verdict.reason
        else:
            truth = f"The code of {case.id.replace('-', ' ')} is" in context.text
            assert verdict.label == ("YES" if truth else "NO")
    assert len(server.bodies) > 1000


def killed_at(server: FaultyServer, folder: Path, point: int, by: int = signal.SIGKILL) -> int | None:
    """The exit code of a run whose process gets a signal when the server has seen so many more requests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.mining.faulty_run"])
    child = context.Process(target=run, args=(server.url, folder, CALLS))
    start, started = len(server.bodies), Event()

    def kill(count: int) -> None:
        if count - start == point and started.wait(PATIENCE):
            os.kill(child.pid, by)

    server.on_request = kill
    child.start()
    started.set()
    child.join(PATIENCE)
    server.on_request = lambda count: None
    return child.exitcode


def readable(line: str) -> str | None:
    """The key of a whole line with an answer."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return None if entry["trouble"] else entry["key"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_kill_9_anywhere_resumes_to_the_same_bytes(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    options = {"seed": 5, "faults": 0.2, "lies": 0.05, "babble": 0.01}
    with FaultyServer(**options) as server:
        undisturbed.mkdir()
        run(server.url, undisturbed, CALLS)
    points = random.Random(11)
    with FaultyServer(**options) as server:
        killed.mkdir()
        codes = [killed_at(server, killed, points.randint(1, 3 * CALLS // (2 * KILLS))) for _ in range(KILLS)]
        assert codes == [-signal.SIGKILL] * KILLS
        run(server.url, killed, CALLS)
        with Journal.open(killed / "journal.jsonl", resume=True) as journal:
            known, spent = len(journal), journal.usage
    assert (killed / "verdicts.jsonl").read_bytes() == (undisturbed / "verdicts.jsonl").read_bytes()
    assert known >= CALLS
    lines = (killed / "journal.jsonl").read_text().splitlines()
    assert set(Counter(readable(line) for line in lines if readable(line)).values()) == {1}
    repeated = server.books["delivered"] - spent.calls
    assert 0 <= repeated <= 2 * 8 * KILLS


def test_ctrl_c_loses_nothing_that_was_paid_for(tmp_path):
    with FaultyServer(seed=6, faults=0.2) as server:
        codes = [killed_at(server, tmp_path, point, signal.SIGINT) for point in (30, 50)]
        assert codes == [1, 1]
        assert not (tmp_path / "verdicts.jsonl").exists()
        run(server.url, tmp_path, CALLS)
        with Journal.open(tmp_path / "journal.jsonl", resume=True) as journal:
            assert len(journal) >= CALLS
            assert journal.usage.calls == server.books["delivered"]
            assert journal.usage.unanswered == server.books["lost"]
    assert len((tmp_path / "verdicts.jsonl").read_text().splitlines()) == CALLS
