"""``dartboard serve`` as a user runs it: what it prints, how it refuses, how it ends."""

import json
import logging
import re
import shutil
import signal
import socket
import threading
import urllib.request

import pytest

from dartboard.cli import main
from dartboard.cli.serve import listening
from dartboard.errors import ConfigError, install_command
from tests.cli.running import PATIENCE, run, start
from tests.waiting import wait_until


@pytest.fixture
def server(tmp_path, monkeypatch, demo_vectors):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demo_vectors, tmp_path / "cache")
    started = []

    def begin(*options):
        process = start("serve", "--port", "0", *options, cache=tmp_path / "cache")
        started.append(process)
        lines = [process.stdout.readline()]
        while "No key" not in lines[-1] and "described by" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert process.poll() is None, process.stderr.read()
        return process, lines, re.search(r"http://\S+:\d+", lines[0]).group()

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


def get(url: str):
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return response.status, response.read()


def post(url: str, body: dict):
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=PATIENCE) as response:
        return json.loads(response.read())


def test_serves_and_ends_when_told(server, tmp_path):
    process, lines, address = server()
    assert "collection 'demo'" in lines[0]
    assert f"playground  {address}/" in lines[1]
    assert get(f"{address}/readyz")[0] == 200
    assert b"<html" in get(f"{address}/")[1]
    assert post(f"{address}/api/dartboard/retrieve", {"query": "why slow?"})["results"]
    rest = process.stdout.readline()
    assert "There is no collection 'default' in index.dartboard yet" in rest
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    assert all(line["level"] == "info" for line in lines)
    assert [line["route"] for line in lines if "route" in line][:2] == ["/readyz", "/"]
    assert "why slow" not in log
    assert not (tmp_path / "index.dartboard").exists()


def test_finishes_what_is_running(server):
    process, _, address = server("--timeout", "60")
    found: list = []
    body = {"query": "why slow?", "reranker_type": "hybrid", "triage_k": 30}
    asking = threading.Thread(target=lambda: found.append(post(f"{address}/api/dartboard/retrieve", body)))
    asking.start()

    def at_work():
        assert asking.is_alive(), "answered before anybody saw it"
        return b'dartboard_work_running{work="pairs"} 1.0' in get(f"{address}/metrics")[1]

    wait_until(at_work)
    process.send_signal(signal.SIGINT)
    asking.join(PATIENCE)
    assert found and found[0]["results"]
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_port_in_use_is_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--port", str(taken.getsockname()[1]), cache=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--port" in done.stderr


def test_strangers_need_a_key(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "dartboard keys create" in capsys.readouterr().err


def test_a_store_that_is_none_is_said_at_once(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("no store, but text")
    assert main(["serve", "--port", "0", "--store", "notes.txt"]) == 1
    shown = capsys.readouterr()
    assert "notes.txt" in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--timeout", "0"], "timeout"), (["--timeout", "inf"], "timeout"), (["--port", "70000"], "port")],
)
def test_bad_settings(capsys, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *options]) == 2
    assert said in capsys.readouterr().err


def test_addresses():
    with listening("localhost", 0) as bound:
        assert bound.getsockname()[1] > 0
    with pytest.raises(ConfigError, match="no address of this machine"):
        listening("no such host.invalid", 0)
    with pytest.raises(ConfigError, match="cannot be had"):
        listening("192.0.2.1", 0)


def test_help_teaches(tmp_path):
    shown = run("serve", "--help", cache=tmp_path).stdout
    for words in ("dartboard serve --host 0.0.0.0 --keys", "[serve]", "DARTBOARD_SERVE_", "curl"):
        assert words in shown


@pytest.fixture
def loggers():
    """The command makes the log of the whole program its own; afterwards all is as before."""
    names = ("", "dartboard", "uvicorn", "uvicorn.error", "uvicorn.access")
    known = [logging.getLogger(name) for name in names]
    before = [(list(one.handlers), one.level, one.propagate, one.disabled) for one in known]
    yield
    for one, (handlers, level, propagate, disabled) in zip(known, before, strict=True):
        one.handlers[:], one.propagate, one.disabled = handlers, propagate, disabled
        one.setLevel(level)


def test_a_signal_ends_it_and_signals_are_as_before(tmp_path, monkeypatch, loggers):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dartboard.toml").write_text('store = "notes.db"\n[serve]\ntimeout = 20\n')
    said: list[str] = []
    monkeypatch.setattr("builtins.print", lambda *words, **_: said.append(" ".join(map(str, words))))
    seen: list[bytes] = []

    def ask_and_stop():
        wait_until(lambda: any("No key" in line for line in said))
        try:
            address = re.search(r"http://\S+:\d+", "\n".join(said)).group()
            seen.append(get(f"{address}/api/dartboard/health")[1])
        finally:  # or the command would never end
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    helper = threading.Thread(target=ask_and_stop)
    helper.start()
    assert main(["serve", "--port", "0"]) == 0
    helper.join()
    assert b'"healthy"' in seen[0]
    assert signal.getsignal(signal.SIGTERM) == before
    assert any("'notes.db'" not in line and "notes.db" in line for line in said)


def test_the_extra_is_named_where_it_is_missing(monkeypatch, capsys):
    monkeypatch.setattr("dartboard.cli.serve.find_spec", lambda name: None)
    assert main(["serve"]) == 1
    assert install_command("serve") in capsys.readouterr().err
