"""The project around the package: what contributors read, the lock, the workflows and the container."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from dartboard.api.settings import service_settings

ROOT = Path(__file__).parent.parent
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "docs/releasing.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = ROOT / "requirements-dev.lock"
ALONE = {"torch"}
"""Installed before the rest and by itself, so that it brings no GPU libraries."""


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page):
    text = (ROOT / page).read_text()
    makefile = (ROOT / "Makefile").read_text()
    asked = re.findall(r"(?:^\$ |`)make ([a-z -]+)", text, re.MULTILINE)
    targets = {word for words in asked for word in words.split()}
    assert targets
    assert [word for word in sorted(targets) if not re.search(rf"^{word}:", makefile, re.MULTILINE)] == []
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or ((ROOT / page).parent / link).exists(), link
    for path in re.findall(r"`((?:dartboard|tests|docs|benchmarks|tools)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_code_shown_to_contributors_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    assert any(name.startswith("test_") for name in dir(names["TestMyStore"]))


# The lock


def locked() -> dict[str, list[Requirement]]:
    """By name; several versions of one package are for several platforms or versions of Python."""
    found: dict[str, list[Requirement]] = {}
    for line in LOCK.read_text().splitlines():
        if line and not line.lstrip().startswith("#"):
            one = Requirement(line)
            found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def wanted() -> list[Requirement]:
    """Everything that ``dartboard[dev]`` asks for, its own extras followed."""
    asked, seen = [Requirement(line) for line in PROJECT["dependencies"]], set()
    extras = ["dev"]
    while extras:
        extra = extras.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for line in PROJECT["optional-dependencies"][extra]:
            one = Requirement(line)
            if one.name == "dartboard":
                extras += sorted(one.extras)
            else:
                asked.append(one)
    return [one for one in asked if one.marker is None or one.marker.evaluate()]


def test_the_lock_has_one_version_of_all_that_is_asked_for():
    versions = locked()
    for one in wanted():
        name = canonicalize_name(one.name)
        if name in ALONE:
            continue
        assert name in versions, f"{name} is not in requirements-dev.lock: make lock"
        here = [pin for pin in versions[name] if pin.marker is None or pin.marker.evaluate()]
        assert len(here) == 1
        (pinned,) = here[0].specifier
        assert pinned.operator == "=="
        assert one.specifier.contains(pinned.version, prereleases=True), f"{one} against {pinned}: make lock"


def test_the_lock_names_no_place_and_nothing_that_is_installed_alone():
    text = LOCK.read_text()
    assert "://" not in text and "--" not in text.replace("#", ""), "no registry, no hash"
    assert not ALONE & set(locked())
    assert not [name for name in locked() if name.startswith(("nvidia-", "triton"))]


# ---- Workflows

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
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == PYTHONS
    commands = commands_of(workflow)
    assert "make test" in commands and "make install-locked" in commands
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = SpecifierSet(project["requires-python"])
    assert PYTHONS[0] in wanted and "3.10" not in wanted, "the oldest one that is supported"


def test_the_wheel_is_built_checked_installed_and_run():
    workflow = load(ROOT / ".github" / "workflows" / "wheel.yml")
    commands = commands_of(workflow)
    for words in ("python -m build", "twine check --strict", "venv fresh", "dist/*.whl", 'dartboard" demo'):
        assert words in commands
    assert workflow["jobs"]["install"]["strategy"]["matrix"]["python"] == PYTHONS


# ---- The container

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICE, DATABASE = COMPOSE["services"]["dartboard"], COMPOSE["services"]["db"]


def last(instruction):
    return re.findall(rf"^{instruction} (.+)$", DOCKERFILE, re.MULTILINE)[-1]


def test_the_image_runs_as_nobody_in_particular_from_one_pinned_base():
    assert last("USER") == "10001:10001"
    assert re.search(r"^ARG PYTHON=python:3\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON}"}
    assert "HEALTHCHECK" in DOCKERFILE and "/readyz" in DOCKERFILE
    assert not re.search(r"(?i)(password|secret|token)=", DOCKERFILE)


def test_everything_that_is_copied_is_let_through_and_nothing_else_is():
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert allowed == {name for names in copied for name in names.split()}
    assert all((ROOT / name).exists() for name in allowed)


def test_what_the_image_starts_are_settings_that_exist(tmp_path):
    lines = re.findall(r"^\s+(DARTBOARD_\w+)=(\S+)", DOCKERFILE, re.MULTILINE)
    settings = service_settings({"host": "0.0.0.0"}, environment=dict(lines), folder=tmp_path)
    assert str(settings.keys) == "/data/keys.json" and str(settings.home) == "/data/home"
    assert settings.store == "/data/index.dartboard"
    settings.check_exposure()


@pytest.mark.parametrize("service", [SERVICE, DATABASE], ids=["dartboard", "db"])
def test_both_containers_are_held_short(service):
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service and "network_mode" not in service
    assert service["pids_limit"]


def test_the_database_is_out_of_reach_and_waited_for():
    assert "ports" not in DATABASE and DATABASE["networks"] == ["back"]
    assert COMPOSE["networks"]["back"] == {"internal": True}
    assert SERVICE["depends_on"]["db"]["condition"] == "service_healthy" and DATABASE["healthcheck"]["test"]
    assert re.fullmatch(r"pgvector/pgvector:pg\d+", DATABASE["image"])
    assert all(port.startswith("127.0.0.1:") for port in SERVICE["ports"])


def test_passwords_come_from_a_file_that_git_ignores():
    assert COMPOSE["secrets"] == {"db_password": {"file": "./secrets/db_password"}}
    assert "/secrets/" in (ROOT / ".gitignore").read_text().split()
    for service in (SERVICE, DATABASE):
        assert service["secrets"] == ["db_password"]
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name or (name.endswith("_FILE") and value == "/run/secrets/db_password")
    assert ":" not in SERVICE["environment"]["DARTBOARD_STORE"].partition("//")[2].partition("@")[0]


def test_the_entrypoint_hands_the_password_on(tmp_path):
    (tmp_path / "password").write_text("päss word'$")
    script = ["sh", str(ROOT / "docker/entrypoint.sh"), "sh", "-c", 'printf %s "${PGPASSWORD-none}"']
    plain = {name: value for name, value in os.environ.items() if name != "PGPASSWORD"}
    given = plain | {"DARTBOARD_DB_PASSWORD_FILE": str(tmp_path / "password")}

    def run(environment):
        return subprocess.run(script, env=environment, capture_output=True, encoding="utf-8", timeout=120)

    assert run(given).stdout == "päss word'$"
    assert run(plain).stdout == "none"
    assert run(plain | {"DARTBOARD_DB_PASSWORD_FILE": str(tmp_path / "missing")}).returncode != 0


def test_no_page_links_to_what_only_the_built_site_has():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:\s]+)[)#]", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page.name, link)


def test_the_makefile_names_files_that_exist():
    named = re.findall(
        r"(?:tests|benchmarks|tools)/[\w/.-]+", (ROOT / "Makefile").read_text(encoding="utf-8")
    )
    assert named and not [path for path in named if not (ROOT / path).exists()]
