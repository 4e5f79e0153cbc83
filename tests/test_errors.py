"""Messages that name a command name one that works where dartboard is."""

import tomllib
from pathlib import Path

import pytest

import dartboard
from dartboard import errors
from dartboard.errors import MissingExtraError, install_command


def place(folder, monkeypatch):
    """As if the package lay below a folder."""
    monkeypatch.setattr(errors, "__file__", str(folder / "dartboard" / "errors.py"))


def test_from_a_clone_pip_is_given_the_clone(tmp_path, monkeypatch):
    """No index has the package."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "dartboard"\n')
    place(tmp_path, monkeypatch)
    assert install_command("mcp") == "pip install -e '.[mcp]' in the clone of dartboard"
    assert install_command(again=True) == "pip install --force-reinstall -e '.' in the clone of dartboard"
    said = str(MissingExtraError("mcp", "mcp", "the MCP server"))
    assert said == f"the MCP server needs mcp: {install_command('mcp')}"
    assert str(tmp_path) not in said  # a service shows it to its clients


@pytest.mark.parametrize("beside", [None, b'[project]\nname = "other"\n', b"\xff"])
def test_installed_pip_finds_the_extra_in_what_is_there(tmp_path, monkeypatch, beside):
    if beside is not None:
        (tmp_path / "pyproject.toml").write_bytes(beside)
    place(tmp_path, monkeypatch)
    assert install_command("mcp") == "pip install 'dartboard[mcp]'"
    assert install_command(again=True) == "pip install --force-reinstall 'dartboard'"


def test_this_project_is_known_by_its_name():
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(project.read_text(encoding="utf-8"))["project"]["name"] == "dartboard"
    assert 'name = "dartboard"' in project.read_text(encoding="utf-8")


def test_no_other_code_spells_the_command():
    root = Path(dartboard.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert [path.name for path, text in texts.items() if "'dartboard[" in text or "'dartboard{" in text] == [
        "errors.py"
    ]
