"""What ``make test-quick`` leaves out is found by what tests call, through helpers and fixtures."""

import subprocess
from types import SimpleNamespace

import pytest

from dartboard.stores import open_store
from tests import slow
from tests.stores.postgres_server import fresh


def helper():
    return subprocess.run(["true"], check=True)


def by_helper():
    return [helper() for _ in range(1)]


def by_name():
    return pytest.importorskip("ray")


def by_address():
    return open_store("milvus://x.db")


def by_server():
    return open_store(fresh())


def in_process():
    return open_store("memory://")


def item(function, *fixtures, place="tests/test_x.py"):
    definitions = {str(at): [SimpleNamespace(func=one)] for at, one in enumerate(fixtures)}
    info = SimpleNamespace(name2fixturedefs=definitions)
    return SimpleNamespace(nodeid=f"{place}::test", function=function, _fixtureinfo=info)


@pytest.mark.parametrize("function", [helper, by_helper, by_name, by_address, by_server])
def test_what_starts_something_is_slow(function):
    assert slow.is_slow(item(function))
    assert slow.is_slow(item(in_process, function)), "in a fixture"


def test_what_stays_in_the_process_is_not():
    assert not slow.is_slow(item(in_process, in_process))
    assert slow.is_slow(item(in_process, place="tests/web/test_x.py"))


def test_files_that_take_long_exist(request):
    assert [place for place in slow.LONG if not (request.config.rootpath / place).exists()] == []
