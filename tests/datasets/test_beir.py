"""BEIR folders: read, written, and malformed."""

import gzip

import pytest

from dartboard.datasets import load_beir, write_beir
from dartboard.errors import DatasetError
from tests.datasets.folders import beir_folder, write_jsonl, write_text


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
    with pytest.raises(DatasetError, match=r"dev.tsv is missing: the splits there are: test"):
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
    write_text(folder / "qrels" / "test.tsv", "nobody\td0\t1\n")
    with pytest.raises(DatasetError, match=r"judges query 'nobody', not in queries.jsonl"):
        load_beir(folder)
