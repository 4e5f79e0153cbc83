"""The benchmark on natural redundancy: rivals by hand, cells kept, halves and the choice of the divisor."""

import io
import json
import sys
import tarfile

import numpy as np
import pytest

from benchmarks import held_out, natural, natural_tables
from benchmarks.rivals import adagres, vrsd
from dartboard.embeddings import CachedModel, default_model
from tests.datasets.folders import beir_folder


def test_adagres_weighs_redundancy_by_the_candidates():
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    similarity = np.array([1.0, 1.0, 0.6])
    mean_pair = (1.0 + 0.6 + 0.6) / 3
    beta = similarity.mean() / (0.5 * mean_pair)
    assert 1.0 - beta * 1.0 < 0.6 - beta * 0.6, "the copy costs more than it brings"
    assert adagres(vectors, similarity, 2) == [0, 2]
    assert adagres(vectors, similarity, 1) == [0] and len(adagres(vectors, similarity, 9)) == 3


def test_vrsd_makes_the_sum_point_at_the_query():
    vectors = np.array([[0.8, 0.6], [0.8, 0.6], [0.7, -0.6]])
    assert vrsd(vectors, np.array([1.0, 0.0]), 2) == [0, 2], "the other side balances the first"
    assert vrsd(3 * vectors, np.array([0.1, 0.0]), 5) == [0, 2, 1]


def test_vrsd_survives_opposite_vectors():
    assert sorted(vrsd(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 0.0]), 2)) == [0, 1]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(natural.MEASURES, "small", "set_recall")
    beir_folder(tmp_path / "data", "small", docs=30)
    return lambda: natural.Bench(tmp_path / "out.json", fresh=False)


def test_a_cell_is_measured_once(bench, tmp_path, monkeypatch):
    model = CachedModel(default_model())
    first = bench()
    assert all(first.measure(model, "small", condition) for condition in natural.CONDITIONS)
    written = (tmp_path / "out.json").read_text()
    assert not any(bench().measure(model, "small", condition) for condition in natural.CONDITIONS)
    assert (tmp_path / "out.json").read_text() == written
    cells = json.loads(written)[model.name]["small"]
    assert list(cells) == list(natural.CONDITIONS)
    for condition in ("clean", "hybrid"):
        nearest = cells[condition]["systems"][natural.NEAREST]
        assert [nearest[half]["both"]["mean"] for half in natural.HALVES] == [1.0] * 3
    assert list(cells["clean"]["systems"]) == [system.name for system in natural.SYSTEMS]
    monkeypatch.setattr(natural.Cell, "behaviour", lambda self: "otherwise")
    assert bench().measure(model, "small", "clean"), "other picks, other numbers"


def test_halves_share_no_query():
    queries = np.arange(9)
    choosing, reporting = (queries[natural.HALVES[half]] for half in ("choosing", "reporting"))
    assert sorted([*choosing, *reporting]) == list(queries)


def test_differences_are_paired():
    base = np.random.default_rng(0).random((60, 2)) + 0.2
    found = natural.difference(base * 1.1, base, base)["both"]
    assert (found["mean"], found["low"], found["high"]) == (0.1, 0.1, 0.1)


def results(means, sd=0.01):
    rows = {f"median / {divisor:g}": mean for divisor, mean in zip(natural.DIVISORS, means, strict=True)}
    halves = {
        name: {"both": {"mean": mean, "sd": sd}, "@5": {"mean": mean}, "@10": {"mean": mean - 0.01}}
        for name, mean in rows.items()
    }
    cell = {name: {"choosing": row, "reporting": row} for name, row in halves.items()}
    return {"scifact": {"clean": {"systems": cell}}}


def test_the_smallest_divisor_within_the_interval_of_the_best_is_chosen():
    shares = [0.90, 0.97, 1.00, 1.01, 1.00]
    assert natural_tables.chosen_divisor(results(shares)) == 4.5
    assert natural_tables.chosen_divisor(results(shares, sd=0.001)) == 5.0
    said = natural_tables.choice(results(shares))
    assert "Within its interval lie 4.5, 5, 6" in said and "is 0.990 on the choosing" in said


def release(folder, version, page):
    path = folder / f"tool-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"tool-{version}/docs/guide.rst")
        member.size = len(page.encode())
        archive.addfile(member, io.BytesIO(page.encode()))
    return str(path)


def test_releases_become_a_held_out_set(tmp_path, monkeypatch):
    text = (
        "Call it with a path and it reads the file, line by line, until there is nothing left to read in it. "
        * 2
    )
    old = f"=====\nGuide\n=====\n\n{text}\n\nReading\n-------\n\n{text}old way\n\nShort\n-----\n\nno.\n"
    archives = [release(tmp_path, "1.0", old), release(tmp_path, "2.0", old.replace("old way", "new way"))]
    monkeypatch.setattr(sys, "argv", ["held_out", *archives, "--out", str(tmp_path / "set")])
    held_out.main()
    rows = [json.loads(line) for line in (tmp_path / "set" / "corpus.jsonl").read_text().splitlines()]
    assert [row["_id"] for row in rows] == ["1.0/guide#0", "1.0/guide#1", "2.0/guide#0", "2.0/guide#1"]
    assert rows[0]["title"] == "Guide" and rows[3]["text"].endswith("new way")
    facets = (tmp_path / "set" / "qrels" / "subtopics.txt").read_text().splitlines()
    assert facets[2:] == ["s0001 0 1.0/guide#1 1", "s0001 0 2.0/guide#1 1"]
