"""docs/answering.md: every block runs, in order, with a model server in the place of the reader's."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.running import environment
from tests.llm.chat_server import ModelServer

PAGE = Path(__file__).parents[2] / "docs" / "answering.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
THEIRS = "http://localhost:11434/v1"
NOTES = {
    "keys.md": "# Keys\n\nThe keys are rotated on the first of the month by the platform team.\n",
    "logs.md": "# Logs\n\nLogs of requests are kept for one week and then deleted.\n",
}
RGB = [
    {
        "id": number,
        "query": f"What is the code of door {number}?",
        "answer": [[f"{number * 7919 % 9973:04d}"]],
        "positive": [f"The code of door {number} is {number * 7919 % 9973:04d}."],
        "negative": [f"Door {number} is painted green.", f"Nobody uses door {number} on Sundays."],
    }
    for number in range(1, 5)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text)
    (folder / "data" / "rgb").mkdir(parents=True)
    (folder / "data" / "rgb" / "en.json").write_text("".join(json.dumps(row) + "\n" for row in RGB))
    with ModelServer() as server:
        yield folder, server, {}


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda number: f"{number}-{BLOCKS[number][0]}")
def test_blocks_run(place, number, monkeypatch, capsys):
    folder, server, shared = place
    kind, code = BLOCKS[number]
    code = code.replace(THEIRS, f"{server.url}/v1")
    if kind == "python":
        monkeypatch.chdir(folder)
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), shared)
        assert "rotated on the first of the month" in capsys.readouterr().out
        return
    chosen = {
        "DARTBOARD_ANSWER_MODEL": f"openai:llama3.1@{server.url}/v1",
        "DARTBOARD_DATA": str(folder / "data"),
    }
    before = len(server.requests)
    done = subprocess.run(
        ["bash", "-euc", code],
        cwd=folder,
        env=environment(folder / "cache", **chosen) | {"PATH": _path()},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (len(server.requests) > before) == ("--answers-estimate" not in code)
    if "--answers-budget" in code:
        assert "Answer@5" in (folder / "report" / "report.md").read_text()


def _path() -> str:
    """The commands of this environment first."""
    import sys

    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_there_is_something_to_run():
    assert len(BLOCKS) >= 6
