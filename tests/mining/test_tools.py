"""The scripts under ``tools/``: thin doors to the same code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mining.doors import write_house

TOOLS = Path(__file__).parents[2] / "tools"


def run(tool, *arguments, cache):
    return subprocess.run(
        [sys.executable, str(TOOLS / tool), *map(str, arguments)],
        env={**os.environ, "DARTBOARD_CACHE": str(cache), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("tool", "command"), [("extract_retrieval_data.py", "extract"), ("validate_retrieval_data.py", "judge")]
)
def test_help_is_that_of_the_command(tool, command, tmp_path):
    done = run(tool, "--help", cache=tmp_path)
    assert done.returncode == 0 and f"dartboard mine {command}" in done.stdout


def test_the_example_of_the_judge_is_accepted(tmp_path, tmp_path_factory):
    """The command in its text, with an estimate in the place of the calls."""
    text = (TOOLS / "validate_retrieval_data.py").read_text()
    example = next(line.split()[2:] for line in text.splitlines() if "--judge gemini" in line)
    cache = tmp_path_factory.getbasetemp() / "mining-cache"
    registry, corpus = write_house(tmp_path)
    raw = tmp_path / "raw.jsonl"
    assert (
        run("extract_retrieval_data.py", registry, "--corpus", corpus, "--out", raw, cache=cache).returncode
        == 0
    )
    given = [str(raw) if part == "raw.jsonl" else part for part in example]
    done = run("validate_retrieval_data.py", *given, "--dry-run", cache=cache)
    assert done.returncode == 0, done.stderr


def test_extract_judge_and_check(tmp_path_factory, tmp_path):
    cache = tmp_path_factory.getbasetemp() / "mining-cache"
    registry, corpus = write_house(tmp_path)
    raw, out = tmp_path / "raw.jsonl", tmp_path / "mined"
    done = run("extract_retrieval_data.py", registry, "--corpus", corpus, "--out", raw, cache=cache)
    assert done.returncode == 0, done.stderr
    done = run("validate_retrieval_data.py", raw, "--judge", "answers", "--out", out, cache=cache)
    assert done.returncode == 0, done.stderr
    done = run("validate_retrieval_data.py", out / "retrieval_dataset.yaml", cache=cache)
    assert done.returncode == 0 and "is sound" in done.stdout
    assert run("validate_retrieval_data.py", tmp_path / "no.yaml", cache=cache).returncode == 1
