"""Raw candidates: written once, read back whole, refused when they are not."""

import json

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.candidates import extract, read_candidates
from dartboard.mining.cases import Case, Check
from dartboard.mining.context_pool import PoolSettings
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from tests.models import WordBag

CORPUS = MemoryCorpus(
    "toy 1.0", [Document(f"d{n}", f"robot {n}", {"line": n}) for n in range(20)], model=WordBag()
)
CASES = [
    Case(
        id="fix:01",
        question="Which “robot”?",
        targets=("d3",),
        facets=(("a", "b"), ("c",)),
        kind="fix_error",
        unfixed="x = 1\n",
        check=Check(command=("python", "t.py"), files={"t.py": "pass\n"}),
        place="cases.yaml, line 3",
    ),
    Case(id="quiz", question="robot 4?", answers=("d4",), kind="multiple_choice", choices=("d4", "d5")),
]


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "deep" / "raw.jsonl"
    return path, extract(CASES, CORPUS, path)


def test_what_is_written_is_read(written):
    path, raw = written
    assert read_candidates(path) == raw and raw.cases == CASES
    assert raw.head.corpus == "toy 1.0" and raw.head.settings["neighbours"] == 2
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(head)["cases"] == 2 == len(rows)
    assert "“robot”" in rows[0], "text is readable"


def test_the_same_input_gives_the_same_bytes_and_another_is_known(written):
    path, raw = written
    before = path.read_bytes()
    backwards = MemoryCorpus("toy 1.0", reversed([*CORPUS]), model=WordBag())
    assert extract(CASES, backwards, path).head == raw.head
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
    assert extract(CASES[:1], CORPUS, path).head != raw.head
    assert extract(CASES, CORPUS, path, settings=PoolSettings(seed=1)).head != raw.head


def change(path, line, **fields):
    lines = path.read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[line - 1])
    for name, value in fields.items():
        *way, last = name.split("__")
        place = row
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    lines[line - 1] = json.dumps(row, separators=(",", ":"))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "fields", "problem"),
    [
        (1, {"format": "something"}, "line 1"),
        (1, {"version": 9}, "line 1"),
        (1, {"cases": 3}, "line 4"),
        (2, {"case__kind": "riddle"}, "kind"),
        (2, {"case__id": ""}, "empty"),
        (3, {"case__id": "a\u2028b"}, "control character"),
        (2, {"case__answers": [1]}, "answers"),
        (2, {"case__check__timeout": "x"}, "timeout"),
        (3, {"contexts": ["x"]}, "contexts"),
        (3, {"contexts__0__document": {}}, "missing"),
    ],
)
def test_files_that_were_changed_are_refused(written, line, fields, problem):
    path, _ = written
    change(path, line, **fields)
    with pytest.raises(DatasetError, match=problem) as caught:
        read_candidates(path)
    assert "raw.jsonl" in str(caught.value)


def test_torn_and_missing_files(written):
    path, _ = written
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DatasetError, match="line 3"):
        read_candidates(path)
    path.write_text("pairs: []\n")
    with pytest.raises(DatasetError, match="not a file of raw candidates"):
        read_candidates(path)
    with pytest.raises(DatasetError, match="extract"):
        read_candidates(path.parent / "missing.jsonl")
    with pytest.raises(DatasetError, match="twice"):
        extract([CASES[1], CASES[1]], CORPUS, path)
