"""``dartboard index --ray``: the same index as one process makes, whatever dies on the way."""

import json
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dartboard.cli import main
from dartboard.cluster import ClusterEncoder, connect, encode, encoding_on, recipe_of
from dartboard.embeddings.by_name import model_by_name
from dartboard.engine import Engine, index_paths
from dartboard.errors import ClusterError, ConfigError, InvalidInputError
from tests.cli.running import environment, start
from tests.cluster.filters import of_ray
from tests.cluster.models import sociable_model
from tests.waiting import wait_until

pytestmark = of_ray


def content(store):
    """All of a collection, in the order in which it lies there, vectors as bytes."""
    with Engine.open(str(store), read_only=True) as engine:
        return [
            (record.id, record.text, record.embedding.dtype.str, record.embedding.tobytes(), record.metadata)
            for batch in engine.collection.iterate()
            for record in batch
        ]


def records(store):
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM records").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


def indexed(store, docs, encoder=None, listen=lambda progress: None, model=None, **options):
    with Engine.open(str(store), model=model) as engine:
        return index_paths(engine, docs, encoder=encoder, listen=listen, **options)


def without_time(report):
    return {name: value for name, value in asdict(report).items() if name != "seconds"}


def test_changes_come_in_the_same_order(whole, cluster, docs, tmp_path):
    stores = tmp_path / "alone.dartboard", tmp_path / "together.dartboard"
    encoders = None, ClusterEncoder(cluster, recipe_of("default"))
    for store, encoder in zip(stores, encoders, strict=True):
        indexed(store, docs, encoder, batch_size=8)
    for number in range(0, 120, 9):
        (docs / f"{number:03d}.txt").write_text(f"Rule {number} was replaced by rule {number + 1}.")
    (docs / "017.txt").write_text("")
    (docs / "018.txt").unlink()
    reports = [
        indexed(store, docs, encoder, batch_size=8, prune=True)
        for store, encoder in zip(stores, encoders, strict=True)
    ]
    assert without_time(reports[0]) == without_time(reports[1])
    assert (reports[0].changed, reports[0].emptied, reports[0].deleted) == (13, 1, 1)
    assert content(stores[0]) == content(stores[1])


def test_the_command(whole, docs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DARTBOARD_RAY", whole.address)
    assert main(["index", "docs", "--json", "--store", "together.dartboard"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["encoded"] == 120
    assert "2 machines" in shown.err and "2 lists" in shown.err
    assert main(["index", "docs", "--ray", "off", "--store", "alone.dartboard"]) == 0
    assert "cluster" not in capsys.readouterr().err
    assert content(tmp_path / "together.dartboard") == content(tmp_path / "alone.dartboard")
    (docs / "new.txt").write_text("A rule that came later.")
    assert main(["index", "docs", "--json", "--store", "together.dartboard"]) == 0
    assert json.loads(capsys.readouterr().out)["encoded"] == 1


def test_ctrl_c_keeps_what_is_finished(whole, docs, tmp_path, capsys, light):
    """Six lists of 64 passages: one more than are under way at a time."""
    store = tmp_path / "i.dartboard"
    for number in range(120, 384):
        (docs / f"{number:04d}.txt").write_text(f"Rule {number} says that broker {number} keeps on.")
    asked = ("index", str(docs), "--store", str(store), "--ray", whole.address)
    with start(*asked, cache=tmp_path, **light) as process:
        wait_until(lambda: records(store) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "What was finished is kept" in errors and "Traceback" not in errors
    kept = records(store)
    assert 0 < kept < 384 and kept % 64 == 0
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["encoded"] == 384 - kept and records(store) == 384


def test_a_cluster_of_its_own(docs, tmp_path, light):
    """Ray keeps the token of clusters that it starts below the home folder."""
    for number in range(20, 120):
        (docs / f"{number:03d}.txt").unlink()
    store = tmp_path / "own.dartboard"
    asked = ["index", str(docs), "--store", str(store), "--ray", "local"]
    done = subprocess.run(
        [sys.executable, "-m", "dartboard", *asked],
        env=environment(tmp_path, HOME=str(tmp_path), **light),
        capture_output=True,
        encoding="utf-8",
        timeout=240,  # a cluster is some ten processes: slow to start where others work
    )
    assert done.returncode == 0, done.stderr
    assert "1 machine of the cluster" in done.stderr and done.stderr.count("\n") == 1
    assert indexed(tmp_path / "alone.dartboard", docs).chunks == 20
    assert content(store) == content(tmp_path / "alone.dartboard")


def test_batches_are_made_as_one_process_makes_them(whole, docs, tmp_path, monkeypatch, capsys):
    """The vectors of this model depend on what a text is batched with; its path is relative."""
    monkeypatch.chdir(tmp_path)
    sociable_model(tmp_path / "model")
    for encoder, store in (("off", "alone.dartboard"), (whole.address, "together.dartboard")):
        asked = ["index", "docs", "--model", "onnx:model", "-r", "dense", "--store", store, "--ray", encoder]
        assert main(asked) == 0, capsys.readouterr().err
    assert content(tmp_path / "together.dartboard") == content(tmp_path / "alone.dartboard")
    assert indexed(tmp_path / "again.dartboard", docs, batch_size=40, model="onnx:model").encoded == 120
    vectors = [{r[0]: r[3] for r in content(tmp_path / f"{name}.dartboard")} for name in ("alone", "again")]
    assert vectors[0] != vectors[1]  # other batches, other vectors: the comparison above could have failed


def test_another_dartboard_or_model_is_refused_before_anything_is_written(
    whole, cluster, docs, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    sociable_model(tmp_path / "model")
    recipe = recipe_of("onnx:model")
    with pytest.raises(ClusterError, match=r"9\.9"):
        ClusterEncoder(cluster, replace(recipe, version="9.9"))
    sociable_model(tmp_path / "model", seed=1)
    with pytest.raises(ClusterError, match="another model"):
        ClusterEncoder(cluster, recipe)
    monkeypatch.setattr("dartboard.cluster.recipe_of", lambda name: recipe)
    assert main(["index", "docs", "--model", "onnx:model", "--ray", whole.address]) == 1
    said = capsys.readouterr().err
    assert "has another model" in said and said.count("\n") == 1
    assert not (tmp_path / "index.dartboard").exists()


def test_machines_that_round_otherwise_are_named_once(whole, cluster, caplog):
    encoder = ClusterEncoder(cluster, replace(recipe_of("default"), bits="0123456789abcdef"))
    assert encoder.begin(["one", "two"]).result().shape == (2, 384)
    assert encoder.begin(["three"]).result().shape == (1, 384)
    assert caplog.text.count("not the same to the last bit") == 1


def test_an_error_of_a_worker_is_ours(whole, cluster):
    encoder = ClusterEncoder(cluster, recipe_of("default"))
    with pytest.raises(InvalidInputError, match=r"\(on "):
        encoder.begin(["something", " "]).result()


def test_what_a_worker_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sociable_model(tmp_path / "model")
    for name in ("default", "onnx:model"):
        recipe = recipe_of(name)
        error, _, _, bits, vectors = encode(asdict(recipe), ["one", "two words"])
        assert (error, bits) == ("", recipe.bits)
        here = model_by_name(name).encode_documents(["one", "two words"])
        assert vectors.tobytes() == here.tobytes()
    assert encode(asdict(replace(recipe, version="9.9")), ["one"])[0] == "ClusterError"
    assert encode(asdict(replace(recipe, fingerprint="other")), ["one"])[0] == "ClusterError"
    assert encode(asdict(recipe), ["one", " "])[0] == "InvalidInputError"


@pytest.mark.parametrize("text", ["", "here", "head:", ":6379", "head:x"])
def test_what_is_no_address(text):
    with pytest.raises(ConfigError, match="HOST:PORT"), connect(text):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_there(scheme, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # other tests of this process are connected
    (tmp_path / "a.txt").write_text("something")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"{scheme}127.0.0.1:{free.getsockname()[1]}"
        assert main(["index", "a.txt", "--ray", nobody]) == 1
    assert "no cluster answers" in capsys.readouterr().err
    assert not (tmp_path / "index.dartboard").exists()


def test_off_is_no_cluster():
    with encoding_on("off", "default") as encoder:
        assert encoder is None


def test_the_page_shows_what_runs(whole, docs, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    shown = {}
    exec(compile(block, "scaling.md", "exec"), shown)
    assert shown["index_together"](whole.address, str(tmp_path / "i.dartboard"), str(docs)) == 120


def test_the_same_index_when_a_worker_and_a_machine_are_killed(whole, cluster, docs, tmp_path):
    alone, together = tmp_path / "alone.dartboard", tmp_path / "together.dartboard"
    expected = indexed(alone, docs, batch_size=8)
    killed = []

    def listen(progress):
        if progress.chunks >= 30 and not killed:
            killed.append(whole.kill_worker("dartboard encode"))
        if progress.chunks >= 70 and len(killed) == 1:
            killed.append(whole.raylets[-1])
            whole.kill_last_node()

    encoder = ClusterEncoder(cluster, recipe_of("default"))
    assert (len(encoder.machines), encoder.slots, encoder.room) == (2, 2, 5)
    report = indexed(together, docs, encoder, listen, batch_size=8)
    assert len(killed) == 2
    assert without_time(report) == without_time(expected) and report.encoded == report.chunks == 120
    assert content(together) == content(alone)
