"""``docs/mining.md`` does what it says: its files are written and its commands run, in an empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dartboard.calibration import Calibration
from dartboard.cli.app import main

PAGE = (Path(__file__).parents[2] / "docs" / "mining.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def blocks():
    return [(language, text) for language, text in BLOCK.findall(PAGE)]


@pytest.mark.filterwarnings("ignore:Matplotlib")
def test_from_an_empty_folder_to_sigma(tmp_path, tmp_path_factory, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.setenv("COLUMNS", "100")
    ran = 0
    for language, text in blocks():
        named = re.match(r"# (\S+\.(?:py|yaml))\n", text)
        if named:
            Path(named[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(named[1]).write_text(text)
        elif language == "console":
            ran += run(text, capsys)
        elif language == "python":
            exec(compile(text, "docs/mining.md", "exec"), {})
    assert ran == 7
    found = Calibration.load("calibration.json")
    assert found.sigma.low <= found.sigma.value <= found.sigma.high and found.sigma.pairs >= 7
    for name in ("retrieval_dataset.yaml", "qrels.txt"):
        assert Path("mined", name).stat().st_size > 0 and Path("again", name).stat().st_size > 0
    assert Path("report/report.html").stat().st_size > 1000


def run(text, capsys):
    """Run each command; what the page shows of its output must be in it."""
    printed = ""
    count = 0
    for line in text.splitlines():
        if line.startswith("$ "):
            command = shlex.split(line[2:])
            count += 1
            if command[0] == "python":
                subprocess.run([sys.executable, *command[1:]], check=True)
            else:
                assert command[0] == "dartboard" and main(command[1:]) == 0, line
            printed = capsys.readouterr().out
        else:
            assert line in printed.splitlines()
    return count


def test_the_command_for_the_example_is_one(capsys):
    (command,) = re.findall(
        r"dartboard (mine run examples/adk.*?)\n\n", PAGE.replace("\\\n", " "), flags=re.DOTALL
    )
    assert main([*shlex.split(command), "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", command))
    assert options <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
