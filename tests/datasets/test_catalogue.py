"""Data sets by name: listed, sized, loaded, and missing."""

import subprocess
import sys

import numpy as np
import pytest

import dartboard.datasets
from dartboard.datasets import list_datasets, load_dataset, load_text
from dartboard.datasets.catalogue import data_root, entry_at, find_datasets, unrecognised
from dartboard.errors import DatasetError
from tests.datasets.folders import beir_folder, write_jsonl, write_text
from tests.datasets.test_mined import GOOD
from tests.datasets.test_rgb import RGB
from tests.embeddings.hashing_model import HashingModel
from tests.models import WordBag


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "data"
    beir_folder(root, "tiny")
    write_text(root / "msmarco" / "collection.tsv", "1\tOne.\n2\tTwo.\n")
    write_text(root / "msmarco" / "queries.dev.small.tsv", "9\tWhich?\n")
    write_text(root / "msmarco" / "qrels.dev.small.tsv", "9\t0\t1\t1\n")
    write_jsonl(root / "rgb" / "en_int.json", RGB)
    write_jsonl(root / "rgb" / "en_fact.json", RGB)
    write_jsonl(root / "rgb_en" / "en.json", RGB)
    (root / "packed").mkdir()
    (root / "packed" / "retrieval_dataset.yaml.gz").write_bytes(b"packed")
    write_text(root / "adk" / "retrieval_dataset.yaml", GOOD)
    write_text(root / "trec" / "out.test", "nothing that can be searched")
    write_text(root / "README.md", "about it")
    write_text(root / ".cache" / "en.json", "{}")
    return root


def test_everything_is_listed_with_its_size(root):
    listed = {info.name: info for info in list_datasets(root)}
    assert {name: (info.format, info.num_chunks, info.num_queries) for name, info in listed.items()} == {
        "synthetic_adversarial": ("synthetic", 108, 12),
        "synthetic_clustered": ("synthetic", 100, 20),
        "synthetic_query_focused": ("synthetic", 100, 5),
        "adk": ("mined", 4, 2),
        "msmarco": ("msmarco", 2, 1),
        "rgb/en_fact": ("rgb", 6, 2),
        "rgb/en_int": ("rgb", 6, 2),
        "rgb_en": ("rgb", 6, 2),
        "tiny": ("beir", 10, 2),
    }
    assert (listed["tiny"].splits, listed["tiny"].type) == (("test",), "real")
    assert listed["tiny"].as_dict()["path"] == str(root / "tiny")
    assert unrecognised(root) == ["packed", "trec"]


def test_listed_sizes_are_those_of_what_is_loaded(root, tmp_path):
    for info in list_datasets(root):
        dataset = load_dataset(info.name, root, WordBag(), cache_dir=tmp_path / "cache")
        assert (len(dataset.chunks), len(dataset)) == (info.num_chunks, info.num_queries)
        assert dataset.metadata["type"] == info.type
        assert dataset.metadata["query_embeddings"].shape[0] == len(dataset)


def test_the_order_of_splits(root):
    for split in ("train", "dev", "odd"):
        (root / "tiny" / "qrels" / f"{split}.tsv").write_text("q1\td0\t1\n")
    entry = next(entry for entry in find_datasets(root) if entry.name == "tiny")
    assert entry.splits() == ["test", "dev", "train", "odd"]
    assert load_text("tiny", root, split="odd").qrels == {"q1": {"d0": 1}}
    (root / "tiny" / "qrels" / "test.tsv").unlink()
    assert load_text("tiny", root).metadata["split"] == "dev"
    with pytest.raises(DatasetError, match=r"'rgb_en' has no splits"):
        load_text("rgb_en", root, split="test")


def test_a_broken_data_set_is_listed_with_its_problem(root):
    write_text(root / "rgb_en" / "en.json", "nonsense")
    listed = {info.name: info for info in list_datasets(root)}
    assert "en.json, line 1: not JSON" in listed["rgb_en"].problem
    assert listed["tiny"].problem is None
    write_text(root / "rgb_en" / "en.json", "")
    with pytest.raises(DatasetError, match=r"en\.json has no judged queries"):
        load_text("rgb_en", root)


def test_where_data_sets_are_looked_for(root, monkeypatch, tmp_path):
    monkeypatch.delenv("DARTBOARD_DATA", raising=False)
    assert str(data_root()) == "data"
    monkeypatch.setenv("DARTBOARD_DATA", str(root))
    assert data_root() == root
    assert data_root(tmp_path) == tmp_path
    assert [entry.name for entry in find_datasets(tmp_path / "nowhere")] == []
    assert unrecognised(tmp_path / "nowhere") == []


def test_missing_ones_say_what_to_put_where(root):
    with pytest.raises(DatasetError) as caught:
        load_dataset("mine", root, HashingModel())
    for part in (
        "'mine'",
        str(root / "mine"),
        "corpus.jsonl",
        "DARTBOARD_DATA",
        "tiny",
        "synthetic_clustered",
    ):
        assert part in str(caught.value)
    with pytest.raises(
        DatasetError, match=r"put corpus.jsonl, queries.jsonl and qrels/test.tsv into .*scifact"
    ):
        load_dataset("scifact", root, HashingModel(), fetch=False)
    with pytest.raises(DatasetError, match=r"there is no data set '../data/tiny'"):
        load_text("../data/tiny", root)


def test_a_path_will_do_where_it_is_asked_for(tmp_path):
    folder = beir_folder(tmp_path / "elsewhere" / "deep")
    mined = write_text(tmp_path / "retrieval_dataset.yaml", GOOD)
    assert load_text(str(folder), tmp_path / "data", paths=True).name == "tiny"
    assert len(load_text(str(mined), tmp_path / "data", paths=True)) == 2
    for path in (folder, mined):
        with pytest.raises(
            DatasetError, match=f"there is no data set .*: {path} is the path of one"
        ) as caught:
            load_text(str(path), tmp_path / "data")
        assert "pass paths=True" in str(caught.value) and "put it into" not in str(caught.value)
    assert entry_at(tmp_path / "nowhere") is None is entry_at(tmp_path / "elsewhere")


@pytest.mark.parametrize("paths", [False, True])
def test_a_path_that_is_no_data_set_says_what_it_is(root, paths):
    for name in ("one", "two"):
        beir_folder(root / "several", name)
    with pytest.raises(DatasetError, match=r"several holds data sets: pass it as root .*: one, two"):
        load_text(str(root / "several"), root / "other", paths=paths)
    with pytest.raises(DatasetError, match=r"trec is there, but is none in a known format: make it a BEIR"):
        load_text(str(root / "trec"), root / "other", paths=paths)
    with pytest.raises(DatasetError, match=r"put it into .*other/nowhere as a BEIR folder"):
        load_text(str(root / "nowhere"), root / "other", paths=paths)


def test_the_specifications_name_of_ms_marco(root):
    assert load_text("msmarco_dev", root).name == "msmarco_dev.small"
    beir_folder(root, "msmarco_dev")
    assert load_text("msmarco_dev", root).name == "msmarco_dev", "a folder of that name comes first"


def test_synthetic_ones_by_name():
    clustered = load_dataset("synthetic_clustered")
    assert np.stack([chunk.embedding for chunk in clustered.chunks]).shape == (100, 384)
    adversarial = load_dataset("synthetic_adversarial", model=WordBag())
    assert adversarial.metadata["model"]["name"] == "WordBag"


def test_importing_the_room_is_light():
    code = (
        "import sys, dartboard.datasets; from dartboard.datasets import load_beir, make_clustered, prepare; "
        "heavy = {'torch', 'onnxruntime', 'tokenizers', 'faiss', 'httpx', 'yaml', 'rich'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_public_names():
    assert dartboard.datasets.__all__ == sorted(dartboard.datasets.__all__)
    assert set(dartboard.datasets.__all__) <= set(dir(dartboard.datasets))
    assert all(hasattr(dartboard.datasets, name) for name in dartboard.datasets.__all__)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'"):
        _ = dartboard.datasets.nothing
