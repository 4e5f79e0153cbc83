"""The cases about google-adk: what they claim is so.

Checks run anywhere. What needs the package's source is skipped where it is not installed (``pip install
--no-deps google-adk==1.20.0``), and the programs run for real where ``DARTBOARD_ADK_PYTHON`` names a Python
that has the package with all its dependencies.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.context_pool import find_targets
from dartboard.mining.corpora import open_corpus
from dartboard.mining.registry import load_cases

HOME = Path(__file__).parents[2] / "examples" / "adk"
CASES = load_cases(HOME)
FIXES = [case for case in CASES if case.check]
VERSION = "1.20.0"


def by_id(case):
    return case.id


def flat(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def corpus():
    try:
        found = open_corpus("package:google.adk")
    except DatasetError:
        found = None
    if found is None or found.name != f"google.adk {VERSION}":
        pytest.skip(f"needs google-adk: pip install --no-deps google-adk=={VERSION}")
    return found


def test_there_are_enough():
    assert len(CASES) >= 12 and len(FIXES) >= 4
    assert {case.kind for case in CASES} == {"api_question", "fix_error"}
    assert all(case.targets and (case.answers or case.facets) for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_no_question_gives_its_answer_away(case):
    for text in (*case.answers, *(one for facet in case.facets for one in facet)):
        assert text.lower() not in case.question.lower()


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_targets_exist_and_hold_the_answer(case, corpus):
    texts = [flat(document.text) for document in find_targets(case, corpus)]
    for facet in case.facets or (case.answers,):
        assert any(flat(answer) in text for answer in facet for text in texts), facet


@pytest.mark.parametrize("case", [case for case in CASES if len(case.targets) > 1], ids=by_id)
def test_facets_of_two_documents_need_both(case, corpus):
    texts = [flat(document.text) for document in find_targets(case, corpus)]
    for text in texts if case.facets else ():
        assert not all(any(flat(one) in text for one in facet) for facet in case.facets)


def run(case, code, folder, command):
    for name, text in {**case.check.files, case.check.candidate: code}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("case", FIXES, ids=by_id)
def test_the_check_tells_broken_from_fixed(case, tmp_path):
    command = [sys.executable, "-B", *case.check.command[1:]]
    broken = run(case, case.unfixed, tmp_path, command)
    assert broken.returncode != 0 and "AssertionError" in broken.stderr
    fixed = run(case, case.solution, tmp_path, command)
    assert fixed.returncode == 0, fixed.stderr
    empty = run(case, "", tmp_path, command)
    assert empty.returncode != 0, "an empty program solves nothing"


@pytest.mark.skipif("DARTBOARD_ADK_PYTHON" not in os.environ, reason="DARTBOARD_ADK_PYTHON names no Python")
@pytest.mark.parametrize("case", FIXES, ids=by_id)
def test_the_programs_do_what_the_check_says(case, tmp_path):
    command = [os.environ["DARTBOARD_ADK_PYTHON"], "-W", "ignore", case.check.candidate]
    broken = run(case, case.unfixed, tmp_path, command)
    assert broken.returncode != 0
    fixed = run(case, case.solution, tmp_path, command)
    assert fixed.returncode == 0, fixed.stderr
