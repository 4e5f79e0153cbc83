"""Every snippet of the README runs, and what it names is there."""

import re
import shlex
from pathlib import Path

import pytest

from dartboard.cli import main

README = Path(__file__).parent.parent / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_python_snippets_run_in_order(capsys):
    assert len(blocks("python")) >= 3
    namespace: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), namespace)
    assert capsys.readouterr().out


def test_console_commands_exist():
    make = (README.parent / "Makefile").read_text()
    for block in blocks("console"):
        for line in block.splitlines():
            command = shlex.split(line.removeprefix("$ "), comments=True)
            if command[0] == "make":
                assert re.search(rf"^{command[1]}:", make, flags=re.MULTILINE)
            elif command[0] == "dartboard":
                assert main([*command[1:], "--help"]) == 0, line


def test_code_appears_within_thirty_lines():
    head = README.read_text().splitlines()[:30]
    assert any(line.startswith("```") for line in head)


@pytest.mark.parametrize(
    "name",
    [
        "architecture.md",
        "decisions.md",
        "retrievers.md",
        "stores.md",
        "benchmarks/quality.md",
        "benchmarks/quality.html",
        "images/redundancy.svg",
    ],
)
def test_linked_documents_are_there(name):
    assert (README.parent / "docs" / name).stat().st_size > 500
