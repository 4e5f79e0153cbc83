"""Imports of a solution, followed to the place of definition."""

import pytest

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.package_corpus import PackageCorpus
from dartboard.mining.import_mining import common_package, imports_of
from dartboard.mining.kernels import imports_kernel
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
        ("from toy.agents import Dreamer\nDreamer()", ("toy.agents.lazy.Dreamer",)),
        ("def f():\n    from toy import Robot\n    return Robot('a')", (ROBOT,)),
        ("from toy import Robot\nclass Mine(Robot): ...", (ROBOT,)),
        ("from toy import Robot\n@Robot\ndef f(): ...", (ROBOT,)),
        ("from toy import Robot\ndef f(x: 'Robot | None' = None): ...", (ROBOT,)),
        ("from toy import Robot\ndef f() -> 'list[Robot]': ...", (ROBOT,)),
        ("from toy import Robot\nx: 'Robot'\ny: 'not ( python'", (ROBOT,)),
        ("from toy import Robot\nf = lambda n, m=Robot: n", (ROBOT,)),
        ("from toy import Robot\nclass A:\n    kind = Robot\n    def f(self): return kind", (ROBOT,)),
        ("from toy.agents import Robot\n[Robot(n) for n in 'ab']", (ROBOT,)),
        ("try:\n    from toy import Robot\nexcept ImportError:\n    Robot = None\nRobot", (ROBOT,)),
        ("import os, json\nos.path.join('a')", ()),
        ("from . import toy\ntoy.Robot()", ()),
    ],
)
def test_uses_are_followed_to_definitions(corpus, source, names):
    assert imports_of(source, corpus).contexts == names


@pytest.mark.parametrize(
    "source",
    [
        "from toy import Robot",
        "from toy import Robot\ndef f(Robot): return Robot",
        "from toy import Robot\ndef f(*Robot, **k): return Robot",
        "from toy import Robot\ndef f():\n    Robot = 1\n    return Robot",
        "from toy import Robot\nRobot = None",
    ],
)
def test_what_is_not_used_does_not_count(corpus, source):
    found = imports_of(source, corpus)
    assert (found.contexts, found.unused) == ((), ("toy.Robot",))


def test_a_global_name_is_the_imported_one(corpus):
    source = "from toy import Robot\ndef f():\n    global Robot\n    Robot = Robot('a')"
    assert imports_of(source, corpus).contexts == (ROBOT,)


def test_names_of_a_class_are_not_seen_by_its_methods(corpus):
    source = "class A:\n    from toy import Robot\n    def f(self): return Robot"
    found = imports_of(source, corpus)
    assert (found.contexts, found.unused) == ((), ("toy.Robot",))


def test_stars_are_reported_and_what_is_used_of_them_is_found(corpus):
    found = imports_of("from toy.agents import *\nfrom os.path import *\nprint(Base('a'), join)", corpus)
    assert found.contexts == (BASE,)
    assert found.stars == ("toy.agents",)


def test_names_that_are_not_there_are_told(corpus):
    found = imports_of("from toy import Ghost\nimport toy.attic\nGhost(); toy.attic.Box()", corpus)
    assert found.contexts == ()
    assert found.unknown == ("toy.Ghost", "toy.attic.Box")


def test_a_case_gives_its_solution(corpus):
    case = Case(id="c", question="?", solution="from toy import Robot\nRobot('a')", place="here.yaml:3")
    found = imports_kernel(case, corpus)
    assert (found.case, found.contexts) == ("c", (ROBOT,))
    with pytest.raises(DatasetError, match=r"here.yaml:3.*not Python"):
        imports_kernel(Case(id="c", question="?", solution="def (", place="here.yaml:3"), corpus)
    with pytest.raises(DatasetError, match="no solution"):
        imports_kernel(Case(id="c", question="?"), corpus)


def test_the_package_is_what_names_share(corpus):
    assert common_package(corpus) == "toy"
