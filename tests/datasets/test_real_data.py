"""The loaders on real data, where it is there: ``DARTBOARD_DATA``, else ``../shared/data``."""

import os
from pathlib import Path

import pytest

from dartboard.datasets import list_datasets, load_beir, load_msmarco, read_qrels, read_run

ROOT = Path(os.environ.get("DARTBOARD_DATA") or Path(__file__).parents[3] / "shared" / "data")

pytestmark = pytest.mark.skipif(not (ROOT / "scifact").is_dir(), reason=f"no real data in {ROOT}")


def test_sizes_are_the_published_ones():
    sizes = {info.name: (info.num_chunks, info.num_queries) for info in list_datasets(ROOT)}
    assert sizes["scifact"] == (5183, 300)
    assert sizes["hotpotqa_dev200"] == (1971, 200)
    assert not [info.problem for info in list_datasets(ROOT) if info.problem]


def test_kernels_of_multi_hop_questions():
    hotpot = load_beir(ROOT / "hotpotqa_dev200")
    assert {len(kernel) for kernel in hotpot.kernels.values()} == {2}
    musique = load_beir(ROOT / "musique_train100")
    assert {len(kernel) for kernel in musique.kernels.values()} == {2, 3, 4}
    assert len(musique.answers) == len(musique.pools) == len(musique) == 100


def test_ms_marco_and_its_trec_track():
    assert len(load_msmarco(ROOT / "msmarco")) == 6980
    track = load_msmarco(ROOT / "msmarco", "dl19-passage")
    assert len(track) == 43
    assert {grade for judged in track.qrels.values() for grade in judged.values()} == {0, 1, 2, 3}


def test_nists_own_files():
    run = read_run(ROOT / "trec_eval_reference" / "results.test")
    qrels = read_qrels(ROOT / "trec_eval_reference" / "qrels.test")
    assert run.keys() == qrels.keys()
    assert sum(map(len, run.values())) == 1500
