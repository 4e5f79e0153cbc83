"""Names that ``dartboard`` exports document their parameters; examples in docstrings run."""

import doctest
import importlib
import inspect
import re

import pytest

import dartboard


@pytest.mark.parametrize("name", [name for name in dartboard.__all__ if name[0] != "_"])
def test_parameters_are_documented_with_an_example_that_runs(name):
    item = getattr(dartboard, name)
    text = inspect.getdoc(item) or ""
    parameters = () if item is dartboard.DartboardError else inspect.signature(item).parameters
    documented = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    for one in parameters:
        assert re.search(rf"^ +[\w, ]*\b{one}\b[\w, ]*:", documented, re.MULTILINE), one
    assert "\nExample:\n" in text
    module = importlib.import_module(item.__module__)
    runner = doctest.DocTestRunner()
    for found in doctest.DocTestFinder().find(item, name, module=module, globs=dict(vars(module))):
        runner.run(found)
    assert runner.tries >= 1 and runner.failures == 0


@pytest.mark.parametrize("module", ["datasets.catalogue", "selection.limits", "selection.select", "utils"])
def test_examples_run(module):
    done = doctest.testmod(importlib.import_module(f"dartboard.{module}"))
    assert done.attempted >= 1 and done.failed == 0
