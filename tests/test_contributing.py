"""What a contributor reads is true: targets, links and code exist, the lock fits."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
