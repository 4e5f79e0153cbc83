"""The benchmark of indexing: a small run, and its table."""

import pytest

from benchmarks import indexing


def test_a_small_run_measures_every_system(monkeypatch, tmp_path):
    folder = tmp_path / "scifact"
    folder.mkdir()
    rows = (f'{{"_id": "{at}", "title": "T", "text": "Cats sleep on mat {at}."}}\n' for at in range(9))
    (folder / "corpus.jsonl").write_text("".join(rows))
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path))
    monkeypatch.setattr(indexing, "_peers", lambda folder, threads: ({}, ["fastembed"]))
    found = indexing.measure([32], 4, 1, 1)
    (row,) = found["sizes"]
    assert row["chunks"] == 4 and list(row["systems"]) == [indexing.OURS, indexing.WHOLE]
    assert all(system["chunks_per_second"] > 0 for system in row["systems"].values())


def test_the_table_compares_with_the_whole_path():
    systems = {indexing.OURS: 30.0, indexing.WHOLE: 24.0, "fastembed": 12.0}
    row = {
        "tokens": 64,
        "mean_tokens": 42.4,
        "chunks": 8,
        "systems": {name: {"chunks_per_second": rate} for name, rate in systems.items()},
    }
    found = {"abstracts": 8, "threads": 2, "rounds": 5, "versions": {"fastembed": "0.9.1"}}
    made = indexing.section({**found, "missing": ["torch"], "sizes": [row]})
    assert "| chunks/s | 64 tokens (mean 42) |" in made
    assert "| fastembed | 12.0 (0.50×) |" in made and "| **`dartboard index`** | 24.0 |" in made
    assert "fastembed 0.9.1. Not installed: torch." in made


@pytest.mark.parametrize("peer", ["fastembed", "sentence-transformers"])
def test_a_missing_peer_is_named(peer, monkeypatch, tmp_path):
    def missing(folder, threads):
        raise ImportError(f"no {peer}")

    for load in ("_fastembed", "_sentence_transformers"):
        monkeypatch.setattr(indexing, load, missing)
    found, names = indexing._peers(tmp_path, 1)
    assert found == {} and peer in names
