"""Servers as processes of their own: started on a free port, measured from outside, always stopped."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).parents[2]
_PATIENCE = 300.0


@dataclass(frozen=True)
class Server:
    """A running server: a process, and its children if it has any."""

    port: int
    path: str
    process: psutil.Process

    def megabytes(self) -> float:
        """Memory that is really held."""
        return sum(one.memory_info().rss for one in self._all()) / 2**20

    def own_megabytes(self) -> float:
        """Memory but for mapped files, whose pages count as held once they were looked at."""
        held = [one.memory_info() for one in self._all()]
        return sum(float(memory.rss - getattr(memory, "shared", 0)) for memory in held) / 2**20

    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        return float(sum(sum(one.cpu_times()[:2]) for one in self._all()))

    def _all(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]

    def loop_seconds(self) -> float:
        """Processor time of the thread that runs the event loop, the first of the process."""
        first = next(one for one in self.process.threads() if one.id == self.process.pid)
        return float(first.user_time + first.system_time)


@contextmanager
def dartboard(folder: Path, *options: str, root: Path = ROOT) -> Iterator[Server]:
    """``dartboard serve`` of a checkout, with its defaults, over the corpus; ``options`` are more flags."""
    port = _free_port()
    command = [
        *(sys.executable, "-m", "dartboard", "serve", "--no-demo", "--port", str(port)),
        *("--store", str(folder / "index.dartboard"), "--home", str(folder / "home"), *options),
    ]
    with _running(command, port, "/api/dartboard/retrieve", "/readyz", root) as server:
        yield server


@contextmanager
def playground(home: Path, *, root: Path = ROOT) -> Iterator[Server]:
    """``dartboard serve`` of a checkout as a newcomer starts it: on its demo corpus."""
    port = _free_port()
    command = [sys.executable, "-m", "dartboard", "serve", "--port", str(port), "--home", str(home)]
    command += ["--store", str(home / "none.dartboard")]
    with _running(command, port, "/api/dartboard/retrieve", "/readyz", root) as server:
        yield server


@contextmanager
def plain(folder: Path) -> Iterator[Server]:
    """The tutorials' service over the same corpus."""
    port = _free_port()
    command = [sys.executable, str(Path(__file__).with_name("plain_app.py")), str(folder), str(port)]
    with _running(command, port, "/retrieve", "/openapi.json") as server:
        yield server


@contextmanager
def _running(command: list[str], port: int, path: str, ready: str, root: Path = ROOT) -> Iterator[Server]:
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=root, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ.copy()
        )
        try:
            _await(process, f"http://127.0.0.1:{port}{ready}", log)
            yield Server(port, path, psutil.Process(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(
    process: "subprocess.Popen[bytes]", url: str, log: "tempfile._TemporaryFileWrapper[bytes]"
) -> None:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            log.seek(0)
            sys.exit(f"the server ended by itself:\n{log.read().decode()[-4000:]}")
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    sys.exit(f"the server did not come up within {_PATIENCE:.0f} s")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
