"""What GitHub runs is valid, and runs what the Makefile has."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
PYTHONS = ["3.11", "3.12", "3.13"]


def load(path):
    found = yaml.safe_load(path.read_text())
    found["on"] = found.pop(True, None)  # YAML 1.1 reads the word "on" as true
    return found


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands_of(workflow):
    return "\n".join(step.get("run", "") for step in steps_of(workflow))


def test_there_is_one_for_tests_and_one_for_wheels():
    assert [path.name for path in WORKFLOWS] == ["test.yml", "wheel.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_complete(path):
    workflow = load(path)
    assert workflow["name"] and {"push", "pull_request"} <= set(workflow["on"])
    assert workflow["permissions"] == {"contents": "read"}, "no more rights than it needs"
    for job in workflow["jobs"].values():
        assert job["runs-on"] and job["timeout-minutes"] and job["steps"]
        assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
    for step in steps_of(workflow):
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake ([a-z-]+)", commands_of(workflow)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_lint_and_tests_run_on_every_python():
    workflow = load(ROOT / ".github" / "workflows" / "test.yml")
    (job,) = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    commands = commands_of(workflow)
    assert "make lint" in commands and "make test" in commands
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = SpecifierSet(project["requires-python"])
    assert PYTHONS[0] in wanted and "3.10" not in wanted, "the oldest one that is supported"


def test_the_wheel_is_built_checked_installed_and_run():
    workflow = load(ROOT / ".github" / "workflows" / "wheel.yml")
    commands = commands_of(workflow)
    for words in ("python -m build", "twine check --strict", "venv fresh", "dist/*.whl", 'dartboard" demo'):
        assert words in commands
    assert workflow["jobs"]["install"]["strategy"]["matrix"]["python"] == PYTHONS
