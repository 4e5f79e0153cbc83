"""Registries: what is written becomes cases, and what is wrong is named by file and line."""

import json

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.cases import Check
from dartboard.mining.registry import load_cases

INLINE = """\
cases:
  - id: "mine:01"
    question: "Which field?  "
    target: "toy.Robot"
    answer: "arms"
  - id: "mine:02"
    question: "Which two?"
    targets: ["toy.Robot", "toy.tools.Wrench"]
    facets: ["arms", ["size", "width"]]
    solution: code/fixed.py
    unfixed: code/unfixed.py
    check:
      command: [python, test_it.py, --strict]
      files: [code/test_it.py]
      timeout: 5
      candidate: program.py
"""
CHOICES = """\
cases:
  - id: "1"
    question: "Which?"
    choices: ["Alpha", "Beta"]
    correct: "b"
    target: "toy.Robot"
"""
ALL = """\
benchmarks:
  - {kind: multiple_choice, file: choices.yaml, prefix: quiz}
  - {kind: fix_errors, folder: fix, files: [code/shared.py], timeout: 9}
  - {kind: labelled, dataset: mini, limit: 1}
"""


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "home"
    for name in ("code/fixed.py", "code/unfixed.py", "code/test_it.py", "code/shared.py"):
        put(home, name, f"# {name.rpartition('/')[2]}\n")
    put(home, "choices.yaml", CHOICES)
    put(home, "fix/01/case.yaml", 'question: "Why?"\ntarget: "toy.Robot"\n')
    for name, text in (("unfixed", "x = 1"), ("fixed", "x = 2"), ("test_01", "import solution")):
        put(home, f"fix/01/{name}.py", text)
    put(home, "mini/corpus.jsonl", '{"_id": "d1", "text": "Robots lift."}\n')
    put(home, "mini/queries.jsonl", '{"_id": "q1", "text": "Who lifts?"}\n{"_id": "q2", "text": "Who?"}\n')
    put(home, "mini/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n")
    put(tmp_path, "secret.txt", "hunter2")
    return home


def put(folder, name, text):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_cases_of_their_own(folder):
    first, second = load_cases(put(folder, "registry.yaml", INLINE))
    assert (first.id, first.question, first.kind) == ("mine:01", "Which field?", "question")
    assert first.targets == ("toy.Robot",) and first.answers == ("arms",)
    assert first.place == "home/registry.yaml, line 2"
    assert second.facets == (("arms",), ("size", "width")) and second.answers == ()
    assert second.solution == "# fixed.py\n" and second.unfixed == "# unfixed.py\n"
    assert second.check == Check(
        command=("python", "test_it.py", "--strict"),
        files={"test_it.py": "# test_it.py\n"},
        timeout=5,
        candidate="program.py",
    )


def test_every_kind_of_benchmark(folder):
    put(folder, "registry.yaml", ALL)
    choice, fix, labelled = load_cases(folder)
    assert (choice.id, choice.kind, choice.answers) == ("quiz:1", "multiple_choice", ("Beta",))
    assert (fix.id, fix.kind, fix.unfixed, fix.solution) == ("fix_errors:01", "fix_error", "x = 1", "x = 2")
    assert fix.check.command == ("python", "test_01.py") and fix.check.timeout == 9
    assert set(fix.check.files) == {"test_01.py", "shared.py"}
    assert (labelled.id, labelled.targets) == ("mini:q1", ("d1",))


def test_an_id_of_a_data_set_that_no_file_of_ours_can_hold_is_an_error_of_the_data_set(folder):
    put(folder, "registry.yaml", ALL)
    row = json.dumps({"_id": "q\u0085one", "text": "Who lifts?"})
    put(folder, "mini/queries.jsonl", row + "\n")
    put(folder, "mini/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\u0085one\td1\t1\n")
    with pytest.raises(DatasetError) as caught:
        load_cases(folder)
    assert caught.value.field == "id" and "U+0085" in str(caught.value)


def test_json_is_as_good(folder):
    cases = [{"id": "a", "question": "Who \ud83d\ude00?", "target": "x"}]
    (case,) = load_cases(put(folder, "registry.json", json.dumps({"cases": cases})))
    assert case.question == "Who 😀?"
    put(folder, "registry.yaml", INLINE)
    with pytest.raises(DatasetError, match="several registries"):
        load_cases(folder)


FAULTS = [
    (INLINE, 'target: "toy.Robot"', 'tarjet: "toy.Robot"', "line 4: .*did you mean 'target'"),
    (INLINE, 'id: "mine:02"', 'id: "mine:01"', "occurs twice"),
    (INLINE, 'answer: "arms"', "answer: 012", "line 5"),
    (INLINE, 'answer: "arms"', "answer: NO", "line 5"),
    (INLINE, 'answer: "arms"', 'answer: " "', "line 5: .*empty"),
    (INLINE, 'answer: "arms"', 'answers: ["a", "a"]', "twice"),
    (INLINE, '    target: "toy.Robot"\n', '    target: "a"\n    targets: ["b"]\n', "not both"),
    (INLINE, 'question: "Which field?  "', "kind: x", "kind|question"),
    (INLINE, '  - id: "mine:01"\n    question', "  - question", "'id' is missing"),
    (INLINE, "timeout: 5", "timeout: 0", "line 15"),
    (INLINE, "command: [python, test_it.py, --strict]", "command: []", "command"),
    (INLINE, "code/fixed.py", "../secret.txt", "leads out"),
    (INLINE, "code/fixed.py", "code/gone.py", "there is no"),
    (INLINE, "cases:", "cases: &all", None),
    (INLINE, 'answer: "arms"', "answer: *all", "alias"),
    (INLINE, "cases:\n", "cases: []\nother:\n", "other"),
    (ALL, "kind: labelled", "kind: riddles", "line 4"),
    (ALL, "choices.yaml", "../secret.txt", "leads out"),
    (ALL, "file: choices.yaml, ", "", "'file' is missing"),
    (ALL, "folder: fix", "folder: code", "case"),
    (ALL, "dataset: mini", "dataset: ../mini", "leads out|no data set"),
]


@pytest.mark.parametrize(("text", "old", "new", "said"), FAULTS)
def test_what_is_wrong_is_named_with_its_place(folder, text, old, new, said):
    assert old in text
    path = put(folder, "registry.yaml", text.replace(old, new, 1))
    if said is None:
        assert load_cases(path)
        return
    with pytest.raises(DatasetError, match=said) as caught:
        load_cases(path)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("choices.yaml", CHOICES.replace('"b"', '"c"'), "correct"),
        ("choices.yaml", CHOICES.replace('["Alpha", "Beta"]', '["Alpha"]'), "2 to 26"),
        ("choices.yaml", "cases: []", "cases"),
        ("fix/01/fixed.py", "x = 1", "the same as"),
        ("fix/01/test_02.py", "", "one test_"),
        ("fix/01/solution.py", "", "solution.py"),
        ("fix/01/shared.py", "", "shared|for all cases"),
        ("fix/01/case.yaml", "question: 7", "line 1"),
    ],
)
def test_files_of_a_benchmark_are_checked(folder, name, text, said):
    put(folder, name, text)
    put(folder, "registry.yaml", ALL)
    with pytest.raises(DatasetError, match=said):
        load_cases(folder)


def test_a_link_does_not_lead_out(folder):
    (folder / "code" / "fixed.py").unlink()
    (folder / "code" / "fixed.py").symlink_to(folder.parent / "secret.txt")
    with pytest.raises(DatasetError, match="leads out"):
        load_cases(put(folder, "registry.yaml", INLINE))


@pytest.mark.parametrize("text", ["", "[]", "cases: {", "\tx", "{}", "cases: []"])
def test_files_without_cases(folder, text):
    with pytest.raises(DatasetError, match=r"registry\.yaml"):
        load_cases(put(folder, "registry.yaml", text))
    with pytest.raises(DatasetError, match="there is no"):
        load_cases(folder / "nothing")
