"""The frame of the command line: help, version, exit codes, what is imported."""

import io
import subprocess
import sys
from contextlib import redirect_stdout

import pytest

from dartboard.cli import main
from dartboard.errors import ModelError
from dartboard.search_options import declared_options
from dartboard.version import __version__
from tests.cli.running import run


def test_help_teaches_and_stays_light(tmp_path):
    code = (
        "import sys; from dartboard.cli import main; main(['demo', '--help']); code = main(['--help']); "
        "heavy = {'torch', 'onnxruntime', 'tokenizers', 'transformers', 'faiss', 'rich.progress'}; "
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    for taught in ("dartboard demo --number 2", "DARTBOARD_CACHE", "from dartboard import select", "--json"):
        assert taught in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_no_command_shows_the_help(capsys):
    assert main([]) == 0
    assert "Start here" in capsys.readouterr().out


def test_version(tmp_path):
    done = run("--version", cache=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"dartboard {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["demo", "  "], "question is empty"),
        (["demo", "--k", "0"], "--k"),
        (["demo", "--k", "many"], "--k"),
        (["demo", "--sigma", "wide"], "--sigma"),
        (["demo", "--sigma", "0"], "--sigma"),
        (["demo", "--mmr-relevance-weight", "1.5"], "--mmr-relevance-weight"),
        (["demo", "--number", "0"], "--number must be in 1 to 4, got 0"),
        (["demo", "--number", "2", "Why?"], "exclude each other"),
        (["demo", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
    ],
)
def test_misuse_is_one_line_and_code_2(arguments, complaint, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err
    assert captured.err.startswith("dartboard: ")
    assert captured.err.count("\n") == 1
    assert "--help)" in captured.err


@pytest.mark.parametrize("error", [ModelError("the weights are\nnot what they were"), OSError("no room")])
def test_failures_are_one_line_and_code_1(error, monkeypatch, capsys):
    def fail():
        raise error

    monkeypatch.setattr("dartboard.cli.demo.demo_corpus.questions", fail)
    assert main(["demo"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"dartboard: {' '.join(str(error).split())}\n"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, EOFError])
def test_interruptions_are_code_130(raised, monkeypatch, capsys):
    def stop():
        raise raised

    monkeypatch.setattr("dartboard.cli.demo.demo_corpus.questions", stop)
    assert main(["demo"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_closed_pipe_leaves_no_traceback(history):
    shell = f'"{sys.executable}" -m dartboard demo --json | true'
    environment = {"DARTBOARD_CACHE": str(history.cache), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        shell, shell=True, env=environment, capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_reader_that_has_seen_enough_is_no_failure(history):
    shell = f'set -o pipefail; "{sys.executable}" -m dartboard demo | head -1'
    environment = {"DARTBOARD_CACHE": str(history.cache), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", shell], env=environment, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_options_stand_in_panels():
    shown = help_of("search")
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Arguments:", "Set:", "Search:", "Index:", "Output:", "Options:"]
    for option in declared_options().values():
        flag = f"--{option.name.replace('_', '-')}"
        assert (flag in shown) == (option.name != "sigma_min"), flag


def help_of(command):
    with redirect_stdout(io.StringIO()) as shown:
        assert main([command, "--help"]) == 0
    return shown.getvalue()
