"""TREC files: read, written, read again; and malformed."""

import pytest

from dartboard.datasets import read_qrels, read_run, read_subtopics, write_qrels, write_run, write_subtopics
from dartboard.errors import ConfigError, DatasetError
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
        ("1 0 d1 1\n1 0 d2 high\n", "line 2: grade must be a whole number"),
        ("1 0 d1 1\n1 0 d1 2\n", "line 2: query '1' and passage 'd1' are judged 2, but 1 before"),
        ("1 0 d1 1 x\n", "line 1: expected 'query 0 passage grade'"),
        ("1 0 d1 one\n1 0 d2 2\n", "line 1: grade must be a whole number"),
        ("1\td1\t1.0\n", "line 1: grade must be a whole number"),
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
    run = {"q1": {"b": 2.5, "a": 0.1, "c": -1.0}, "q2": {"a": 1 / 3}}
    write_run(run, tmp_path / "run", tag="mine")
    assert read_run(tmp_path / "run") == run
    assert (tmp_path / "run").read_text().splitlines()[1] == "q1 Q0 a 2 0.1 mine"


def test_lists_are_written_so_that_every_tool_keeps_their_order(tmp_path):
    write_run({"q": ["m", "z", "a"]}, tmp_path / "run")
    assert read_run(tmp_path / "run") == {"q": {"m": 3.0, "z": 2.0, "a": 1.0}}
    assert list(read_run(tmp_path / "run")["q"]) == ["m", "z", "a"]


def test_runs_are_ordered_as_trec_eval_does(tmp_path):
    content = "q Q0 a 3 1.0 t\nq Q0 b 2 1.0 t\nq\tQ0\tc\t9\t 4e0\tt\n"
    assert list(read_run(write_text(tmp_path / "r", content))["q"]) == ["c", "b", "a"]
    write_run({"q": {"a": 1.0, "b": 1.0, "c": 2.0}}, tmp_path / "run")
    assert [line.split()[2] for line in (tmp_path / "run").read_text().splitlines()] == ["c", "b", "a"]


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


@pytest.mark.parametrize("ranking", [["a", "a"], {"a": float("nan")}, [""]])
def test_runs_that_cannot_be_written(tmp_path, ranking):
    with pytest.raises(DatasetError):
        write_run({"q": ranking}, tmp_path / "run")


def test_white_space_in_ids_of_a_run_is_written_so_that_it_can_be_read(tmp_path):
    write_run({"a question": ["docs/my file.md", "x"]}, tmp_path / "run.trec", tag="my run")
    assert read_run(tmp_path / "run.trec") == {"a%20question": {"docs/my%20file.md": 2.0, "x": 1.0}}


@pytest.mark.parametrize("grade", ["9" * 5000, "1000", "-101"])
def test_a_grade_is_a_small_number(tmp_path, grade):
    path = tmp_path / "qrels"
    path.write_text(f"q 0 d {grade}\n")
    with pytest.raises(DatasetError, match="grade") as caught:
        read_qrels(path)
    assert len(str(caught.value)) < 300
