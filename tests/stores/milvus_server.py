"""A real Milvus over gRPC for the tests: the server of milvus-lite in a process of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dartboard.errors import StoreUnavailableError
from dartboard.stores.milvus import MilvusStore

_SECONDS_TO_START = 300


class MilvusServer:
    """A server over one data folder; it can be killed and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(self.folder / "data")]
        command += ["--host", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ.copy())
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _SECONDS_TO_START
        while True:
            try:
                MilvusStore(self.url).close()
                return
            except StoreUnavailableError:
                if time.monotonic() > deadline or self._process is None or self._process.poll() is not None:
                    self.stop()
                    raise RuntimeError((self.folder / "server.log").read_text()) from None
                time.sleep(0.1)  # timing: between two looks

    def kill(self) -> None:
        """End it as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_shared: list[MilvusServer] = []
_users = 0


@pytest.fixture(scope="session")
def milvus_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    """One server for all test files that import this fixture; the last one to finish stops it."""
    global _users
    if not _shared:
        server = MilvusServer(tmp_path_factory.mktemp("milvus"))
        server.start()
        _shared.append(server)
    _users += 1
    try:
        yield _shared[0]
    finally:
        _users -= 1
        if not _users:
            _shared.pop().stop()


@pytest.fixture
def milvus_url(milvus_server: MilvusServer) -> Iterator[str]:
    """A server without collections of dartboard's."""
    yield milvus_server.url
    with MilvusStore(milvus_server.url) as store:
        for name in store.collections():
            store.drop(name)
