"""The C of selection compiles where there is a compiler, and is left out where there is none."""

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

hatch_build = pytest.importorskip("hatch_build", reason="hatchling is not installed")

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / hatch_build.FOLDER
    folder.mkdir(parents=True)
    shutil.copy(ROOT / hatch_build.FOLDER / "machine.c", folder)
    return tmp_path


@pytest.fixture
def compiler():
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.mark.parametrize("tries", [hatch_build.TRIES, hatch_build.TRIES[1:]], ids=["several", "one"])
def test_it_compiles_for_several_processors_and_for_any(tree, compiler, monkeypatch, tries):
    from dartboard.selection.machine import Machine

    monkeypatch.setattr(hatch_build, "TRIES", tries)
    assert hatch_build.build(tree)
    machine = Machine(ctypes.CDLL(str(tree / hatch_build.LIBRARY)))
    values = np.linspace(-80, 0, 333, dtype=np.float32)
    np.testing.assert_allclose(machine.exp(values), np.exp(values), rtol=3e-7)
    assert [
        path.name for path in (tree / hatch_build.FOLDER).iterdir() if path.suffix not in (".c", ".so")
    ] == []


def test_it_compiles_without_a_warning(tree, compiler, monkeypatch):
    monkeypatch.setattr(hatch_build, "FLAGS", hatch_build.FLAGS + " -Wall -Wextra -Werror")
    assert hatch_build.build(tree)


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler-anywhere"])
def test_a_compiler_that_fails_leaves_no_library(tree, monkeypatch, compiler):
    (tree / hatch_build.LIBRARY).write_bytes(b"an old one")
    monkeypatch.setenv("CC", compiler)
    assert not hatch_build.build(tree)
    assert [path.name for path in (tree / hatch_build.FOLDER).iterdir()] == ["machine.c"]


def test_no_compiler_leaves_no_library(tree, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tree))
    assert not hatch_build.build(tree)
