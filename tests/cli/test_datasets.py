"""``dartboard datasets``: what is listed is what the library finds."""

import json

import numpy as np
import pytest

from dartboard.cli import main
from dartboard.datasets import list_datasets, load_beir, load_dataset
from tests.cli.running import run
from tests.datasets.folders import beir_folder, write_text


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("DARTBOARD_DATA", raising=False)
    beir_folder(tmp_path / "data", "tiny", docs=1200)
    (tmp_path / "data" / "other").mkdir()
    return tmp_path / "data"


def test_the_table(root, capsys):
    assert main(["datasets", "--data", str(root)]) == 0
    page = capsys.readouterr().out
    row = next(line for line in page.splitlines() if "tiny" in line)
    assert row.split() == ["tiny", "beir", "1,200", "2", "test"]
    assert "synthetic_query_focused" in page
    assert "1 in " in page
    assert "Not data sets that dartboard knows: other." in page
    assert max(len(line) for line in page.splitlines() if str(root) not in line) <= 80


def test_json_is_what_the_library_lists(root, capsys):
    assert main(["datasets", "--json", "--data", str(root)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["data"] == str(root)
    listed = [json.loads(json.dumps(info.as_dict())) for info in list_datasets(root)]
    assert said["datasets"] == listed
    assert {"name", "num_chunks", "num_queries", "type"} <= said["datasets"][0].keys()


def test_the_environment_names_the_folder(root):
    done = run("datasets", cache=root.parent, DARTBOARD_DATA=str(root))
    assert (done.returncode, done.stderr) == (0, "")
    assert "tiny" in done.stdout


def test_no_folder_is_no_error_unless_it_was_named(root, capsys, monkeypatch):
    monkeypatch.chdir(root / "other")
    assert main(["datasets"]) == 0
    captured = capsys.readouterr()
    assert "synthetic_clustered" in captured.out
    assert "data does not exist: give --data DIR or set DARTBOARD_DATA" in captured.out
    assert main(["datasets", "--data", "nowhere"]) == 2
    assert "--data nowhere is no folder" in capsys.readouterr().err
    assert main(["datasets", "--data", str(root / "other")]) == 0
    assert "There is no data set in" in capsys.readouterr().out


def test_what_cannot_be_read_is_a_warning(root, capsys):
    write_text(root / "broken" / "en.json", "nonsense")
    assert main(["datasets", "--data", str(root)]) == 0
    captured = capsys.readouterr()
    row = next(line for line in captured.out.splitlines() if "broken" in line)
    assert row.split() == ["broken", "rgb", "?", "?"]
    assert "dartboard: warning: " in captured.err
    assert "en.json, line 1: not JSON" in captured.err


@pytest.mark.parametrize("name", ["synthetic_clustered", "synthetic_query_focused", "synthetic_adversarial"])
def test_a_synthetic_set_is_made_as_a_folder(tmp_path, capsys, name):
    made = tmp_path / "made"
    assert main(["datasets", "make", name, "--out", str(made)]) == 0
    whole, read = load_dataset(name), load_beir(made)
    assert read.queries == dict(zip(whole.query_ids, whole.queries, strict=True))
    assert read.qrels == whole.metadata["qrels"] and read.facets == whole.metadata["facets"]
    vectors = np.load(made / "corpus.npy")
    assert np.array_equal(vectors, np.stack([one.embedding for one in whole.chunks]))
    assert main(["datasets", "make", name, "--out", str(made)]) == 2, "it is not empty"
    assert main(["datasets", "make", "real", "--out", str(tmp_path / "x")]) == 2


def test_nothing_is_fetched_unless_it_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dartboard.datasets.catalogue.download", lambda *_, **__: pytest.fail("fetched"))
    asked = ["--dataset", "scifact", "--data", str(tmp_path)]
    assert main(["eval", *asked, "--out", str(tmp_path / "report")]) == 1
    assert main(["calibrate", *asked]) == 1
    assert capsys.readouterr().err.count("--download") == 2
