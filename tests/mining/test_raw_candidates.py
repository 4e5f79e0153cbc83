"""Raw candidates: written once, read back whole, refused when they are not."""

import json

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case, Check
from dartboard.mining.context_pool import ContextPool, PooledContext, build_pool
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from dartboard.mining.raw_candidates import read_candidates, write_candidates
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
        solution="x = 2\n",
        check=Check(
            command=("python", "t.py"),
            files={"t.py": "pass\n"},
            timeout=3.5,  # timing: stored, nothing runs
        ),
        place="cases.yaml, line 3",
    ),
    Case(id="quiz", question="robot 4?", answers=("d4",), kind="multiple_choice", choices=("d4", "d5")),
]
SETTINGS = {"seed": 0, "random_negatives": 5}


@pytest.fixture
def written(tmp_path):
    pools = [build_pool(case, CORPUS) for case in CASES]
    path = tmp_path / "deep" / "raw.jsonl"
    write_candidates(path, pools, corpus=CORPUS, settings=SETTINGS)
    return path, pools


def test_what_is_written_is_read(written):
    path, pools = written
    raw = read_candidates(path)
    assert raw.pools == pools and raw.cases == CASES
    assert (raw.corpus_name, raw.fingerprint, raw.settings) == ("toy 1.0", CORPUS.fingerprint, SETTINGS)
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(head)["version"] == 1 and len(rows) == 2
    assert "“robot”" in rows[0], "text is readable"


def test_the_same_input_gives_the_same_bytes(written):
    path, _ = written
    before = path.read_bytes()
    backwards = MemoryCorpus("toy 1.0", reversed([*CORPUS]), model=WordBag())
    pools = (build_pool(case, backwards) for case in CASES)
    write_candidates(path, pools, corpus=backwards, settings=dict(reversed(SETTINGS.items())))
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_what_was_there(written):
    path, pools = written
    before = path.read_bytes()
    odd = ContextPool(CASES[1], None, [PooledContext(Document("o", "x", {"odd": {1}}), ("random",))])
    for settings, what in ((SETTINGS, [*pools, odd]), ({"bad": float("nan")}, pools)):
        with pytest.raises(DatasetError, match="plain JSON"):
            write_candidates(path, what, corpus=CORPUS, settings=settings)
        assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def change(path, line, **fields):
    lines = path.read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[line - 1])
    for name, value in fields.items():
        *way, last = name.split("__")
        place = row
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    lines[line - 1] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "fields", "problem"),
    [
        (1, {"format": "something"}, "line 1: not a file of raw candidates"),
        (1, {"version": 2}, "line 1: format version 2, but this dartboard reads 1"),
        (1, {"cases": 3}, "line 4: 3 cases were written and 2 are there"),
        (2, {"target": "d99"}, "line 2: target 'd99' is not among the contexts"),
        (2, {"case__kind": "riddle"}, "line 2: unknown kind 'riddle'"),
        (2, {"case__id": ""}, "line 2: 'id' is empty"),
        (2, {"case__id": float("nan")}, "line 2: 'id' is NaN"),
        (2, {"case__id": "a\0b"}, "line 2: id 'a\\x00b' holds the control character U+0000"),
        (3, {"case__id": "a\u2028b"}, "line 3: id 'a\\u2028b' holds the control character U+2028"),
        (2, {"case__answers": [1]}, "line 2: each of 'answers' must be a string"),
        (2, {"case__facets": [["a"], [2]]}, "line 2: each of 'facets' must be a string"),
        (2, {"case__check__timeout": "x"}, "line 2: 'timeout' of a check"),
        (2, {"case__check__files": {"t.py": 1}}, "line 2: the files of a check"),
        (3, {"case__id": "fix:01"}, "case 'fix:01' occurs twice"),
        (3, {"contexts": ["x"]}, "line 3: each of 'contexts' must be an object"),
        (3, {"contexts__0__origins": ["luck"]}, "line 3: unknown origin 'luck'"),
        (3, {"contexts__0__fqn": None}, "line 3: 'fqn' is missing"),
    ],
)
def test_files_that_were_changed_are_refused(written, line, fields, problem):
    path, _ = written
    change(path, line, **fields)
    with pytest.raises(DatasetError) as caught:
        read_candidates(path)
    assert problem in str(caught.value) and "raw.jsonl" in str(caught.value)


def test_torn_and_missing_files(written):
    path, _ = written
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DatasetError, match="line 3: not JSON"):
        read_candidates(path)
    path.write_text("")
    with pytest.raises(DatasetError, match="not a file of raw candidates"):
        read_candidates(path)
    path.write_text("pairs: []\n")
    with pytest.raises(DatasetError, match=r"line 1: not a file of raw candidates.*dartboard mine extract"):
        read_candidates(path)
    with pytest.raises(DatasetError, match="dartboard mine extract"):
        read_candidates(path.parent / "missing.jsonl")
