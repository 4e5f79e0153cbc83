"""``dartboard serve --processes 2``: both answer, one is replaced, all end, nobody writes."""

import json
import os
import re
import shutil
import signal
import socket
import threading
import urllib.error
import urllib.request

import pytest

from dartboard.cli import main, serve_processes
from tests.cli.running import PATIENCE, start
from tests.waiting import wait_until


def answer(url: str, body: dict | None = None, method: str | None = None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def pids_in(line: str) -> list[int]:
    return [int(pid) for pid in re.search(r"\(([\d, ]+)\)", line).group(1).split(", ")]


@pytest.fixture
def folder(tmp_path, monkeypatch, demo_vectors):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demo_vectors, tmp_path / "cache")
    return tmp_path


def test_two_processes_answer_are_replaced_and_end(folder):
    process = start("serve", "--port", "0", "--processes", "2", "--rate", "0", cache=folder / "cache")
    log: list[dict] = []
    try:
        lines = [process.stdout.readline()]
        while "processes" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert process.poll() is None, process.stderr.read()
        reading = threading.Thread(target=lambda: log.extend(map(json.loads, process.stderr)), daemon=True)
        reading.start()
        address = re.search(r"http://\S+:\d+", lines[0]).group()
        first = pids_in(lines[-1])
        assert len(set(first)) == 2 and process.pid not in first

        def both_answer(pids):
            assert answer(f"{address}/readyz") == (200, {"status": "ready"})
            return pids <= {line["pid"] for line in log if line.get("route") == "/readyz"}

        wait_until(lambda: both_answer(set(first)))
        assert answer(f"{address}/api/dartboard/retrieve", {"query": "why slow?"})[1]["results"]

        os.kill(first[0], signal.SIGKILL)
        wait_until(lambda: any("is replaced" in line.get("message", "") for line in log))
        complete = "Application startup complete."
        wait_until(lambda: sum(line.get("message") == complete for line in log) == 3)
        (new,) = {line["pid"] for line in log if line.get("message") == complete} - set(first)
        wait_until(lambda: both_answer({new}))

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        reading.join(PATIENCE)
        finished = {line["pid"] for line in log if "Finished server" in line.get("message", "")}
        assert finished == {first[1], new}
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)
        process.stdout.close()
        process.stderr.close()


def test_a_store_that_is_none_is_said_at_once(folder, capsys):
    (folder / "notes.txt").write_text("no store, but text")
    assert main(["serve", "--port", "0", "--store", "notes.txt", "--processes", "2"]) == 1
    shown = capsys.readouterr()
    assert "notes.txt" in shown.err and "Traceback" not in shown.err and shown.out == ""


def test_processes_that_keep_ending_end_the_service(folder, monkeypatch, capsys):
    monkeypatch.setattr(serve_processes, "MOST_ENDS", 0)
    monkeypatch.setattr(serve_processes.Supervisor, "_configure_log", lambda self: None)
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *words, **_: said.append(" ".join(map(str, words))))

    def kill_one():
        wait_until(lambda: any("processes (" in line for line in said))
        os.kill(pids_in(said[-1])[0], signal.SIGKILL)

    killing = threading.Thread(target=kill_one)
    killing.start()
    before = signal.getsignal(signal.SIGTERM)
    assert main(["serve", "--port", "0", "--processes", "2"]) == 1
    killing.join()
    assert "1 processes of the service ended within 60 s, the last one with code -9" in said[-1]
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_store_of_one_process_is_refused(folder, capsys):
    assert main(["serve", "--store", "memory://", "--processes", "2"]) == 1
    assert "memory:// belongs to one process" in capsys.readouterr().err


def test_a_second_ctrl_c_does_not_wait(folder):
    process = start(
        *("serve", "--port", "0", "--processes", "2"), cache=folder / "cache", DARTBOARD_SERVE_GRACE="3600"
    )
    log: list[dict] = []
    try:
        lines = [process.stdout.readline()]
        while "processes" not in lines[-1]:
            lines.append(process.stdout.readline())
        reading = threading.Thread(target=lambda: log.extend(map(json.loads, process.stderr)), daemon=True)
        reading.start()

        def said_by_both(words):
            return [line.get("message") for line in log].count(words) == 2

        wait_until(lambda: said_by_both("Application startup complete."))
        port = int(re.search(r"http://\S+:(\d+)", lines[0]).group(1))
        head = "POST /api/dartboard/retrieve HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        with socket.create_connection(("127.0.0.1", port)) as waiting:
            waiting.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())  # and no more: it never ends
            process.send_signal(signal.SIGINT)
            wait_until(lambda: said_by_both("Shutting down"))
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait(PATIENCE)
        reading.join(PATIENCE)
        process.stdout.close()
        process.stderr.close()


def test_more_than_the_machine_can_do_is_refused(folder, capsys):
    assert main(["serve", "--processes", "10000"]) == 1
    assert "processes must be at most" in capsys.readouterr().err
