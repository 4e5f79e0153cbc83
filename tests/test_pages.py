"""The documentation's code is true: blocks are valid, commands exist, and what pages of ours show runs."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dartboard.cli.app import app, main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ |    (?=dartboard ))(dartboard .*)$", flags=re.MULTILINE)

RUN = (
    "index.md",
    "tutorial.md",
    "how-to/folder.md",
    "how-to/vectors.md",
    "how-to/evaluation.md",
    "explanation/mathematics.md",
)
"""Pages whose Python runs as it stands, block after block; others are run by tests of their own rooms."""


def blocks(page):
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_are_valid(page):
    for language, text in blocks(page):
        if language == "python":
            ast.parse(text, page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in COMMAND.findall(text):
        command, words = typer.main.get_command(app), shlex.split(line, comments=True)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}) or not words or words[0].startswith("-"), line
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{line}: there is no {', '.join(sorted(given - known))}"


@pytest.mark.parametrize("page", [page for page in RUN if page != "tutorial.md"])
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    ran = [exec(compile(text, page, "exec"), namespace) for kind, text in blocks(page) if kind == "python"]
    assert ran


@pytest.mark.filterwarnings("ignore:Matplotlib")
def test_the_tutorial_does_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    printed, ran = "", 0
    for language, text in blocks("tutorial.md"):
        if named := re.match(r"# (\S+\.py)\n", text):
            Path(named[1]).write_text(text, encoding="utf-8")
        elif language == "console":
            for line in text.splitlines():
                printed, ran = run(line, capsys), ran + 1
        elif language == "text":
            assert told(text, printed), f"the tutorial shows\n{text}\nand the command says\n{printed}"
    assert ran == 9
    assert Path("report/report.html").stat().st_size > 1000


def run(line, capsys):
    """What a command of the page prints."""
    command = shlex.split(line.removeprefix("$ "))
    if command[0] == "python":
        done = subprocess.run([sys.executable, *command[1:]], check=True, capture_output=True, text=True)
        return done.stdout
    assert command[0] == "dartboard" and main(command[1:]) == 0, line
    return capsys.readouterr().out


def told(shown, printed):
    """Whether every line stands in the output; one that ends in … up to there."""
    lines = [line.strip() for line in printed.splitlines()]
    for wanted in filter(None, map(str.strip, shown.splitlines())):
        if wanted.endswith("…"):
            found = any(line.startswith(wanted[:-1].strip()) for line in lines)
        else:
            found = wanted in lines
        if not found:
            return False
    return True


def test_a_wrong_output_would_be_noticed():
    assert told("a b\n\nc …", "a b\nc d e\n")
    assert not told("a", "b\n") and not told("c …", "a c d")
