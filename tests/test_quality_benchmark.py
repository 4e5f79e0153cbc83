"""The benchmark of quality keeps what it has measured, and measures again what other code made."""

import json

import numpy as np
import pytest

from benchmarks import quality
from dartboard.datasets import make_query_focused, with_redundancy
from dartboard.selection import pool_builders
from dartboard.selection.result import Sigma
from tests.datasets.folders import beir_folder


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))
    beir_folder(tmp_path / "data", "small", docs=30)
    return lambda **more: quality.Bench(tmp_path / "out.json", tmp_path / "data", fresh=False, **more)


def test_a_cell_is_measured_once(bench, tmp_path, monkeypatch):
    first = bench()
    assert first.measure("small", "clean") and first.measure("small", "text edits")
    written = (tmp_path / "out.json").read_text()
    again = bench()
    assert not again.measure("small", "clean") and (tmp_path / "out.json").read_text() == written
    cell = json.loads(written)["small"]["clean"]
    assert list(cell["systems"]) == quality.SYSTEMS
    assert cell["systems"]["cosine"]["share"]["mean"] == 1.0
    assert cell["systems"]["oracle"]["@5"]["mean"] == 1.0
    monkeypatch.setattr(quality, "behaviour", lambda dataset: "otherwise")
    assert bench().measure("small", "clean"), "other picks, other numbers"


def test_the_interval_of_a_share_is_paired():
    base = np.random.default_rng(0).random((80, 2)) + 0.2
    same, half = quality.share(base, base), quality.share(base / 2, base)
    assert (same["mean"], same["low"], same["high"], same["sd"]) == (1.0, 1.0, 1.0, 0.0)
    assert half["mean"] == pytest.approx(0.5) and half["sd"] == pytest.approx(0.0, abs=1e-6)
    other = quality.share(np.random.default_rng(1).random((80, 2)), base)
    assert other["low"] < other["mean"] < other["high"]


@pytest.mark.parametrize("copies", [0, 2])
def test_another_sigma_is_another_behaviour(copies, monkeypatch):
    dataset = make_query_focused()
    dataset = with_redundancy(dataset, copies=copies, cosine=0.9) if copies else dataset
    before = quality.behaviour(dataset)
    assert quality.behaviour(dataset) == before
    monkeypatch.setattr(pool_builders, "auto_sigma", lambda *_, **__: Sigma(0.3, "candidates"))
    assert quality.behaviour(dataset) != before
