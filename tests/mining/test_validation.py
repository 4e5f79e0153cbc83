"""Mined files, whole and broken: each problem is found, at its line."""

import re

import pytest

from dartboard.datasets import load_mined
from dartboard.errors import DatasetError
from dartboard.mining.dataset_writer import dump
from dartboard.mining.validation import validate
from tests.mining.mined import WRONG, controls, mined, pair

SEED = """\
pairs:
  - id: "fix_errors:01"
    query: "How do I create a minimal LlmAgent?"
    # Verified by Gemini 3 Pro to contain the answer
    positive_ctxs:
      - fqn: "google.adk.agents.llm_agent.LlmAgent"
        text: "..."
    # Verified by Gemini 3 Pro to NOT contain the answer
    negative_ctxs:
      - fqn: "google.adk.plugins.RetryPlugin"
        text: "..."
"""


def checked(tmp_path, text):
    file = tmp_path / "retrieval_dataset.yaml"
    file.write_text(text, encoding="utf-8")
    return validate(file)


def errors(problems):
    return [one for one in problems if one.level == "error"]


def test_what_we_write_is_sound(tmp_path):
    assert checked(tmp_path, dump(mined())) == []


def test_a_file_as_in_the_design_is_sound_with_warnings(tmp_path):
    problems = checked(tmp_path, SEED)
    assert problems and errors(problems) == []
    assert any("controls" in one.message for one in problems)
    assert load_mined(tmp_path / "retrieval_dataset.yaml").qrels["fix_errors:01"]


BROKEN = [
    ('verdict: "YES"', 'verdict: "MAYBE"', "MAYBE|'YES', 'NO' or 'UNSURE'"),
    ('query: "How', 'querry: "How', "did you mean 'query'"),
    ("  query:", "  kind: 7\n  query:", "kind"),
    ('id: "fix_errors:01"', "id: 012", "quotes"),
    ('id: "fix_errors:01"', "id: NO", "quotes"),
    ('id: "fix_errors:01"', 'id: ""', "empty"),
    ('id: "fix_errors:01"', 'id: "a\\u0007"', "control character"),
    ('evidence: "tools=[Tool(f)]"', 'evidence: "nobody wrote this"', "does not stand"),
    ('evidence: "class Agent … takes a function"', 'evidence: "out of thin air"', "stands in no text"),
    ('  kernel:\n  - "toy.Agent"', '  kernel:\n  - "toy.Retry"', "not among its positive_ctxs"),
    ('kernel_status: "minimal"', 'kernel_status: "unresolved"', "must be empty"),
    ('fqn: "toy.Odd"', "fqn: &odd toy.Odd", None),
    ("    cases: 44\n  false_negative", "    cases: many\n  false_negative", "integer"),
    ("corpus:\n", "corpus: *none\n", "alias"),
    ("version: 2", "version: 2\nversion: 2", "occurs twice"),
    ("version: 2", "version: 9", "version"),
    ("pairs:\n- id", "pairs:\n  - : -\n- id", "not YAML"),
]


@pytest.mark.parametrize(("old", "new", "said"), BROKEN)
def test_each_fault_is_found_at_its_line(tmp_path, old, new, said):
    text = dump(mined())
    assert old in text
    broken = text.replace(old, new, 1)
    found = errors(checked(tmp_path, broken))
    if said is None:
        assert found == []
        return
    assert any(re.search(said, one.message) for one in found), found
    at = broken[: broken.index(new)].count("\n") + 1
    assert any(abs(one.line - at) <= new.count("\n") + 1 for one in found), (found, at)


def test_every_fault_is_told_not_the_first_alone(tmp_path):
    text = (
        dump(mined())
        .replace('verdict: "YES"', "verdict: 1")
        .replace("kind:", "knid:")
        .replace("seed: 0", "seed: x")
    )
    assert len(errors(checked(tmp_path, text))) >= 3


def test_a_file_that_was_cut_short_is_known_anywhere(tmp_path):
    whole = dump(mined(pair(), pair("b")))
    lines = whole.splitlines(keepends=True)
    for cut in range(5, len(lines) - 3, 7):
        assert errors(checked(tmp_path, "".join(lines[:cut]))), cut
        with pytest.raises(DatasetError):
            load_mined(tmp_path / "retrieval_dataset.yaml")


def test_a_change_is_a_warning_and_other_line_ends_are_none(tmp_path):
    text = dump(mined())
    (found,) = checked(tmp_path, text.replace("How do I", "How did I"))
    assert found.level == "warning" and "changed" in found.message
    (tmp_path / "retrieval_dataset.yaml").write_bytes(text.replace("\n", "\r\n").encode())
    assert validate(tmp_path / "retrieval_dataset.yaml") == []


def test_what_is_worth_a_look(tmp_path):
    lonely = pair(positive_ctxs=(), kernel=(), kernel_status=None, alternatives=(), kernels={})
    told = [one.message for one in checked(tmp_path, dump(mined(lonely)))]
    assert any("no positive" in one for one in told)
    wrong = dump(mined(controls=controls(false_positive=WRONG)))
    assert any("blindly" in one.message for one in checked(tmp_path, wrong))
    twice = checked(tmp_path, dump(mined(pair(), pair())))
    assert any("occurs twice" in one.message for one in errors(twice))
    assert any(
        "cases" in one.message for one in errors(checked(tmp_path, dump(mined(controls=controls(cases=7)))))
    )


def test_labels_of_a_judge_that_failed_are_no_data(tmp_path):
    found = checked(tmp_path, dump(mined(verified=False, controls=controls(false_positive=WRONG))))
    assert any("not verified" in one.message for one in errors(found))
    with pytest.raises(DatasetError, match="not verified"):
        load_mined(tmp_path / "retrieval_dataset.yaml")


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match="missing"):
        validate(tmp_path / "nothing.yaml")
