"""Two nodes for the whole room, started once; tests may kill what works there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dartboard.cluster import connect
from dartboard.embeddings import default_model
from tests.cluster.two_nodes import LOOPBACK


class Nodes:
    """The cluster's address, and the processes of its nodes by the id of their parent, the raylet."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.raylets: list[int] = []
        self.address = ""
        self._hear()

    def add(self) -> None:
        self._process.stdin.write("add\n")
        self._process.stdin.flush()
        self._hear()

    def workers(self, title: str, raylet: int | None = None) -> list[int]:
        """Processes that work on something of that name now."""
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdecimal():
                try:
                    parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                    command = (place / "cmdline").read_text()
                except (OSError, ValueError):
                    continue
                if parent in ([raylet] if raylet else self.raylets) and command.startswith(f"ray::{title}"):
                    found.append(int(place.name))
        return sorted(found)

    def kill_worker(self, title: str) -> int:
        """Kill a process while it works on something of that name."""
        ends = time.monotonic() + 30
        while time.monotonic() < ends:
            for process in self.workers(title):
                os.kill(process, signal.SIGKILL)
                return process
        raise AssertionError(f"nothing works on {title}")

    def kill_last_node(self) -> None:
        """As a machine that loses its power: its raylet and its workers at once."""
        raylet = self.raylets.pop()
        for process in (raylet, *self.workers("", raylet)):
            os.kill(process, signal.SIGKILL)

    def _hear(self) -> None:
        for line in self._process.stdout:
            if line.startswith("nodes "):
                told = json.loads(line.removeprefix("nodes "))
                self.address = told["address"]
                self.raylets += told["raylets"]
                return
        raise AssertionError("the nodes did not start")


@pytest.fixture(scope="package")
def light(tmp_path_factory):
    """What the environment of a process that starts others of Ray's has to say, so that each starts soon.

    They are some dozens, and each loads jsonschema. Where other packages brought one along that knows the
    addresses of RFC 3987, that takes three quarters of a start, for its grammars; Ray checks no addresses.
    """
    folder = tmp_path_factory.mktemp("light")
    (folder / "rfc3987_syntax.py").write_text('raise ImportError("left out")\n')
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="package")
def nodes(light):
    pytest.importorskip("ray")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.two_nodes", str(default_model().threads)],
        env={**os.environ, **light},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ) as process:
        try:
            yield Nodes(process)
        finally:
            process.stdin.close()
            process.wait(60)


@pytest.fixture(scope="package")
def cluster(nodes):
    """The one connection of this process: whoever connects again is given this one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LOOPBACK.items():
            patch.setenv(name, value)
        from ray._private import ray_constants

        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)  # where Ray was imported before
        with connect(nodes.address) as connected:
            yield connected


@pytest.fixture
def whole(nodes, cluster):
    """The cluster with both its nodes."""
    while len(nodes.raylets) < 2:
        nodes.add()
    return nodes


@pytest.fixture
def docs(tmp_path):
    """Some two hundred short files."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(120):
        words = " ".join(
            f"broker {number * step} keeps offset {number + step}" for step in range(1, 9 + number % 7)
        )
        (folder / f"{number:03d}.txt").write_text(f"Rule {number}. {words}.")
    return folder
