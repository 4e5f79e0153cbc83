"""``docs/mining.md`` does what it says: its files are written and its commands run, in an empty folder."""

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from dartboard.calibration import Calibration
from dartboard.cli.app import main
from dartboard.llm.call_limits import CallLimits
from dartboard.llm.chat import MOST_OUTPUT, PATIENCE
from dartboard.mining.benchmark_registry import ADAPTERS
from dartboard.mining.cases import CASE_KEYS
from dartboard.mining.judges.evidence import LEAST_EVIDENCE

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
    assert ran == 8
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


def tables():
    """Rows of the tables under a heading, by heading, without the heads of tables."""
    found, heading = {}, ""
    for line, after in pairwise(PAGE.splitlines()):
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| `") and not after.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            found.setdefault(heading, []).append(cells)
    return found


def test_the_reference_of_the_registry_is_complete():
    rows = tables()["The registry"]
    first = {name for cells in rows for name in re.findall(r"`([\w.]+)`", cells[0])}
    case = {*CASE_KEYS, "solution", "unfixed", "check"}
    assert first == case | {"command", "files", "candidate", "timeout"} | set(ADAPTERS)
    assert all("`prefix`" in cells[1] for cells in rows if cells[0].strip("`") in ADAPTERS)


def test_the_reference_of_options_is_that_of_the_code():
    text = " ".join(PAGE.split())
    assert f"fewer than {LEAST_EVIDENCE} letters and digits" in text
    assert f"`--max-output` limits one answer ({MOST_OUTPUT:,} tokens" in text
    assert f"the wait for it ({PATIENCE.timeout:.0f} s)" in text
    assert f"up to `--max-wait` ({PATIENCE.longest_asked:.0f} s)" in text
    assert "10, or twice the concurrency" in text and CallLimits(concurrency=1).most_in_a_row == 10
    assert CallLimits(concurrency=30).most_in_a_row == 60
    rows = tables()["Corpora, and the names of documents"]
    assert [cells[0].strip("`").partition(":")[0] for cells in rows] == [
        "package",
        "folder",
        "store",
        "dataset",
    ]
