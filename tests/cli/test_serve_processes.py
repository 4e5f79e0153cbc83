"""``dartboard serve --processes 2``: both answer, one is replaced, all end, nobody writes."""

import json
import os
import re
import shutil
import signal
import threading
import urllib.error
import urllib.request

import pytest

from dartboard.cli import main
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


@pytest.fixture
def folder(tmp_path, monkeypatch, demo_vectors):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demo_vectors, tmp_path / "cache")
    return tmp_path


def test_two_processes_answer_count_together_are_replaced_and_end(folder):
    process = start("serve", "--port", "0", "--processes", "2", cache=folder / "cache")
    log: list[dict] = []
    try:
        lines = [process.stdout.readline()]
        while "processes" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert process.poll() is None, process.stderr.read()
        reading = threading.Thread(target=lambda: log.extend(map(json.loads, process.stderr)), daemon=True)
        reading.start()
        address = re.search(r"http://\S+:\d+", lines[0]).group()
        complete = "Application startup complete."

        def started() -> set[int]:
            return {line["pid"] for line in log if line.get("message") == complete}

        def answering() -> set[int]:
            assert answer(f"{address}/readyz")[0] == 200
            return {line["pid"] for line in log if line.get("route") == "/readyz"}

        wait_until(lambda: len(started()) == 2)
        first = started()
        assert process.pid not in first
        wait_until(lambda: first <= answering())
        assert answer(f"{address}/api/dartboard/retrieve", {"query": "why slow?"})[1]["results"]

        def counted() -> float:
            with urllib.request.urlopen(f"{address}/metrics", timeout=PATIENCE) as response:
                text = response.read().decode()
            return float(re.search(r"request_seconds_count\{[^}]*readyz[^}]*\} (\S+)", text).group(1))

        asked = sum(line.get("route") == "/readyz" for line in log)
        assert counted() == counted() == asked

        os.kill(min(first), signal.SIGKILL)
        wait_until(lambda: len(started()) == 3)
        wait_until(lambda: started() - first <= answering())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        reading.join(PATIENCE)
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


def test_a_store_of_one_process_is_refused(folder, capsys):
    assert main(["serve", "--store", "memory://", "--processes", "2"]) == 2
    assert "memory:// belongs to one process" in capsys.readouterr().err


def test_more_than_the_machine_can_do_is_refused(folder, capsys):
    assert main(["serve", "--processes", "10000"]) == 2
    assert "processes must be at most" in capsys.readouterr().err
