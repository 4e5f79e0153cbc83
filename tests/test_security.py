"""The table of attacks in the documentation names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", PAGE)))


def test_named_tests_exist():
    for file, name in NAMED:
        nodes: list[ast.stmt] = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        for part in name.split("::"):
            found = [node for node in nodes if getattr(node, "name", None) == part]
            assert found, f"{file} has no {name}"
            nodes = getattr(found[0], "body", [])


def test_every_attack_has_a_test():
    section = PAGE.split("## Attacks, and the tests that try them")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        attack, happens, tests = (cell.strip() for cell in row.strip("|").split(" | "))
        assert attack and happens and re.search(r"`tests/[\w/]+\.py::\w+`", tests), row
