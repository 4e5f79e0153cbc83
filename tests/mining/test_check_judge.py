"""Checks really run: in an empty folder, with little around them, and not for ever."""

import sys

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case, Check
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.package_corpus import PackageCorpus
from dartboard.mining.judges import AnswerJudge, CheckJudge
from dartboard.mining.judges.check_judge import run_check
from dartboard.mining.judges.partial_solution import Candidate, PartialSolution, package_of

SOLUTION = """
import json
from fractions import Fraction as F, Decimal
from fractions import gcd_is_gone
import fractions

def solve():
    return json.dumps(str(F(1, 3)))
"""
TEST = "import solution\nassert solution.solve() == '\"1/3\"', solution.solve()\n"


def case(solution=SOLUTION, test=TEST, **knobs):
    check = Check(command=("python", "test_it.py"), files={"test_it.py": test}, timeout=60, **knobs)
    targets = ("fractions.Fraction",)
    return Case(
        id="c", question="A third?", targets=targets, solution=solution, check=check, answers=("1/3",)
    )


GOOD = SOLUTION.replace(", Decimal", "").replace("from fractions import gcd_is_gone\n", "")
FRACTION = Document("fractions.Fraction", "\nclass Fraction(Rational)\n    docs")
OTHER = Document("fractions._helper", "def _helper()")


def test_the_check_decides_by_what_the_contexts_tell_of():
    judge = CheckJudge()
    known = judge.judge(case(GOOD), [FRACTION])
    assert (known.label, known.evidence, known.judge) == ("YES", "class Fraction(Rational)", "check")
    unknown = judge.judge(case(GOOD), [OTHER])
    assert unknown.label == "NO"
    assert unknown.missing == "fractions.Fraction"
    assert "NameError" in unknown.reason
    assert judge.judge(case(GOOD), []).label == "NO"


def test_imports_are_cut_by_what_is_known():
    candidate = PartialSolution()(case(), [FRACTION])
    assert "from fractions import Fraction as F\n" in candidate.code
    assert "import json" in candidate.code
    assert candidate.missing == "fractions.Decimal, fractions.gcd_is_gone"
    assert "gcd_is_gone" not in candidate.code
    assert "unknown_name(1, 3)" in PartialSolution()(case(), []).code
    module = PartialSolution()(case(), [Document("fractions", "class Fraction and Decimal")])
    assert module.missing == "fractions.gcd_is_gone"
    nothing = PartialSolution()(case(), [])
    assert "import fractions" not in nothing.code


class Aliases:
    """A corpus that knows one name for another."""

    def get(self, fqn):
        return FRACTION if fqn.endswith(".Ratio") else None


def test_a_corpus_resolves_other_names():
    renamed = case(GOOD.replace("Fraction as F", "Ratio as F"))
    assert PartialSolution(Aliases())(renamed, [FRACTION]).missing == ""
    assert PartialSolution()(renamed, [FRACTION]).missing == "fractions.Ratio"


def test_a_namespace_is_not_a_package():
    assert package_of("json.decoder.JSONDecoder") == "json"
    assert package_of("not_installed_anywhere.module.Thing") == "not_installed_anywhere"


def test_broken_cases_are_unsure():
    judge = CheckJudge()
    assert judge.judge(Case(id="n", question="?"), [FRACTION]).label == "UNSURE"
    assert "no solution" in judge.judge(case(None), [FRACTION]).reason
    wrong = judge.judge(case(SOLUTION), [FRACTION])
    assert wrong.label == "UNSURE"
    assert "fails with the known solution" in wrong.reason
    with pytest.raises(DatasetError, match="not Python"):
        PartialSolution()(case("def ("), [FRACTION])


def test_a_solver_and_a_screen():
    judge = CheckJudge(solve=lambda case, contexts: Candidate(code="def solve(): return '\"1/3\"'"))
    assert judge.judge(case(None), []).label == "YES"
    screened = CheckJudge(AnswerJudge())
    assert screened.judge(case(GOOD), [FRACTION]).reason.startswith("screened out")
    told = Document("fractions.Fraction", "Fraction(1, 3) prints 1/3")
    assert screened.judge(case(GOOD), [told]).label == "YES"


KETTLE = {
    "__init__.py": "from kettle.boiler import Boiler\n",
    "boiler.py": (
        'class Boiler:\n    """Heats."""\n\n\nclass Thermostat:\n    """Switches."""\n\n\nWATTS = 2200\n'
    ),
}
THROUGH = {
    "package": "import kettle\nkettle.Boiler(1)\n",
    "renamed": "import kettle as k\nk.boiler.Boiler(1)\n",
    "submodule": "import kettle.boiler\nkettle.boiler.Boiler(1)\n",
    "module": "from kettle import boiler\nboiler.Boiler(1)\n",
    "star": "from kettle import *\nBoiler(1)\n",
    "inside": "import kettle\ndef f(): return kettle.Boiler(1)\n",
    "stored": "import kettle\nkettle.Boiler.litres = 1\n",
}


@pytest.fixture
def kettle(tmp_path):
    for name, text in KETTLE.items():
        (tmp_path / "kettle").mkdir(exist_ok=True)
        (tmp_path / "kettle" / name).write_text(text)
    return PackageCorpus("kettle", tmp_path)


@pytest.mark.parametrize("form", THROUGH)
def test_who_has_not_read_of_a_class_cannot_use_it_through_its_module(kettle, form):
    boiler, thermostat = kettle.get("kettle.Boiler"), kettle.get("kettle.boiler.Thermostat")
    wanted = Case(id="k", question="?", targets=("kettle.Boiler",), solution=THROUGH[form])
    known = PartialSolution(kettle)(wanted, [boiler])
    assert "unknown_name" not in known.code
    assert known.missing == ""
    assert known.evidence == boiler.text.splitlines()[0]
    unknown = PartialSolution(kettle)(wanted, [thermostat])
    assert "unknown_name" in unknown.code
    assert unknown.missing in ("kettle.Boiler", "kettle.boiler.Boiler")
    assert unknown.evidence == ""


def test_a_check_through_a_module_labels_by_what_was_read(kettle):
    test = "assert 'kettle.Boiler(1)' in open('solution.py').read()\n"
    one = case(THROUGH["package"], test)
    one = Case(id="k", question="?", targets=("kettle.Boiler",), solution=one.solution, check=one.check)
    judge = CheckJudge(solve=PartialSolution(kettle))
    assert judge.judge(one, [kettle.get("kettle.Boiler")]).label == "YES"
    assert judge.judge(one, [kettle.get("kettle.boiler.Thermostat")]).label == "NO"


def test_a_check_that_uses_nothing_shown_decides_nothing():
    bare = case("def solve(): return '\"1/3\"'")
    page = Document("page.md", "A third is written 1/3.")
    alone = CheckJudge().judge(bare, [page])
    assert (alone.label, alone.evidence) == ("UNSURE", "")
    assert "cannot tell contexts apart" in alone.reason
    assert CheckJudge().judge(bare, []).label == "YES"
    screened = CheckJudge(AnswerJudge()).judge(bare, [page])
    assert (screened.label, screened.evidence) == ("YES", page.text)


def test_equal_candidates_run_once(tmp_path):
    mark = tmp_path / "ran"
    test = f"open({str(mark)!r}, 'a').write('x')\n"
    judge = CheckJudge()
    for _ in range(3):
        assert judge.judge(case("pass", test), []).label == "YES"
    assert mark.read_text() == "x"


def run(code, timeout=60.0, **files):
    return run_check(Check(command=("python", "t.py"), files={"t.py": code, **files}, timeout=timeout), "")


def test_the_folder_holds_only_the_files_and_the_environment_no_keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = "import os, sys\nprint(sorted(os.listdir())); print(sorted(os.environ)); print(sys.executable)"
    assert run(f"{code}\nraise SystemExit(str(os.listdir()))", **{"sub/data.txt": "x"}).count("'") == 6
    told = run(f"{code}\nraise SystemExit(str(sorted(os.environ)) + sys.executable)")
    assert "API_KEY" not in told and sys.executable in told


def test_what_runs_too_long_is_stopped():
    assert run("import time; time.sleep(600)", timeout=1.0) == "out of time"


def test_a_process_that_is_left_behind_holds_nobody_up():
    code = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])"
    assert run(code) == ""


def test_output_is_told_in_a_line():
    assert run("print('x' * 10**6); raise SystemExit('the end')") == "the end"
    assert run("raise SystemExit(3)") == "exit code 3"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ""])
def test_files_stay_in_the_folder(name):
    with pytest.raises(DatasetError, match="stay in its folder"):
        run("pass", **{name: "x"})


def test_a_command_that_is_missing_is_named():
    with pytest.raises(DatasetError, match="no-such-program"):
        run_check(Check(command=("no-such-program",)), "")
