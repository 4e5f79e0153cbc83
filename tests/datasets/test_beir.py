"""BEIR folders: read, written, and malformed."""

import gzip

import pytest

from dartboard.datasets import load_beir, prepare, write_beir
from dartboard.errors import DatasetError
from tests.datasets.folders import beir_folder, write_jsonl, write_text
from tests.embeddings.hashing_model import HashingModel


def test_a_folder_gives_the_queries_of_its_split(tmp_path):
    data = load_beir(beir_folder(tmp_path))
    assert data.name == "tiny"
    assert len(data) == 2
    assert data.queries == {"q1": "First?", "q2": "Second?"}
    assert data.qrels == {"q1": {"d0": 1, "d1": 2}, "q2": {"d2": 1, "d3": 0}}
    assert data.answers == {"q1": ["one", "1", "uno"]}
    assert (data.facets, data.kernels, data.pools) == ({}, {}, {})
    first = next(iter(data.passages))
    assert (first.id, first.title, first.text) == ("d0", "Title 0", "Text number 0.")
    assert len(list(data.passages)) == len(list(data.passages)) == 10


def test_facets_of_one_passage_each_make_a_kernel(tmp_path):
    folder = beir_folder(tmp_path)
    write_text(
        folder / "qrels" / "subtopics.txt", "q1 1 d0 1\nq1 2 d1 1\nq2 1 d2 1\nq2 1 d4 1\nother 1 d0 1\n"
    )
    write_jsonl(folder / "pools.jsonl", [{"_id": "q1", "positive": ["d0", "d1"], "negative": ["d5", "d0"]}])
    data = load_beir(folder)
    assert data.facets == {"q1": {"1": ["d0"], "2": ["d1"]}, "q2": {"1": ["d2", "d4"]}}
    assert data.kernels == {"q1": ["d0", "d1"]}
    assert data.pools == {"q1": ["d0", "d1", "d5"]}


def test_what_is_written_reads_the_same(tmp_path):
    folder = beir_folder(tmp_path)
    write_text(folder / "qrels" / "subtopics.txt", "q1 1 d0 1\nq1 2 d1 1\n")
    write_jsonl(folder / "pools.jsonl", [{"_id": "q1", "positive": ["d0", "d1"]}])
    data = load_beir(folder)
    write_beir(data, tmp_path / "copy")
    copy = load_beir(tmp_path / "copy")
    for part in ("queries", "qrels", "facets", "kernels", "answers", "pools"):
        assert getattr(copy, part) == getattr(data, part)
    assert list(copy.passages) == list(data.passages)


def test_compressed_folders(tmp_path):
    folder = beir_folder(tmp_path)
    for path in (folder / "corpus.jsonl", folder / "qrels" / "test.tsv"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert len(list(load_beir(folder).passages)) == 10


def test_missing_parts_say_what_belongs_there(tmp_path):
    with pytest.raises(DatasetError, match=r"corpus.jsonl is missing: a BEIR folder has"):
        load_beir(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match=r"dev.tsv is missing: existing splits: test"):
        load_beir(beir_folder(tmp_path), split="dev")


@pytest.mark.parametrize(
    ("file", "row", "complaint"),
    [
        ("corpus.jsonl", {"title": "no id"}, "corpus.jsonl, line 11: '_id' is missing"),
        ("corpus.jsonl", {"_id": "x", "text": ["no"]}, "corpus.jsonl, line 11: 'text' must be a string"),
        (
            "queries.jsonl",
            {"_id": "q1", "text": "again"},
            "queries.jsonl, line 4: query id 'q1' occurs twice",
        ),
        ("queries.jsonl", {"_id": "q9", "text": " "}, "queries.jsonl, line 4: query 'q9' has no text"),
        ("queries.jsonl", {"_id": "q9", "text": "a", "metadata": 1}, "line 4: 'metadata' must be an object"),
    ],
)
def test_malformed_rows_are_named(tmp_path, file, row, complaint):
    folder = beir_folder(tmp_path)
    with (folder / file).open("a") as stream:
        stream.write(__import__("json").dumps(row) + "\n")
    with pytest.raises(DatasetError, match=complaint):
        list(load_beir(folder).passages)


def test_qrels_of_unknown_queries(tmp_path):
    folder = beir_folder(tmp_path)
    write_text(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\td0\t1\nno\td0\t1\nah\td0\t1\n")
    with pytest.raises(DatasetError, match=r"test.tsv, line 3: query 'no' is not in queries.jsonl"):
        load_beir(folder)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_passage_id_that_occurs_twice_is_named_with_both_lines(tmp_path, compressed):
    folder = beir_folder(tmp_path)
    corpus = folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text() + '\n{"_id": "d3", "text": "Another one."}\n')
    if compressed:
        corpus.with_name("corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
        corpus.unlink()
    said = r"corpus.jsonl(\.gz)?, line 12: passage id 'd3' occurs twice, first at line 4: ids must be"
    with pytest.raises(DatasetError, match=said):
        prepare(load_beir(folder), HashingModel(), cache_dir=tmp_path / "cache")


def test_judged_passages_that_the_corpus_lacks_are_told_of(tmp_path, caplog):
    folder = beir_folder(tmp_path)
    with (folder / "qrels" / "test.tsv").open("a") as stream:
        stream.write("q1\tgone\t1\nq2\taway\t2\nq2\tnever\t0\nq2\tgone\t1\n")
    dataset = prepare(load_beir(folder), HashingModel(), cache_dir=tmp_path / "cache")
    assert dataset.metadata["unreachable"] == {"q1": ["gone"], "q2": ["away", "gone"]}
    assert "tiny: the corpus lacks relevant passages, or their text: 3 of 6, in 2 of 2 queries" in caplog.text
    assert "(the first is 'gone' of query 'q1')" in caplog.text
    caplog.clear()
    prepare(load_beir(beir_folder(tmp_path, "whole")), HashingModel(), cache_dir=tmp_path / "cache")
    assert not caplog.records
