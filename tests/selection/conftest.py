"""Selection has two engines that make the same picks: what is compiled from C, and NumPy."""

import pytest

from dartboard.selection import compiled


def switch_to(name):
    machine = compiled.load() if name == "compiled" else None
    if name == "compiled" and machine is None:
        pytest.skip("selection was not compiled here: no C compiler when dartboard was installed")
    before, compiled._machine, compiled._looked = compiled.compiled(), machine, True
    yield machine
    compiled._machine = before


@pytest.fixture(scope="module", params=["compiled", "numpy"])
def engine(request):
    """Runs every test of a module twice."""
    yield from switch_to(request.param)


@pytest.fixture
def numpy_engine():
    """As without a compiler."""
    yield from switch_to("numpy")


@pytest.fixture
def machine():
    """What is compiled, in use."""
    yield from switch_to("compiled")
