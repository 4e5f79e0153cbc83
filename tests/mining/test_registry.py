"""Registries: what is written becomes cases, and what is wrong is named by file and line."""

import json
import os

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.benchmark_registry import load_cases
from dartboard.mining.cases import Check

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


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "home"
    (home / "code").mkdir(parents=True)
    for name in ("fixed.py", "unfixed.py", "test_it.py"):
        (home / "code" / name).write_text(f"# {name}\n")
    (tmp_path / "secret.txt").write_text("hunter2")
    return home


def write(folder, text, name="registry.yaml"):
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_cases_of_their_own(folder):
    first, second = load_cases(write(folder, INLINE))
    assert (first.id, first.question, first.kind) == ("mine:01", "Which field?", "question")
    assert first.targets == ("toy.Robot",) and first.answers == ("arms",)
    assert first.place == "home/registry.yaml, line 2"
    assert second.facets == (("arms",), ("size", "width")) and second.answers == ()
    assert second.solution == "# fixed.py\n" and second.unfixed == "# unfixed.py\n"
    assert second.check == Check(
        command=("python", "test_it.py", "--strict"),
        files={"test_it.py": "# test_it.py\n"},
        timeout=5,  # timing: read from the file, nothing runs
        candidate="program.py",
    )


def test_a_folder_stands_for_its_registry(folder):
    write(folder, INLINE)
    assert load_cases(folder) == load_cases(folder / "registry.yaml")
    write(folder, INLINE, "registry.yml")
    with pytest.raises(DatasetError, match=r"several registries \(registry.yaml, registry.yml\)"):
        load_cases(folder)
    with pytest.raises(DatasetError, match="no registry"):
        load_cases(folder / "code")
    with pytest.raises(DatasetError, match="name a registry"):
        load_cases(folder / "missing")


def test_json_says_the_same(folder):
    data = {
        "cases": [
            {"id": "a", "question": 'Tab\t, slash \\ud83d, smile "\U0001f600"?', "target": "x/y"},
            {"id": "b", "question": "Umlaut ü?", "answers": ["ü", "\\"]},
        ]
    }
    for layout in ({"indent": "\t"}, {"separators": (",", ":")}, {"ensure_ascii": False}):
        first, second = load_cases(write(folder, json.dumps(data, **layout), "cases.json"))
        assert first.question == data["cases"][0]["question"] and first.targets == ("x/y",)
        assert second.answers == ("ü", "\\")
    assert second.place.startswith("home/cases.json, line ")
    for number in ("NaN", "-Infinity", "1e5"):
        problem = rf"cases.json, line 2: 'id' must be a string, but {number} is"
        with pytest.raises(DatasetError, match=problem):
            load_cases(write(folder, f'{{"cases": [\n{{"id": {number}, "question": "x"}}]}}', "cases.json"))
    with pytest.raises(DatasetError, match=r"cases.json, line 2: .*U\+0000"):
        load_cases(write(folder, '{"cases": [\n{"id": "a\\u0000", "question": "x"}]}', "cases.json"))
    with pytest.raises(DatasetError, match=r"cases.json, line 2: not JSON"):
        load_cases(write(folder, '{\n"cases": [}\n', "cases.json"))


def one(extra, start='cases:\n  - id: "a"\n    question: "Which?"\n'):
    return start + "".join(f"    {line}\n" for line in extra.splitlines())


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty: expected 'benchmarks' or 'cases'"),
        ("- a\n", 1, "the file must be a mapping"),
        ("cases: []\n", 1, "there are no cases"),
        ("case: []\n", 1, "unknown key 'case': did you mean 'cases'?"),
        ("zebra: []\n", 1, "unknown key 'zebra': known keys: benchmarks, cases"),
        ("cases: yes\n", 1, "'cases' must be a list"),
        ("cases: [a]\n", 1, "each of 'cases' must be a mapping"),
        ("cases:\n  - question: x\n", 2, "'id' is missing"),
        ("cases:\n  - id: a\n", 2, "'question' is missing"),
        ("cases:\n  - id: a\n    question: ' '\n", 3, "'question' is empty"),
        (
            "cases:\n  - id: 012\n    question: x\n",
            2,
            "'id' must be a string, but '012' is int: put it in quotes",
        ),
        (one("answer: NO"), 4, "'answer' must be a string, but 'NO' is bool"),
        (one("answers: [yes]"), 4, "each of 'answers' must be a string, but 'yes' is bool"),
        (one("answers: [1:30]"), 4, "put it in quotes"),
        (one("anwser: x"), 4, "unknown key 'anwser': did you mean 'answer'?"),
        (one("answer: x\nchecks:\n\n  command: [python]"), 5, "unknown key 'checks': did you mean 'check'?"),
        (one("check:\n  command: [a]\n  file:\n    - x"), 6, "unknown key 'file': did you mean 'files'?"),
        ("cases:\n  - id: NaN\n    question: x\n", 2, "'id' must be a string, but NaN reads like a number"),
        ("cases:\n  - id: .nan\n    question: x\n", 2, "put it in quotes"),
        ('cases:\n  - question: x\n    id: "a\\0b"\n', 3, "holds the control character U+0000: take it out"),
        ('cases:\n  - id: "a\\nb"\n    question: x\n', 2, "holds the control character U+000A"),
        ('cases:\n  - id: "a\\eb"\n    question: x\n', 2, "holds the control character U+001B"),
        (one("answer: x\nanswers: [y]"), 2, "give 'answer' or 'answers', not both"),
        (one("answers: [x, '']"), 4, "one of 'answers' is empty"),
        (one("targets: [x, x]"), 4, "one of 'targets' occurs twice"),
        (one("facets: [[]]"), 4, "one of 'facets' is empty"),
        (one("facets: [[NO]]"), 4, "each string of 'facets' must be a string"),
        (one("answer: &a x\ntarget: *a"), 5, "alias *a: write the value out"),
        (one("answer: x\nanswer: y"), 5, "key 'answer' occurs twice"),
        (one("answer: [x"), 5, "not YAML"),
        (one("solution: /etc/passwd"), 4, "'solution': '/etc/passwd' must be relative"),
        (one("solution: C:\\x.py"), 4, "must be relative"),
        (one("solution: ../secret.txt"), 4, "must not contain '..'"),
        (one("solution: code/../../secret.txt"), 4, "must not contain '..'"),
        (one("solution: link.txt"), 4, "is a link to outside"),
        (one("solution: code/missing.py"), 4, "there is no"),
        (one("solution: code"), 4, "must be a file"),
        (one("solution: pipe"), 4, "must be a file"),
        (one('solution: "a\\0b"'), 4, "cannot be a path"),
        (one(f"solution: {'a' * 300}"), 4, "cannot be a path"),
        (one("solution: circle"), 4, "cannot be a path"),
        ("benchmarks:\n  - {kind: api_questions, file: pipe}\n", 2, "'file': "),
        (one("solution: big.py"), 4, "more than 1,000,000"),
        (one("solution: latin.py"), 4, "is not UTF-8"),
        (one("check: {files: [code/test_it.py]}"), 4, "'command' is missing"),
        (one("check: {command: [python], time: 3}"), 4, "unknown key 'time': did you mean 'timeout'?"),
        (one("check: {command: [python], timeout: 0}"), 4, "'timeout' must be a number in [0.1, 3600]"),
        (one("check: {command: [python], timeout: 1:30}"), 4, "'timeout' must be a number"),
        (one("check: {command: [python], timeout: '5'}"), 4, "'timeout' must be a number"),
        (one("check: {command: [python], files: [../secret.txt]}"), 4, "'files': '../secret.txt'"),
        (one("check: {command: [python], files: [code/fixed.py, fixed.py]}"), 4, "two files are called"),
        (one("check: [python]"), 4, "'check' must be a mapping"),
        ("benchmarks:\n  - file: x\n", 2, "'kind' is missing"),
        ("benchmarks:\n  - kind: quiz\n", 2, "unknown kind 'quiz': choose one of api_questions, fix_errors"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(folder, text, line, problem):
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe")
    (folder / "big.py").write_text("#" * 1_000_001)
    (folder / "latin.py").write_bytes(b"# caf\xe9")
    (folder / "fixed.py").write_text("")
    path = write(folder, text)
    with pytest.raises(DatasetError) as caught:
        load_cases(path)
    assert str(caught.value).startswith(f"{path}, line {line}: "), caught.value
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_id_that_occurs_twice_names_both_places(folder):
    text = one("answer: x") + '  - id: "a"\n    question: "Again?"\n'
    with pytest.raises(
        DatasetError, match=r"line 5: id 'a' occurs twice, first at home/registry.yaml, line 2"
    ):
        load_cases(write(folder, text))


def test_a_link_that_stays_inside_is_followed(folder):
    (folder / "fix.py").symlink_to(folder / "code" / "fixed.py")
    assert load_cases(write(folder, one("solution: fix.py")))[0].solution == "# fixed.py\n"


def test_a_bomb_of_aliases_is_refused_before_it_expands(folder):
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(DatasetError, match="line 2: alias"):
        load_cases(write(folder, "\n".join(layers)))


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.system ''", "!evil {a: 1}"]
)
def test_a_tag_builds_nothing(folder, tag, monkeypatch):
    monkeypatch.setattr("os.system", lambda *_: pytest.fail("a registry ran a command"))
    with pytest.raises(DatasetError, match=r"registry\.yaml, line"):
        load_cases(write(folder, f"cases:\n- id: {tag}\n  question: Which?\n"))
