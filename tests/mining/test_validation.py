"""Problems of a data set: all of them, with their lines."""

import re

import pytest

from dartboard.datasets import load_mined
from dartboard.errors import DatasetError
from dartboard.mining.dataset_writer import dump
from dartboard.mining.judges.evidence import stands_in
from dartboard.mining.validation import validate
from tests.mining.mined import CONTROLS, RATE, mined, pair

GOOD = dump(mined())


def problems(tmp_path, text, level="error"):
    path = tmp_path / "retrieval_dataset.yaml"
    path.write_text(text)
    return [one for one in validate(path) if one.level == level]


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_a_sound_file_has_no_problems(tmp_path):
    assert problems(tmp_path, GOOD) == [] == problems(tmp_path, GOOD, "warning")


BROKEN = [
    ('query: "How do I give an agent a tool?"', 'query: ""', "'query' is empty"),
    ('query: "How do I give an agent a tool?"', "query: 012", "put it in quotes"),
    ('text: "class Retry: ..."', 'text: " "', "'text' is empty"),
    ('evidence: "tools=[Tool(f)]"', 'evidence: "tools=[Hammer]"', "evidence does not stand in the text"),
    ('    evidence: "tools=[Tool(f)]"\n', "", "'evidence' is missing"),
    ('kernel:\n  - "toy.Agent"', 'kernel:\n  - "toy.Retry"', "kernel names 'toy.Retry', which is not among"),
    ('alternatives:\n  - - "toy.both"', 'alternatives:\n  - - "toy.x"', "kernel names 'toy.x'"),
    ('alternatives:\n  - - "toy.both"', 'alternatives:\n  - "toy.both"', "must be a list of names"),
    ('kernel_status: "minimal"', 'kernel_status: "small"', "kernel_status must be one of minimal,"),
    ('kernel_status: "minimal"', 'kernel_status: "unresolved"', "must be empty, but its status"),
    ('fqn: "toy.Retry"\n    verdict: "NO"', 'fqn: "toy.Retry"\n    verdict: "YES"', "does not belong into"),
    ("part_of_kernel: true", "part_of_kernel: maybe", "must be true or false"),
    ("  false_positive:\n    rate: 0.0", "  false_positive:\n    rate: 0.5", "within its interval"),
    ("  false_positive:\n    rate: 0.0", "  false_positive:\n    rate: many", "'rate' must be a number"),
    ("  false_positive:\n    rate: 0.0\n", "  false_positive:\n", "'false_positive' lacks 'rate'"),
    ("  false_negative:", "  false_negatives:", "'controls' lack 'false_negative'"),
    ("controls:", "control:", "'controls' are missing"),
    ("version: 2", "version: 7", "'version' must be a number in"),
    ("version: 2\n", "", "'version' is missing"),
    ("settings:", "setings:", "unknown key 'setings': did you mean 'settings'?"),
    ("settings:", "zebra:", "unknown key 'zebra': known are format, version"),
    ('  kind: "question"', '  knid: "question"', "unknown key 'knid' in a pair: did you mean 'kind'?"),
    (
        '    reason: "not',
        '    raeson: "not',
        "unknown key 'raeson' in one of 'negative_ctxs': did you mean 'reas",
    ),
    ("      calls: 7", "      cools: 7", "unknown key 'cools' in kernel 'expansion': did you mean 'calls'?"),
    ("  by_kind:", "  zebra: 1\n  by_kind:", "unknown key 'zebra' in 'controls': known are judge, seed"),
    ("    unsure: 0", "    unshure: 0", "unknown key 'unshure' in 'false_positive': did you mean 'unsure'?"),
    ("    stuffed:", "    stuffled:", "unknown key 'stuffled' in 'by_kind': did you mean 'stuffed'?"),
    ("end:\n", "end:\n  more: 1\n", "unknown key 'more' in 'end': known are pairs, sha256"),
    ('  fingerprint: "0123"', '  print: "0123"', "unknown key 'print' in 'corpus'"),
    ("    rate: 0.0\n    low: 0.0", "    rate: 0.0\n    low: 0.01", "the rate must lie within its interval"),
    (
        "      rate: 0.0\n      low: 0.0",
        "      rate: 0.0\n      low: 0.01",
        "the rate must lie within its int",
    ),
    ("  cases: 1", "  cases: 3", "'controls' are of 3 cases, and the file has 1 pairs"),
    ("end:\n  pairs: 1", "end:\n  pairs: 2", "the file has 1 pairs, and its end counts 2"),
    ("end:\n  pairs: 1", "end:", "its end does not say how many"),
    ("    errors: 0\n", "    errors: 4\n", "4 errors of 44 are not a rate of 0"),
    ("    errors: 0\n", "    errors: 45\n", "45 errors of 44 are not a rate of 0"),
    ("    decided: 44", "    decided: 40", "'false_positive' has 40 decided, its kinds together 44"),
    ('id: "fix_errors:01"', 'id: "fix\\0errors"', "holds the control character U+0000"),
    ('format: "dartboard retrieval data set"', 'format: "poem"', "'format' must be"),
    ("pairs:", "pears:", "'pairs' is missing"),
    ("  negative_ctxs:\n", "  negative_ctxs: 3\n  more:\n", "'negative_ctxs' must be a list"),
    ("class Agent … takes a function", "class Agent … takes a hammer", "stands in no text of kernel"),
]


AGREED = {"first": "a", "second": "b", "shared": ["b"], "observed": 0.9}
AGREED |= {"kappa": 0.5, "low": 0.2, "high": 0.7}


@pytest.mark.parametrize(
    ("changed", "level", "message"),
    [
        ({"low": 0.8, "high": 0.7}, "error", "ends before it begins"),
        ({"kappa": 1.5}, "error", "'kappa' must be a number"),
        ({"kapa": 0.5}, "error", "unknown key 'kapa' in 'agreement'"),
        ({"kappa": 0.1}, "warning", "outside of its interval"),
        ({}, "warning", None),
    ],
)
def test_an_agreement_is_checked(tmp_path, changed, level, message):
    found = problems(tmp_path, dump(mined(agreement=AGREED | changed)), level)
    assert (message is None and not found) or message in found[0].message


@pytest.mark.parametrize(("good", "bad", "message"), BROKEN)
def test_each_fault_is_found_at_its_line(tmp_path, good, bad, message):
    assert good in GOOD
    text = GOOD.replace(good, bad, 1)
    found = problems(tmp_path, text)
    assert len([one for one in found if message in one.message]) >= 1, found
    told = next(one for one in found if message in one.message)
    assert 1 <= told.line <= len(text.splitlines())


def test_lines_are_exact(tmp_path):
    text = GOOD.replace('evidence: "tools=[Tool(f)]"', 'evidence: "tools=[Hammer]"')
    (found,) = problems(tmp_path, text)
    assert found.line == line_of(text, "Hammer") and found.pair == "fix_errors:01"


def test_all_problems_are_listed_by_line(tmp_path):
    text = GOOD
    for good, bad, _ in (BROKEN[0], BROKEN[2], BROKEN[3], BROKEN[8]):
        text = text.replace(good, bad, 1)
    found = problems(tmp_path, text)
    assert len(found) == 4 and [one.line for one in found] == sorted(one.line for one in found)


def test_what_occurs_twice(tmp_path):
    text = dump(mined(pair(), pair()))
    assert [one.message for one in problems(tmp_path, text)] == [
        f"id 'fix_errors:01' occurs twice, first at line {line_of(text, 'fix_errors:01')}"
    ]
    doubled = GOOD.replace(
        '  - fqn: "toy.Retry"\n    verdict: "NO"',
        '  - fqn: "toy.Tool"\n    verdict: "NO"\n    text: "class Tool: takes a function"\n'
        '  - fqn: "toy.Retry"\n    verdict: "NO"',
    )
    (found,) = problems(tmp_path, doubled)
    assert "'toy.Tool' occurs in 'positive_ctxs' and in 'negative_ctxs'" in found.message
    again = re.sub(r'(  - fqn: "toy.Odd"\n(?:    .*\n)+)', r"\1\1", GOOD)
    assert [one.message for one in problems(tmp_path, again)] == ["context 'toy.Odd' occurs twice"] * 2


def test_a_file_of_the_bare_schema_is_worth_warnings(tmp_path):
    bare = 'pairs:\n  - id: "1"\n    query: "q"\n    positive_ctx: []\n'
    assert [one.message for one in problems(tmp_path, bare)] == [
        "'controls' are missing: nobody knows how often the judge is wrong",
        "unknown key 'positive_ctx' in a pair: did you mean 'positive_ctxs'?",
    ]
    told = [one.message for one in problems(tmp_path, bare, "warning")]
    assert any("'format' is missing" in one for one in told)
    assert any("no positive context" in one for one in told)


def test_a_doubtful_judge_is_a_warning(tmp_path):
    doubtful = {**RATE, "rate": 0.25, "low": 0.2, "high": 0.4, "errors": 11}
    text = dump(mined(controls={"false_positive": doubtful, "false_negative": doubtful}))
    assert problems(tmp_path, text) == []
    told = [one.message for one in problems(tmp_path, text, "warning")]
    assert told == [
        "'false_positive' is 25%: do not trust these labels blindly",
        "'false_negative' is 25%: do not trust these labels blindly",
    ]


def test_a_file_that_was_cut_anywhere_is_found_out(tmp_path):
    """At every line, and within the last ones at every character."""
    lines = GOOD.splitlines(keepends=True)
    path = tmp_path / "retrieval_dataset.yaml"
    cuts = ["".join(lines[:number]) for number in range(len(lines))]
    cuts += [GOOD[:-at] for at in range(2, 90)]
    for cut in cuts:
        assert problems(tmp_path, cut), cut[-80:]
        with pytest.raises(DatasetError):
            load_mined(path)
    path.write_text(GOOD.removesuffix("\n"))
    assert validate(path) == [] and len(load_mined(path)) == 1


def test_a_cut_file_of_many_pairs_is_found_out(tmp_path):
    """Where the file ends after a whole pair, too, and whether or not its end was put back."""
    text = dump(mined(pair(), pair("two"), controls={**CONTROLS, "cases": 2}))
    cut = text[: text.index('- id: "two"')]
    assert ["truncated" in one.message for one in problems(tmp_path, cut)] == [True, False]
    old = cut.replace("version: 2", "version: 1")
    assert "'controls' are of 2 cases, and the file has 1 pairs" in problems(tmp_path, old)[0].message
    patched = cut + text[text.index("end:") :]
    assert any("has 1 pairs, and its end counts 2" in one.message for one in problems(tmp_path, patched))


def test_a_change_is_a_warning_and_line_ends_are_none(tmp_path):
    changed = GOOD.replace("class Retry: ...", "class Retry: more", 1)
    assert problems(tmp_path, changed) == []
    assert [one.message for one in problems(tmp_path, changed, "warning")] == [
        "the file was changed after it was written"
    ]
    path = tmp_path / "retrieval_dataset.yaml"
    path.write_bytes(GOOD.replace("\n", "\r\n").encode())
    assert [one.message for one in validate(path)] == []


def test_files_of_the_old_form_are_read_with_a_warning(tmp_path):
    old = GOOD.replace("version: 2", "version: 1").split("end:\n")[0]
    assert problems(tmp_path, old) == [] and len(load_mined(tmp_path / "retrieval_dataset.yaml")) == 1
    (told,) = problems(tmp_path, old, "warning")
    assert "version 1 has no end" in told.message and told.line == line_of(old, "version: 1")


def test_where_nothing_was_decided_there_is_no_rate(tmp_path):
    none = {"rate": None, "low": 0.0, "high": 1.0, "errors": 0, "decided": 0, "unsure": 0, "cases": 0}
    text = dump(mined(controls={"false_positive": none, "false_negative": {**none, "rate": 0.0}}))
    assert problems(tmp_path, text) == []
    lacking = dump(mined(controls={"false_positive": {**RATE, "rate": None}, "false_negative": none}))
    assert [one.message for one in problems(tmp_path, lacking)] == ["'false_positive' lacks 'rate'"]


@pytest.mark.parametrize("text", ["", "pairs: [", "- a\n- b\n", "a: &x 1\npairs: *x\n"])
def test_what_is_no_data_set_is_one_problem(tmp_path, text):
    assert len(problems(tmp_path, text)) == 1


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match=r"expected a retrieval_dataset\.yaml"):
        validate(tmp_path / "retrieval_dataset.yaml")


def test_evidence_stands_whatever_case_and_breaks():
    text = "The  “Quick”\nbrown fox jumps. It is 5 o'clock."
    assert stands_in('the "quick" brown fox', [text]) and stands_in("brown fox … 5 o'clock", [text])
    assert stands_in("one … two", ["one", "two"])
    assert not stands_in("a slow fox", [text]) and not stands_in("…", [text])
