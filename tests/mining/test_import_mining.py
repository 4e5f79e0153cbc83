"""Imports of a solution, followed to the place of definition."""

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.package_corpus import PackageCorpus
from dartboard.mining.import_mining import imports_kernel, imports_of
from tests.mining.packages import write_package

ROBOT, BASE, WRENCH = "toy.agents.robot.Robot", "toy.agents.base.Base", "toy.tools.wrench.Wrench"
HELPER = "toy.agents.robot.helper"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return PackageCorpus("toy", write_package(tmp_path_factory.mktemp("toy")))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from toy import Robot\nRobot('a')", (ROBOT,)),
        ("from toy.agents import Android as Thing\nThing('a')", (ROBOT,)),
        ("from toy.agents import assist\nassist()", (HELPER,)),
        ("import toy\ntoy.Robot('a').lift(1)", (ROBOT,)),
        ("import toy.agents\ntoy.agents.Base('a')", (BASE,)),
        ("import toy.agents as a, toy.tools as t\na.Robot('x'); t.Wrench()", (ROBOT, WRENCH)),
        ("from toy import agents\nagents.robot.Robot('x')", (ROBOT,)),
        ("from toy import implements\nimplements.Wrench()", (WRENCH,)),
        ("from toy.tools import default_wrench\nprint(default_wrench.size)", (WRENCH,)),
        ("from toy.agents import Robot\nRobot.lift", (ROBOT,)),
        ("from toy.agents.base import LIMIT\nprint(LIMIT.bit_length())", ("toy.agents.base",)),
        ("def f():\n    from toy import Robot\n    return Robot('a')", (ROBOT,)),
        ("from toy import Robot\nclass Mine(Robot): ...", (ROBOT,)),
        ("from toy import Robot\n@Robot\ndef f(): ...", (ROBOT,)),
        ("from toy import Robot\ndef f(x: 'Robot | None' = None): ...", (ROBOT,)),
        ("from toy import Robot\ndef f() -> 'list[Robot]': ...", (ROBOT,)),
        ("from toy import Robot\nx: 'Robot'\ny: 'not ( python'", (ROBOT,)),
        ("from toy import Robot\nf = lambda n, m=Robot: n", (ROBOT,)),
        ("from toy.agents import Robot\n[Robot(n) for n in 'ab']", (ROBOT,)),
        ("try:\n    from toy import Robot\nexcept ImportError:\n    Robot = None\nRobot", (ROBOT,)),
        ("import os, json\nos.path.join('a')", ()),
        ("from . import toy\ntoy.Robot()", ()),
    ],
)
def test_uses_are_followed_to_definitions(corpus, source, names):
    assert imports_of(source, corpus) == names


def test_what_is_not_used_does_not_count(corpus):
    assert imports_of("from toy import Robot", corpus) == ()
    assert imports_of("from toy import Ghost\nimport toy.attic\nGhost(); toy.attic.Box()", corpus) == ()


def test_what_is_used_of_a_star_is_found(corpus):
    source = "from toy.agents import *\nfrom os.path import *\nprint(Base('a'), join)"
    assert imports_of(source, corpus) == (BASE,)


def test_a_case_gives_its_solution(corpus):
    case = Case(id="c", question="?", solution="from toy import Robot\nRobot('a')", place="here.yaml:3")
    assert imports_kernel(case, corpus) == (ROBOT,)
    with pytest.raises(DatasetError, match=r"here.yaml:3.*not Python"):
        imports_kernel(Case(id="c", question="?", solution="def (", place="here.yaml:3"), corpus)
    with pytest.raises(DatasetError, match="no solution"):
        imports_kernel(Case(id="c", question="?"), corpus)
