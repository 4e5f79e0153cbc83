"""A child forked while eight threads are at work does its own work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

SCRIPT = '''
import multiprocessing, os, sys, threading, warnings
import numpy as np
from dartboard import select
from dartboard import blas

warnings.simplefilter("ignore")  # Python 3.12 warns of every fork beside threads
how, count, children = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
GUARD = 120
rng = np.random.default_rng(1)
rows = rng.standard_normal((count, 64)).astype(np.float32)
query = rng.standard_normal(64)
texts = [f"Passage {i} says what happened on day {i % 30} in town {rng.integers(99)}." for i in range(count)]

def chosen():
    return select(rows, query, 5, texts=texts).indices.tolist()

def child(want):
    with blas._setting:  # whoever held it in the parent is not here
        pass
    os._exit(0 if chosen() == chosen() == want else 3)

def pre_fork(want):
    """As a server's master does: all workers first, then wait for them."""
    pids = []
    for _ in range(children):
        pid = os.fork()
        if not pid:
            import signal
            signal.alarm(GUARD)
            child(want)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]

def one_by_one(want):
    context = multiprocessing.get_context("fork")
    codes = []
    for _ in range(children):
        process = context.Process(target=child, args=(want,))
        process.start()
        process.join(GUARD)
        if process.is_alive():
            process.kill()
            process.join()
        codes.append(process.exitcode)
    return codes

want = chosen()
stop, busy = threading.Event(), threading.Barrier(9)

def work():
    chosen()
    busy.wait()
    while not stop.is_set():
        chosen()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
busy.wait()
try:
    codes = pre_fork(want) if how == "pre-fork" else one_by_one(want)
finally:
    stop.set()
    for thread in threads:
        thread.join()
print(codes, chosen() == want)
'''


def forked(how: str, count: int, children: int = 4) -> str:
    root = str(Path(__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, how, str(count), str(children)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.strip()


@pytest.mark.parametrize("count", [100, 400])
@pytest.mark.parametrize("how", ["pre-fork", "multiprocessing"])
def test_children_select_while_eight_threads_do(how, count):
    assert forked(how, count) == "[0, 0, 0, 0] True"
