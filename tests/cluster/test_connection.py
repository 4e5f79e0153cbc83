"""Addresses, what is said when nobody is there, and work that cannot be done."""

import os
import socket
import threading
from contextlib import closing

import pytest

from dartboard.cli import main
from dartboard.cluster import connect, parse_address, tasks
from dartboard.cluster.connection import _join, _own_signals, check_reachable
from dartboard.cluster.encoder import examine
from dartboard.cluster.tasks import run, unwrap
from dartboard.errors import ClusterError, ConfigError, MissingExtraError, ModelError, install_command
from tests.cluster.filters import of_ray

pytestmark = of_ray


@pytest.mark.parametrize(
    ("text", "kind", "host", "port"),
    [
        ("auto", "auto", "", 0),
        (" local ", "local", "", 0),
        ("10.0.0.1:6379", "member", "10.0.0.1", 6379),
        ("ray://head:10001", "client", "head", 10001),
        ("ray://[::1]:10001", "client", "::1", 10001),
    ],
)
def test_addresses(text, kind, host, port):
    found = parse_address(text)
    assert (found.kind, found.host, found.port) == (kind, host, port)


@pytest.mark.parametrize(
    "text", ["", "here", "head:", ":6379", "head:70000", "head:x", "http://head:80", "a/b:1"]
)
def test_what_is_no_address(text, tmp_path, capsys):
    with pytest.raises(ConfigError, match=r"is not a cluster address: use auto, local, HOST:PORT or ray://"):
        parse_address(text)


@pytest.fixture
def nobody():
    """A port where nobody listens."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_there(scheme, nobody, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # other tests of this process are connected
    (tmp_path / "a.txt").write_text("something")
    out = tmp_path / "report"
    for command in (["index", "a.txt"], ["eval", "--dataset", "synthetic_clustered", "--out", str(out)]):
        assert main([*command, "--ray", f"{scheme}{nobody}"]) == 1
        said = capsys.readouterr().err
        assert f"no cluster answers at {scheme}{nobody}" in said and "ray start --head" in said
        assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_the_missing_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("something")
    assert main(["index", "a.txt", "--ray", "auto"]) == 1
    assert f"--ray needs ray: {install_command('ray')}" in capsys.readouterr().err
    assert not (tmp_path / "index.dartboard").exists()


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        (
            "auto",
            ConnectionError("Could not find any running Ray instance."),
            "no cluster was found that .*ray start",
        ),
        (
            "local",
            RuntimeError("log\n\nno room"),
            "could be started on this machine: no room. Leave --ray out",
        ),
        (
            "head:1",
            RuntimeError("Version mismatch"),
            "head:1 could not be joined: Version mismatch.*ray://HOST",
        ),
        ("ray://head:1", ValueError(), "ray://head:1 could not be joined: ValueError. Ray and Python"),
        ("ray://head:1", ImportError(), r"--ray ray://… needs ray\[client\]: pip install .*\[ray\]'"),
    ],
)
def test_a_cluster_that_cannot_be_joined(address, error, said, monkeypatch):
    import ray

    def fail(**options):
        raise error

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises((ClusterError, MissingExtraError), match=said):
        _join(ray, parse_address(address))


def test_signals_of_another_thread_are_nobodys():
    def work():
        with _own_signals():
            done.append(True)

    done = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_help_teaches(capsys):
    for command in ("index", "eval"):
        assert main([command, "--help"]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "--ray ADDRESS" in told and "auto, local, HOST:PORT or ray://HOST:PORT" in told
        assert "DARTBOARD_RAY" in told


def test_a_connection_is_used_again(whole, cluster):
    with connect(whole.address) as again:
        assert again.machines() == cluster.machines() and len(again.machines()) == 2
    assert cluster.result(cluster.begin(os.path.basename, "a/b")) == "b"


def test_work_that_fails(whole, cluster, monkeypatch):
    with pytest.raises(ClusterError, match=r"a worker on .* failed: TypeError"):
        cluster.result(cluster.begin(os.path.basename, 3))
    with pytest.raises(ClusterError, match="started 4 times and its worker was lost each time"):
        cluster.result(cluster.begin(os.abort))
    monkeypatch.setattr(tasks, "MACHINE_TIMEOUT", 0.0)
    monkeypatch.setattr(tasks, "_POLL_SECONDS", 0.05)
    with pytest.raises(ClusterError, match=r"no machine is left in the cluster at .* to continue"):
        cluster.result(cluster.begin(os.getpid, cpus=99))


def test_what_listens_but_is_no_cluster(tmp_path):
    """Ray would try for minutes."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match="is no Ray cluster: check the port"):
            check_reachable(parse_address(f"ray://127.0.0.1:{port}"), "127.0.0.1")
        thread.join()


def test_errors_travel_as_words():
    with pytest.raises(ModelError, match=r"nowhere is not a folder.* \(on "):
        plain = {"model": "onnx:nowhere", "threads": 1}
        unwrap(run("dartboard.cluster.encoder:examine", (plain,)))
    with pytest.raises(ClusterError, match="failed: ModuleNotFoundError"):
        unwrap(run("dartboard.nowhere:work", ()))
    assert examine({})[1] == ""
