"""Peak memory for hostile files and requests, above what the idle process takes; prints a table.

    python benchmarks/hostile_memory.py [NAME…]

Every file goes through ``dartboard index`` in a process of its own, every request to one running
``dartboard serve``; both may take no more than 6 GB of address space, so that a bomb cannot harm the machine.
A file that takes more than ``PATIENCE`` seconds of processor time is stopped. Writes
``benchmarks/results/hostile_memory.json``; names (or their beginnings) as arguments measure these inputs
anew.
"""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, this file finds its neighbours

from benchmarks.hostile_inputs import FILES, REQUESTS, Call

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "hostile_memory.json"
ADDRESSES = 6 * 2**30
PATIENCE = 30.0
LIMIT = 512
"""Megabytes above the idle process that nothing should exceed."""


def limited() -> None:
    """Run in the child before the program: a bomb ends in a MemoryError."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def megabytes(pid: int, name: str) -> int:
    """A line of ``/proc/PID/status``: VmRSS is what is held, VmHWM the most that ever was."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return round(int(line.split()[1]) / 1024)
    raise RuntimeError(f"process {pid} has no {name}")


def processor_time(pid: int) -> float:
    """Seconds that a process has computed: how busy the machine is does not count."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def indexed(folder: Path, store: Path) -> dict[str, Any]:
    """Index a folder in a process of its own: its peak, and what it said."""
    command = [sys.executable, "-m", "dartboard", "index", str(folder), "--store", str(store), "--json"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err, preexec_fn=limited)
        peak, seconds, stopped = 0, 0.0, False
        while process.poll() is None:
            try:
                peak = max(peak, megabytes(process.pid, "VmHWM"))
            except (RuntimeError, OSError):
                continue  # it has just ended
            if (seconds := processor_time(process.pid)) > PATIENCE and not stopped:
                stopped = True
                process.send_signal(signal.SIGKILL)
            time.sleep(0.02)
        out.seek(0)
        err.seek(0)
        if stopped:
            told = f"stopped after {PATIENCE:.0f} s of processor time"
        elif process.returncode:
            told = f"ended with {process.returncode}: {err.read().decode()[-300:]}"
        else:
            told = _told(out.read().decode())
    return {"peak": peak, "seconds": round(seconds, 1), "outcome": told}


def _told(said: str) -> str:
    report = json.loads(said)
    lines = [problem["reason"] for problem in report["problems"]]
    return "; ".join([f"{report['chunks']:,} passages", *lines[:1]])


def measure_files(names: list[str], results: dict[str, Any]) -> None:
    """Each file beside a good one, which has to be indexed whatever the other does."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        good = place / "good"
        good.mkdir()
        (good / "good.txt").write_text("Consumers fall behind when messages take long to handle.\n")
        idle = indexed(good, place / "idle.dartboard")["peak"]
        results["idle"]["index"] = idle
        for name in names:
            here = place / name.replace(".", "-")
            here.mkdir()
            (here / "good.txt").write_text("Consumers fall behind.\n")
            (here / name).write_bytes(FILES[name]())
            size = (here / name).stat().st_size
            row = indexed(here, place / f"{here.name}.dartboard")
            row = {"bytes": size, "above": row.pop("peak") - idle, **row}
            (here / name).unlink()
            results["files"][name] = row
            _show(name, row)


@contextmanager
def service(folder: Path) -> Iterator[tuple[int, int]]:
    """A real service: its process and its port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    command = [
        *(sys.executable, "-m", "dartboard", "serve", "--port", str(port), "--rate", "0"),
        *("--store", str(folder / "index.dartboard"), "--home", str(folder / "home")),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, preexec_fn=limited)
        try:
            _wait(process, port)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(600):
        if process.poll() is not None:
            sys.exit("the service ended by itself")
        try:
            if _sent(port, Call("GET /readyz", lambda: iter([])))[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit("the service did not come up")


def _sent(port: int, call: Call) -> tuple[int, str]:
    """Status and the first words of the answer."""
    method, _, path = call.path.rpartition(" ")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"content-type": call.kind, **dict(call.headers)}
    try:
        if method:
            connection.request(method, path)
        else:
            _stream(connection, path, call.body, headers)
        response = connection.getresponse()
        head = response.read(4000).decode(errors="replace")
        length = len(head)
        while block := response.read(1 << 20):
            length += len(block)
        return response.status, head if response.status != 200 else f"{length:,} bytes"
    finally:
        connection.close()


def _stream(
    connection: http.client.HTTPConnection,
    path: str,
    body: Callable[[], Iterator[bytes]],
    headers: dict[str, str],
) -> None:
    """Send the parts of a body as chunks; the service may answer before the last one."""
    connection.putrequest("POST", path)
    for name, value in {**headers, "transfer-encoding": "chunked"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for part in body():
            for start in range(0, len(part), 1 << 16):
                block = part[start : start + (1 << 16)]
                connection.send(b"%x\r\n%b\r\n" % (len(block), block))
        connection.send(b"0\r\n\r\n")
    except (BrokenPipeError, ConnectionResetError):
        pass


def _asked(port: int, call: Call) -> str:
    try:
        status, said = _sent(port, call)
    except (ConnectionError, http.client.HTTPException) as error:
        return f"{type(error).__name__}"
    if status == 200:
        return f"200, {said}"
    try:
        return f"{status}: {json.loads(said)['message']}"
    except (ValueError, KeyError):
        return f"{status}"


def measure_requests(names: list[str], results: dict[str, Any]) -> None:
    """All requests to one service, one after the other; before each, the mark of the peak is reset."""
    with tempfile.TemporaryDirectory() as folder, service(Path(folder)) as (pid, port):
        _prepare(port)
        time.sleep(3)
        idle = megabytes(pid, "VmRSS")
        results["idle"]["serve"] = idle
        for name in names:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
            began = time.monotonic()
            told = _asked(port, REQUESTS[name])
            seconds = round(time.monotonic() - began, 1)
            time.sleep(3)
            row = {
                "above": megabytes(pid, "VmHWM") - idle,
                "after": megabytes(pid, "VmRSS") - idle,
                "seconds": seconds,
                "outcome": told,
            }
            results["requests"][name] = row
            _show(name, row)


def _prepare(port: int) -> None:
    """A collection with some passages, one small request of each kind, and one after which memory is given
    back.
    """
    put = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    put.request("PUT", "/api/dartboard/collections/mine")
    put.getresponse().read()
    put.close()
    lines = b"".join(
        json.dumps({"id": f"known{at}", "text": f"Passage {at} has some word {at % 7} in it. " * 20}).encode()
        + b"\n"
        for at in range(300)
    )
    base = "/api/dartboard"
    for call in (
        Call(f"{base}/collections/mine/documents", lambda: iter([lines]), "application/x-ndjson"),
        Call(f"{base}/retrieve", lambda: iter([b'{"query": "word", "collection": "mine"}'])),
        Call(f"{base}/explore", lambda: iter([b'{"query": "word", "collection": "mine"}'])),
        Call(f"{base}/select", lambda: iter([b'{"query": [1, 0], "embeddings": [[1, 0], [0, 1]]}'])),
        Call("/v1/rerank", lambda: iter([b'{"query": "word", "documents": ["a word", "b"]}'])),
        Call(f"{base}/retrieve", lambda: iter([b'{"query": "%b"}' % (b"a " * 1_000_000)])),
    ):
        _asked(port, call)


def _show(name: str, row: dict[str, Any]) -> None:
    after = f"{row['after']:6}" if "after" in row else "     -"
    mark = "!" if row["above"] > LIMIT else " "
    print(
        f"{mark} {name:52} {row['above']:6} {after} {row['seconds']:7} s  {row['outcome'][:110]}", flush=True
    )


def table(results: dict[str, Any]) -> str:
    """Markdown: the highest peak of each kind of input, and the most that was left of one."""
    heads = ("kind", "inputs", "highest peak, MB above idle", "input with that peak", "most left afterwards")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for part, sign in (("files", "-"), ("requests", ":")):
        kinds: dict[str, dict[str, Any]] = {}
        for name, row in results[part].items():
            kinds.setdefault(name.split(sign)[0], {})[name] = row
        for kind, rows in kinds.items():
            highest = max(rows, key=lambda name: rows[name]["above"])
            left = max((row["after"] for row in rows.values() if "after" in row), default=None)
            shown = "the process ends" if left is None else f"{max(0, left)} MB"
            peak = max(0, rows[highest]["above"])
            lines.append(f"| {part}: {kind.lstrip('.')} | {len(rows)} | {peak} | {highest} | {shown} |")
    return "\n".join(lines)


def main(wanted: list[str]) -> None:
    """Measure all, or those whose names begin so; what was measured before is kept."""
    results: dict[str, Any] = {"idle": {}, "files": {}, "requests": {}}
    if wanted and RESULTS.exists():
        results |= json.loads(RESULTS.read_text())

    def chosen(names: dict[str, Any]) -> list[str]:
        return [name for name in names if not wanted or any(name.startswith(one) for one in wanted)]

    print(f"  {'input':52} {'above':>6} {'after':>6}   in MB")
    if files := chosen(FILES):
        measure_files(files, results)
    if requests := chosen(REQUESTS):
        measure_requests(requests, results)
    if not wanted or all(results.values()):
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    main(sys.argv[1:])
