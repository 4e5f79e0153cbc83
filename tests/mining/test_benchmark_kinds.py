"""Benchmarks of each kind become cases."""

import subprocess
import sys

import pytest

from dartboard.datasets.text_dataset import TextDataset
from dartboard.errors import DatasetError
from dartboard.mining.benchmark_registry import labelled_cases, load_cases

QUESTION = 'cases:\n  - id: "01"\n    question: "Which field?"\n    target: toy.Robot\n    answer: arms\n'
CHOICE = """\
cases:
  - id: "01"
    question: "How many arms?"
    choices: ["one", "two", "NO"]
    correct: "{correct}"
    target: toy.Robot
"""


def registry(folder, text):
    (folder / "registry.yaml").write_text(f"benchmarks:\n  - {{{text}}}\n")
    return load_cases(folder)


def test_api_questions(tmp_path):
    (tmp_path / "questions.yaml").write_text(QUESTION)
    (case,) = registry(tmp_path, "kind: api_questions, file: questions.yaml")
    assert (case.id, case.kind, case.answers) == ("api_questions:01", "api_question", ("arms",))
    assert case.place == f"{tmp_path.name}/questions.yaml, line 2"
    (case,) = registry(tmp_path, "kind: api_questions, file: questions.yaml, prefix: quiz")
    assert case.id == "quiz:01"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (QUESTION.replace("    target: toy.Robot\n", ""), "questions.yaml, line 2: 'target' is missing"),
        (QUESTION.replace("    answer: arms\n", ""), "questions.yaml, line 2: 'answer' is missing"),
        (QUESTION + "    solution: x.py\n", "questions.yaml, line 6: unknown key 'solution'"),
        ("cases: []\n", "questions.yaml, line 1: 'cases' is empty"),
        ("case: []\n", "did you mean 'cases'"),
    ],
)
def test_api_questions_that_cannot_be_used(tmp_path, text, problem):
    (tmp_path / "questions.yaml").write_text(text)
    with pytest.raises(DatasetError) as caught:
        registry(tmp_path, "kind: api_questions, file: questions.yaml")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("kind: api_questions, file: ../x.yaml", "line 2: 'file': '../x.yaml' must not contain"),
        ("kind: api_questions, file: x.yaml", "line 2: 'file': there is no"),
        ("kind: api_questions, fil: x.yaml", "unknown key 'fil': did you mean 'file'?"),
        ("kind: fix_errors, folder: nowhere", "line 2: 'folder': there is no"),
        ("kind: fix_errors, folder: registry.yaml", "must be a folder"),
        ("kind: fix_errors, folder: empty", "has no case"),
        ("kind: labelled, dataset: ../other", "must not contain '..'"),
        ("kind: labelled, dataset: /etc", "must be relative"),
        ("kind: labelled, dataset: tests", "no data set 'tests'"),
        ("kind: labelled, dataset: empty", "no data set of a known format"),
        ("kind: labelled, dataset: empty, limit: 0", "'limit' must be a number in [1,"),
    ],
)
def test_entries_that_cannot_be_used(tmp_path, entry, problem):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError) as caught:
        registry(tmp_path, entry)
    assert problem in str(caught.value) and "registry.yaml, line 2" in str(caught.value)


@pytest.mark.parametrize("correct", ["two", "B", "b"])
def test_multiple_choice(tmp_path, correct):
    (tmp_path / "choices.yaml").write_text(CHOICE.format(correct=correct))
    (case,) = registry(tmp_path, "kind: multiple_choice, file: choices.yaml")
    assert (case.id, case.kind) == ("multiple_choice:01", "multiple_choice")
    assert case.choices == ("one", "two", "NO") and case.answers == ("two",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            CHOICE.format(correct="D"),
            "line 5: 'correct' must be one of the choices or a letter A … C, got 'D'",
        ),
        (CHOICE.format(correct="B").replace('"NO"', "NO"), "line 4: each of 'choices' must be a string"),
        (CHOICE.format(correct="B").replace('"two"', '"one"'), "2 to 26 different texts"),
        (CHOICE.format(correct="B") + "    answer: two\n", "unknown key 'answer'"),
    ],
)
def test_choices_that_cannot_be_used(tmp_path, text, problem):
    (tmp_path / "choices.yaml").write_text(text)
    with pytest.raises(DatasetError) as caught:
        registry(tmp_path, "kind: multiple_choice, file: choices.yaml")
    assert problem in str(caught.value)


@pytest.fixture
def fixes(tmp_path):
    folder = tmp_path / "fixes" / "divide"
    folder.mkdir(parents=True)
    (folder / "case.yaml").write_text("question: Why does it fail?\ntarget: toy.divide\nanswer: zero\n")
    (folder / "unfixed.py").write_text("def divide(a, b):\n    return a / b\n")
    (folder / "fixed.py").write_text("def divide(a, b):\n    return a / b if b else None\n")
    (folder / "test_divide.py").write_text(
        "import limits, solution\nassert solution.divide(1, limits.ZERO) is None\n"
    )
    (tmp_path / "limits.py").write_text("ZERO = 0\n")
    return tmp_path


ENTRY = "kind: fix_errors, folder: fixes, files: [limits.py], timeout: 9"


def test_errors_to_fix(fixes, tmp_path):
    (fixes / "fixes" / "__pycache__").mkdir()
    (case,) = registry(fixes, ENTRY)
    assert (case.id, case.kind, case.targets) == ("fix_errors:divide", "fix_error", ("toy.divide",))
    assert "if b else" in case.solution and "if b else" not in case.unfixed
    assert case.check.timeout == 9 and case.check.command == ("python", "test_divide.py")
    assert sorted(case.check.files) == ["limits.py", "test_divide.py"]
    for code, solved in ((case.unfixed, False), (case.solution, True)):
        place = tmp_path / f"run{solved}"
        place.mkdir()
        for name, text in {**case.check.files, case.check.candidate: code}.items():
            (place / name).write_text(text)
        run = subprocess.run([sys.executable, *case.check.command[1:]], cwd=place, capture_output=True)
        assert (run.returncode == 0) is solved


def broken(folder, name):
    case = folder / "fixes" / "divide"
    match name:
        case "same":
            (case / "fixed.py").write_text((case / "unfixed.py").read_text())
        case "no test":
            (case / "test_divide.py").unlink()
        case "two tests":
            (case / "test_more.py").write_text("")
        case "no question":
            (case / "case.yaml").write_text("target: x\n")
        case "id":
            (case / "case.yaml").write_text("id: '1'\nquestion: x\n")
        case "clash":
            (case / "limits.py").write_text("")
        case "candidate":
            (case / "solution.py").write_text("")
        case _:
            (case / name).unlink()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("same", "fixed.py is the same as unfixed.py"),
        ("no test", "must have one test_"),
        ("two tests", "has test_divide.py, test_more.py"),
        ("no question", "case.yaml, line 1: 'question' is missing"),
        ("id", "case.yaml, line 1: unknown key 'id'"),
        ("clash", "limits.py is also the name of a file for all cases"),
        ("candidate", "solution.py is the candidate's name"),
        ("unfixed.py", "there is no"),
        ("case.yaml", "there is no"),
    ],
)
def test_errors_that_cannot_be_used(fixes, name, problem):
    broken(fixes, name)
    with pytest.raises(DatasetError) as caught:
        registry(fixes, ENTRY)
    assert problem in str(caught.value) and "divide" in str(caught.value)


def test_a_labelled_set(tmp_path, monkeypatch):
    data = tmp_path / "home" / "mini"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q1", "text": "One?"}\n{"_id": "q2", "text": "Two?"}\n')
    (data / "qrels" / "test.tsv").write_text("q\td\ts\nq1\td1\t1\nq1\td2\t2\nq2\td1\t0\n")
    home = tmp_path / "home"
    first, second = registry(home, "kind: labelled, dataset: mini")
    assert (first.id, first.question, first.targets) == ("mini:q1", "One?", ("d2", "d1"))
    assert second.targets == () and second.kind == "question"
    monkeypatch.setenv("DARTBOARD_DATA", str(home))
    other = tmp_path / "elsewhere"
    other.mkdir()
    (case,) = registry(other, "kind: labelled, dataset: mini, limit: 1, prefix: m, split: test")
    assert case.id == "m:q1" and case.place == "elsewhere/registry.yaml, line 2"


def test_required_passages_come_before_relevant_ones():
    data = TextDataset(
        name="qa",
        passages=[],
        queries={"a": "One?", "b": "Two?", "c": " "},
        qrels={"a": {"p": 1, "q": 1}, "b": {"r": 1}},
        kernels={"a": ["q"]},
        answers={"b": ["yes", "", "yes"]},
    )
    first, second = labelled_cases(data)
    assert (first.id, first.targets) == ("a", ("q",)) and second.targets == ("r",)
    assert second.answers == ("yes",) and second.place == "qa"
