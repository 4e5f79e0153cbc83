"""``dartboard eval`` as a user runs it."""

import json
import signal

import pytest

from dartboard.cli import main
from dartboard.errors import install_command
from tests.cli.running import PATIENCE, run, start
from tests.waiting import wait_until

ASKED = ["eval", "--dataset", "synthetic_clustered", "--resamples", "200", "--copies", "0"]


def test_a_report_is_written_and_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "report"
    assert main([*ASKED, "--systems", "cosine,dartboard,mmr-0.5,dartboard-hybrid", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert (
        "Subtopic" in told and "dartboard reaches Subtopic recall@5" in told and "dartboard reaches" in told
    )
    assert "dartboard-hybrid was skipped" in told
    assert str(out / "report.html") in told.replace("\n", "")
    assert {path.name for path in out.iterdir()} == {
        "parts",
        "per_query",
        "report.html",
        "report.md",
        "results.json",
        "runs",
        "timings.json",
    }
    before = (out / "results.json").read_bytes()
    assert (
        main(
            [*ASKED, "--systems", "cosine,dartboard,mmr-0.5,dartboard-hybrid", "--out", str(out), "--resume"]
        )
        == 0
    )
    assert (out / "results.json").read_bytes() == before


def test_retrievers_by_name(tmp_path, capsys):
    """On the texts of a data set; what they find stands in the run files."""
    asked = ["eval", "--dataset", "synthetic_adversarial", "--resamples", "200", "--copies", "0", "-k", "5"]
    systems = "dense,bm25,colbert,hybrid,dartboard"
    assert main([*asked, "--no-sigma-sweep", "--systems", systems, "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "results.json").read_text())["datasets"][0]
    assert list(record["systems"]) == systems.split(",") and not record["skipped"]
    runs = {
        name: (tmp_path / "runs" / "synthetic_adversarial" / f"{name}.trec") for name in systems.split(",")
    }
    assert len({path.read_text() for path in runs.values()}) == 5


def test_an_interruption_is_resumed(tmp_path):
    asked = (*ASKED, "--systems", "quick", "--no-sigma-sweep", "--workers", "1", "--out", str(tmp_path / "r"))
    parts = tmp_path / "r" / "parts" / "synthetic_clustered.jsonl"
    with start(*asked, cache=tmp_path) as process:
        wait_until(
            lambda: (parts.exists() and parts.read_text().count("\n") > 20) or process.poll() is not None
        )
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    if process.returncode == 0:
        pytest.skip("it was finished before it could be interrupted")
    assert process.returncode == 130
    assert "--resume goes on" in errors
    kept = parts.read_text().count("\n")
    done = run(*asked, "--resume", cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert parts.read_text().count("\n") == 1 + 20 * 14 >= kept
    whole = run(*asked[:-1], str(tmp_path / "whole"), cache=tmp_path)
    assert whole.returncode == 0
    same = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("r", "whole")]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--systems", "bm26"], "unknown system 'bm26'"),
        (["--systems", "multi-vector:code=1"], "unknown system 'multi-vector:code=1'"),
        (["--metrics", "bleu"], "unknown measure 'bleu'"),
        (["--k", "few"], "--k takes whole numbers"),
        (["--k", "0"], "k_values must be whole numbers >= 1"),
        (["--triage-k", "3"], "leaves fewer candidates"),
    ],
)
def test_misuse_is_one_line(arguments, complaint, tmp_path, capsys):
    assert main([*ASKED, "--out", str(tmp_path), *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_the_missing_extra_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dartboard.cli.eval.find_spec", lambda name: None)
    assert main([*ASKED, "--out", str(tmp_path)]) == 1
    assert install_command("eval") in capsys.readouterr().err


def test_help_teaches(capsys):
    assert main(["eval", "--help"]) == 0
    told = capsys.readouterr().out
    assert "run:FILE" in told and "--resume" in told
    assert max(map(len, told.splitlines())) <= 80
