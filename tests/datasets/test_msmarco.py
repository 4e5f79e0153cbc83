"""MS MARCO's official files, read as a stream."""

import gzip
import tracemalloc

import pytest

from dartboard.datasets import load_msmarco, prepare
from dartboard.datasets.msmarco import splits_of
from dartboard.errors import ConfigError, DatasetError
from dartboard.evaluation import Judgements, evaluate
from tests.datasets.folders import write_text
from tests.embeddings.hashing_model import HashingModel


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "msmarco"
    write_text(
        root / "collection.tsv", "".join(f"{i}\tPassage number {i}, with\ta tab.\n" for i in range(100))
    )
    write_text(root / "queries.dev.small.tsv", "11\twhat is one\n12\t two \n13\tnot judged\n")
    write_text(root / "qrels.dev.small.tsv", "11\t0\t7\t1\n12\t0\t8\t1\n12\t0\t9999\t1\n99\t0\t1\t1\n")
    write_text(root / "msmarco-test2019-queries.tsv", "21\tdeep learning\n")
    write_text(root / "2019qrels-pass.txt", "21 Q0 5 3\n21 Q0 6 0\n")
    write_text(root / "qrels.lonely.tsv", "1\t0\t1\t1\n")
    return root


def test_the_official_files(folder):
    data = load_msmarco(folder)
    assert data.name == "msmarco_dev.small"
    assert data.queries == {"11": "what is one", "12": "two"}
    assert data.qrels == {"11": {"7": 1}, "12": {"8": 1, "9999": 1}}
    passages = list(data.passages)
    assert (len(passages), passages[3].id, passages[3].text) == (100, "3", "Passage number 3, with\ta tab.")


def test_the_files_of_trec(folder):
    data = load_msmarco(folder, "dl19-passage")
    assert (data.queries, data.qrels) == ({"21": "deep learning"}, {"21": {"5": 3, "6": 0}})
    assert splits_of(folder) == ["dev.small", "dl19-passage"]


def test_the_tracks_of_trec_count_from_grade_2_on(folder, tmp_path):
    write_text(folder / "2019qrels-pass.txt", "21 Q0 5 3\n21 Q0 6 1\n")
    data = prepare(load_msmarco(folder, "dl19-passage"), HashingModel(), cache_dir=tmp_path / "cache")
    judgements = Judgements.of(data)
    assert data.ground_truth == {"21": ["5"]} and judgements.least_grade == 2
    measures = ["recall@5", "precision@1", "ndcg@1"]
    assert evaluate({"21": ["6"]}, judgements, measures).of("21") | {"ndcg@1": 0} == dict.fromkeys(
        measures, 0
    )
    assert evaluate({"21": ["6"]}, judgements, measures).of("21")["ndcg@1"] > 0
    assert "least_grade" not in load_msmarco(folder).metadata


def test_other_spellings(folder):
    write_text(folder / "topics.x.txt", "31\tq\n")
    write_text(folder / "qrels.x.trec", "31 0 2 1\n")
    content = (folder / "collection.tsv").read_bytes()
    (folder / "collection.tsv").unlink()
    (folder / "collection.tsv.gz").write_bytes(gzip.compress(content))
    data = load_msmarco(folder, "x")
    assert data.qrels == {"31": {"2": 1}}
    assert len(list(data.passages)) == 100


def test_a_sample_has_all_judged_and_some_others(folder):
    data = load_msmarco(folder, distractors=10)
    ids = [passage.id for passage in data.passages]
    assert len(ids) == 12
    assert {"7", "8"} <= set(ids)
    assert ids == [passage.id for passage in data.passages]
    assert ids != [passage.id for passage in load_msmarco(folder, distractors=10, seed=1).passages]
    rows = (folder / "collection.tsv").read_text().splitlines(keepends=True)
    (folder / "collection.tsv").write_text("".join(reversed(rows)))
    assert sorted(ids) == sorted(passage.id for passage in data.passages)


def test_the_collection_never_stands_in_memory(folder):
    line = "x" * 1000
    write_text(folder / "collection.tsv", "".join(f"{i}\t{line}\n" for i in range(20_000)))
    tracemalloc.start()
    count = sum(1 for _ in load_msmarco(folder).passages)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 1_000_000


def test_missing_files_and_bad_knobs(folder, tmp_path):
    with pytest.raises(DatasetError, match=r"queries.dev.tsv is missing: existing splits: dev.small, dl19"):
        load_msmarco(folder, "dev")
    with pytest.raises(DatasetError, match=r"collection.tsv is missing: MS MARCO's folder holds"):
        load_msmarco(tmp_path)
    with pytest.raises(ConfigError, match=r"distractors must be >= 0"):
        load_msmarco(folder, distractors=-1)


@pytest.mark.parametrize(
    ("file", "row", "complaint"),
    [
        ("collection.tsv", "no tab here", "collection.tsv, line 101: expected a passage id, a tab"),
        ("queries.dev.small.tsv", "14\t", "queries.dev.small.tsv, line 4: expected a query id"),
        ("queries.dev.small.tsv", "11\tagain", "queries.dev.small.tsv, line 4: query id '11' occurs twice"),
        ("qrels.dev.small.tsv", "11\t0\t7\tyes", "qrels.dev.small.tsv, line 5: grade must be"),
    ],
)
def test_malformed_rows_are_named(folder, file, row, complaint):
    with (folder / file).open("a") as stream:
        stream.write(row + "\n")
    with pytest.raises(DatasetError, match=complaint):
        list(load_msmarco(folder).passages)


def test_judgments_of_other_queries_are_no_data_set(folder):
    write_text(folder / "qrels.dev.small.tsv", "98\t0\t7\t1\n99\t0\t1\t1\n")
    with pytest.raises(DatasetError, match=r"qrels\.dev\.small\.tsv judges no query of queries"):
        load_msmarco(folder)


def test_blanks_around_an_id_do_not_lose_its_query(folder):
    write_text(folder / "queries.dev.small.tsv", " 11\twhat is one\n12 \ttwo\n")
    assert set(load_msmarco(folder).queries) == {"11", "12"}
