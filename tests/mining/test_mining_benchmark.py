"""The benchmark of mining: its judge, its page, and the figures that are asked for."""

import json

import pytest

from benchmarks import mining
from benchmarks.mining import KnowingJudge, Setting, measure_answers, measure_kernels, wordings
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document

FOUND = json.loads(mining.RESULTS.read_text(encoding="utf-8"))


def row_of(data, **setting):
    wanted = {"votes": None, "wording": "title", "target": True, "sticky": False, **setting}
    return next(row for row in data["rows"] if all(row[key] == value for key, value in wanted.items()))


@pytest.mark.parametrize("name", ["HotpotQA", "MuSiQue"])
def test_kernels_are_as_exact_as_asked(name):
    data = FOUND["a"][name]
    assert data["cases"] == {"HotpotQA": 200, "MuSiQue": 100}[name]
    assert row_of(data, flips=0.0)["exact"] >= 0.95
    noisy = row_of(data, flips=0.05)
    assert min(noisy["by_seed"]) >= 0.85 and len(noisy["by_seed"]) == 3
    assert noisy["exact"] > row_of(data, flips=0.05, votes=1)["exact"]


@pytest.mark.parametrize("name", ["RGB, two facets", "RGB, one fact"])
def test_the_offline_judge_is_as_accurate_as_asked(name):
    data = FOUND["b"][name]
    assert data["questions"] == 100 and data["accuracy"]["share"] >= 0.97
    wrong = data["positives"]["of"] - data["positives"]["count"]
    wrong += data["negatives"]["of"] - data["negatives"]["count"]
    assert len(data["errors"]) == wrong


TEXTS = {
    "p1": ("Avon (river)", "The Avon flows through the town of Bath and on to Bristol."),
    "p2": ("Bath", "Bath is a town in Somerset whose mayor is Dine Romero."),
    "p3": ("Cork", "Cork is a town in Ireland."),
    "p4": ("Delft", "Delft is a town in Holland, known for blue tiles."),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data set of two questions in the layout that the benchmark reads."""
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    home = tmp_path / "towns"
    (home / "qrels").mkdir(parents=True)

    def write(name, rows):
        (home / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("corpus.jsonl", [{"_id": key, "title": one[0], "text": one[1]} for key, one in TEXTS.items()])
    steps = [
        {"question": "Avon >> flows through", "answer": "Bath"},
        {"question": "Who is mayor of #1?", "answer": "Dine Romero"},
    ]
    first = {"answers": ["Dine Romero"], "decomposition": steps}
    second = {"answers": ["blue tiles", "Ireland"], "facet_answers": {"1": ["blue tiles"], "2": ["Ireland"]}}
    write(
        "queries.jsonl",
        [
            {"_id": "q1", "text": "Who is mayor of the town on the Avon?", "metadata": first},
            {"_id": "q2", "text": "What is Delft known for, and where is Cork?", "metadata": second},
        ],
    )
    write(
        "pools.jsonl",
        [
            {"_id": "q1", "positive": ["p1", "p2"], "negative": ["p3"]},
            {"_id": "q2", "positive": ["p4", "p3"], "negative": ["p1", "p2"], "positive_wrong": ["p2"]},
        ],
    )
    pairs = [("q1", "p1"), ("q1", "p2"), ("q2", "p4"), ("q2", "p3")]
    rows = ["query-id\tcorpus-id\tscore", *(f"{query}\t{passage}\t1" for query, passage in pairs)]
    (home / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n")
    facets = ["q1 1 p1 1", "q1 2 p2 1", "q2 1 p4 1", "q2 2 p3 1"]
    (home / "qrels" / "subtopics.txt").write_text("\n".join(facets) + "\n")
    return home


def test_the_measurement_finds_what_is_there(folder, monkeypatch):
    settings = (Setting("title"), Setting("sub-question"), Setting("title", flips=0.05))
    monkeypatch.setattr(mining, "SETTINGS", settings)
    found = measure_kernels(folder)
    assert (found["cases"], found["sizes"]) == (2, {2: 2})
    assert [row["exact"] for row in found["rows"][:2]] == [1.0, 1.0]
    assert len(found["rows"][2]["by_seed"]) == 3
    assert found["rows"][0]["calls"]["mean"] > 2


def test_answers_are_counted(folder):
    found = measure_answers(folder)
    assert found["positives"]["of"] == 3 and found["positives"]["count"] == 2
    assert found["errors"][0] | {"answer": ""} == {
        "query": "q1",
        "passage": "p1",
        "answer": "",
        "error": "said NO",
    }
    assert (found["negatives"]["count"], found["sets"]["count"], found["wrong facts"]["count"]) == (3, 2, 1)


def test_the_judge_speaks_in_its_own_words(folder):
    documents = {
        key: Document(key, f"{title}\n{text}", {"title": title}) for key, (title, text) in TEXTS.items()
    }
    words = wordings(folder, documents)
    assert words["title"]("q1", documents["p1"]) == "Avon"
    assert words["sub-question"]("q1", documents["p2"]) == "Who is mayor of Bath?"
    case = Case(id="q1", question="?")
    judge = KnowingJudge({"q1": ["p1", "p2"]}, documents, words["title"], flips=0.0, seed=0)
    assert judge.judge(case, [documents["p1"]]).missing == "Bath"
    assert judge.judge(case, [documents["p1"], documents["p2"]]).label == "YES"


def test_flips_come_as_often_as_they_should(folder):
    documents = {key: Document(key, text, {"title": title}) for key, (title, text) in TEXTS.items()}
    words = wordings(folder, documents)["title"]
    judge = KnowingJudge({"q1": ["p1"]}, documents, words, flips=0.05, seed=0)
    case = Case(id="q1", question="?")
    labels = [judge.judge(case, [documents["p1"]], attempt=attempt).label for attempt in range(4000)]
    assert 0.04 < labels.count("NO") / 4000 < 0.06 and labels.count("NO") == judge.flipped
