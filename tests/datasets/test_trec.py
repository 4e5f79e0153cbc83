"""TREC files: read, written, read again; and malformed."""

import pytest

from dartboard.datasets import read_qrels, read_run, read_subtopics, write_qrels, write_run, write_subtopics
from dartboard.errors import ConfigError, DatasetError
from dartboard.types import Hit
from tests.datasets.folders import write_text

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 3, "d": -1}}


@pytest.mark.parametrize("layout", ["trec", "beir"])
def test_qrels_survive_a_round_trip(tmp_path, layout):
    write_qrels(QRELS, tmp_path / "new" / "qrels", layout=layout)
    assert read_qrels(tmp_path / "new" / "qrels") == QRELS


@pytest.mark.parametrize(
    "content",
    [
        "1 0 d1 1\n1 0 d2 0\n",
        "1\t0\td1\t1\n1\t0\td2\t0\n",
        "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t0",
        "1 Q0 d1 1\n1 Q0 d2 0\n1 Q0 d2 0\n",
    ],
)
def test_all_layouts_of_qrels_are_understood(tmp_path, content):
    assert read_qrels(write_text(tmp_path / "q", content)) == {"1": {"d1": 1, "d2": 0}}


def test_ids_may_have_spaces_where_tabs_separate(tmp_path):
    qrels = {"a query": {"a doc": 1}}
    write_qrels(qrels, tmp_path / "q.tsv", layout="beir")
    assert read_qrels(tmp_path / "q.tsv") == qrels
    with pytest.raises(DatasetError, match=r"'a query' has white space"):
        write_qrels(qrels, tmp_path / "q.trec")
    with pytest.raises(DatasetError, match=r"has a tab"):
        write_qrels({"a\tb": {"c": 1}}, tmp_path / "q.tsv", layout="beir")
    with pytest.raises(ConfigError, match=r"layout must be"):
        write_qrels(qrels, tmp_path / "q", layout="csv")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("1 0 d1 1\n1 0 d2\n\n1 0\n", "line 2: grade must be|line 4: expected"),
        ("1 0 d1 1\n1 0 d2 high\n", "line 2: grade must be a whole number, got 'high'"),
        ("1 0 d1 1\n1 0 d1 2\n", "line 2: query '1' and passage 'd1' are judged 2, but 1 before"),
        ("1 0 d1 1 x\n", "line 1: expected 'query 0 passage grade'"),
    ],
)
def test_malformed_qrels(tmp_path, content, complaint):
    with pytest.raises(DatasetError, match=complaint):
        read_qrels(write_text(tmp_path / "q", content))


def test_subtopics_survive_a_round_trip(tmp_path):
    facets = {"q": {"1": ["a", "b"], "2": ["c"]}}
    write_subtopics(facets, tmp_path / "s")
    assert read_subtopics(tmp_path / "s") == facets
    more = write_text(tmp_path / "t", "q 1 a 1\nq 1 a 2\nq 1 b 0\n")
    assert read_subtopics(more) == {"q": {"1": ["a"]}}
    with pytest.raises(DatasetError, match=r"line 1: expected 'query facet passage grade'"):
        read_subtopics(write_text(tmp_path / "u", "q 1 a\n"))


def test_runs_survive_a_round_trip(tmp_path):
    run = {"q1": [Hit("b", 2.5), Hit("a", 0.1), Hit("c", -1.0)], "q2": [Hit("a", 1.0)]}
    write_run(run, tmp_path / "run", tag="mine")
    assert read_run(tmp_path / "run") == run
    assert (tmp_path / "run").read_text().splitlines()[1] == "q1 Q0 a 2 0.1 mine"


def test_ties_are_written_so_that_every_tool_keeps_the_order(tmp_path):
    write_run({"q": [Hit("a", 1.0), Hit("z", 1.0), Hit("m", 1.0), Hit("b", 0.5)]}, tmp_path / "run")
    read = read_run(tmp_path / "run")["q"]
    assert [hit.chunk_id for hit in read] == ["a", "z", "m", "b"]
    assert read[0].score > read[1].score > read[2].score > 0.999


def test_runs_are_ordered_by_score_then_rank(tmp_path):
    content = "q Q0 a 3 1.0 t\nq Q0 b 2 1.0 t\nq\tQ0\tc\t9\t 4e0\tt\n"
    assert [hit.chunk_id for hit in read_run(write_text(tmp_path / "r", content))["q"]] == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("q Q0 a 1 1.0\n", "line 1: expected 'query Q0 passage rank score tag', got 5"),
        ("q Q0 a 1 nan t\n", "line 1: score must be a finite number, got 'nan'"),
        ("q Q0 a 1 high t\n", "line 1: score must be a finite number, got 'high'"),
        ("q Q0 a x 1.0 t\n", "line 1: rank must be a whole number"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", "line 2: passage 'a' is ranked twice for query 'q'"),
    ],
)
def test_malformed_runs(tmp_path, content, complaint):
    with pytest.raises(DatasetError, match=complaint):
        read_run(write_text(tmp_path / "r", content))


@pytest.mark.parametrize(
    "hits", [[Hit("a", 1.0), Hit("b", 2.0)], [Hit("a", float("nan"))], [Hit("a b", 1.0)]]
)
def test_runs_that_cannot_be_written(tmp_path, hits):
    with pytest.raises(DatasetError):
        write_run({"q": hits}, tmp_path / "run")
