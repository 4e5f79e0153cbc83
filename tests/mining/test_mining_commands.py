"""The commands: from a registry and a folder to a data set, by models that answer in their own ways."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dartboard.cli.app import main
from dartboard.datasets import load_mined
from dartboard.datasets.mined import Mined
from dartboard.datasets.safe_yaml import read_yaml
from tests.llm.chat_server import ModelServer
from tests.mining.doors import FEW

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.setenv("COLUMNS", "140")


def mine(house, out, *options):
    return main(["mine", "run", *house, "--out", str(out), *FEW, *options])


def mined(out):
    return read_yaml(out / "retrieval_dataset.yaml", Mined)[0]


def facts(capsys):
    return json.loads(capsys.readouterr().out)


def opened(prompt):
    """What the prompt's contexts say of the door that it asks for, if anything."""
    door = re.search(r"What is the code of door (\d+)\?", prompt)[1]
    return re.search(rf"The code of door {door} is \d+\.", prompt)


def bare(prompt):
    """A judge that gives the seed's answer and nothing else."""
    return "YES" if opened(prompt) else "NO"


def quoting(prompt):
    found = opened(prompt)
    return f"YES\n{found[0]}" if found else "NO: the code of the door"


def thinking(prompt):
    return f"<think>YES or NO?</think>\n**{quoting(prompt)}"


def in_json(prompt):
    """A model that answers everything with an object in a code fence."""
    found = opened(prompt)
    answer = {"label": "YES" if found else "NO", "evidence": found[0] if found else "", "reason": "so"}
    return f"```json\n{json.dumps(answer)}\n```"


def inventing(prompt):
    return "YES\nThe code of every door is written right here."


@pytest.mark.parametrize(
    ("answer", "prompt"),
    [
        (bare, "seed-1"),
        (quoting, "seed-1"),
        (quoting, "evidence-3"),
        (thinking, "evidence-3"),
        (in_json, "evidence-3"),
    ],
)
def test_models_of_every_manner_end_with_a_verified_data_set(house, tmp_path, answer, prompt):
    out = tmp_path / "m"
    with ModelServer(answer) as server:
        judge = ["--judge", f"openai:m@{server.url}/v1", "--prompt", prompt, "--votes", "1"]
        assert mine(house, out, *judge) == 0
    data = mined(out)
    assert data.verified and data.controls.false_positive.errors == 0 == data.controls.false_negative.errors
    for pair in data.pairs:
        door = pair.id.removeprefix("door:")
        assert [one.fqn for one in pair.positive_ctxs] == [f"door-{door}.md"] == list(pair.kernel)
        assert pair.negative_ctxs and not pair.unsure_ctxs
    assert main(["mine", "validate", str(out)]) == 0
    assert len(load_mined(out / "retrieval_dataset.yaml").queries) == 4


@pytest.mark.parametrize("answer", [inventing, lambda prompt: "YES", lambda prompt: "NO"])
def test_a_judge_that_does_not_look_is_not_believed(house, tmp_path, capsys, answer):
    with ModelServer(answer) as server:
        code = mine(house, tmp_path / "m", "--judge", f"openai:m@{server.url}/v1", "--votes", "1")
    assert code == 1 and "failed its controls" in capsys.readouterr().err
    assert not mined(tmp_path / "m").verified and not (tmp_path / "m" / "beir").exists()
    assert main(["mine", "validate", str(tmp_path / "m")]) == 1


def test_offline_it_needs_nobody(house, tmp_path, capsys):
    out = tmp_path / "m"
    assert mine(house, out, "--judge", "answers", "--json") == 0
    found = facts(capsys)
    assert found["pairs"] == 4 == found["positives"] and found["kernels"] == {"minimal": 4}
    assert found["usage"]["calls"] == 0 and found["controls"]["false_negative"]["rate"] == 0
    assert {one.name for one in out.iterdir()} == {
        "retrieval_dataset.yaml",
        "beir",
        "qrels.txt",
        "raw.jsonl",
        "journal.jsonl",
    }


def test_a_dry_run_asks_nobody_and_a_resumed_one_pays_for_nothing_twice(house, tmp_path, capsys):
    out, asked = tmp_path / "m", []

    def counting(prompt):
        asked.append(prompt)
        return quoting(prompt)

    with ModelServer(counting) as server:
        judge = ["--judge", f"openai:m@{server.url}/v1", "--votes", "1", "--max-output", "200"]
        judge += ["--concurrency", "1"]
        assert mine(house, out, *judge, "--dry-run", "--json") == 0
        expected = facts(capsys)
        assert not asked and not out.exists() and expected["contexts"]["usage"]["calls"] > 4
        assert mine(house, out, *judge, "--budget", "9000") == 1
        assert "budget is used up" in capsys.readouterr().err and 0 < len(asked) < 60
        assert mine(house, out, *judge) == 2
        assert "--resume" in capsys.readouterr().err
        paid = len(asked)
        assert mine(house, out, *judge, "--resume", "--dry-run", "--json") == 0
        assert sum(one["known"] for one in facts(capsys).values()) > 0 and len(asked) == paid
        assert mine(house, out, *judge, "--resume") == 0
        assert len(set(asked)) == len(asked)
        whole, paid = (out / "retrieval_dataset.yaml").read_bytes(), len(asked)
        capsys.readouterr()
        assert mine(house, out, *judge, "--resume", "--dry-run", "--json") == 0
        assert sum(one["usage"]["calls"] for one in facts(capsys).values()) == 0
        assert mine(house, out, *judge, "--resume") == 0
    assert len(asked) == paid and (out / "retrieval_dataset.yaml").read_bytes() == whole


def test_contexts_are_drawn_again_only_where_something_changed(house, tmp_path):
    out = tmp_path / "m"
    assert mine(house, out, "--judge", "answers") == 0
    raw = out / "raw.jsonl"
    before = raw.stat().st_mtime_ns
    assert mine(house, out, "--judge", "answers", "--resume") == 0
    assert raw.stat().st_mtime_ns == before
    assert mine(house, out, "--judge", "answers", "--resume", "--seed", "1") == 0
    assert raw.stat().st_mtime_ns != before


def test_other_peoples_files_are_left_alone(house, tmp_path, capsys):
    own = tmp_path / "data" / "beir" / "nfcorpus" / "corpus.jsonl"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    assert mine(house, tmp_path / "data", "--judge", "answers") == 2
    assert "beir" in capsys.readouterr().err and own.read_text() == "mine"
    assert not (tmp_path / "data" / "journal.jsonl").exists(), "refused before anything is paid for"


def test_a_model_that_refuses_everything_ends_the_run_and_is_asked_again(house, tmp_path, capsys):
    out, asked = tmp_path / "m", []

    def refusing(prompt):
        asked.append(prompt)
        return "" if len(asked) <= 40 else quoting(prompt)

    with ModelServer(refusing) as server:
        judge = ["--judge", f"openai:m@{server.url}/v1", "--concurrency", "1", "--votes", "1"]
        assert mine(house, out, *judge) == 1
        assert "no readable answer" in capsys.readouterr().err and len(asked) <= 12
        asked.extend([""] * 40)
        assert mine(house, out, *judge, "--resume") == 0
    assert mined(out).verified


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--judge", "oracle"], 2, "oracle"),
        (["--judge", "check"], 2, "--checks"),
        (["--judge", "answers", "--prompt", "x"], 0, ""),
        (["--judge", "openai:m@http://127.0.0.1:9/v1", "--prompt", "x"], 2, "evidence-3"),
        (["--judge", "answers", "--agent", "answers"], 2, "--agent"),
        (["--judge", "answers", "--rpm", "0"], 2, "requests_per_minute"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(house, tmp_path, capsys, options, code, said):
    assert mine(house, tmp_path / "m", *options) == code
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error


def test_a_judge_of_strings_needs_some(house, tmp_path, capsys):
    registry = Path(house[0])
    text = registry.read_text()
    registry.write_text(re.sub(r"    answer: .*\n", "", text, count=1))
    assert mine(house, tmp_path / "m", "--judge", "answers") == 0
    assert "1 of 4 cases have no answer string" in capsys.readouterr().err
    registry.write_text(re.sub(r"    answer: .*\n", "", text))
    assert mine(house, tmp_path / "n", "--judge", "answers") == 1


def test_help_names_both_commands_and_no_others(capsys):
    assert main(["mine"]) == 0
    text = capsys.readouterr().out
    assert " run " in text and " validate " in text and " extract " not in text


def test_the_tools_of_the_design_do_the_same(house, tmp_path):
    raw, out = tmp_path / "raw.jsonl", tmp_path / "m"

    def tool(name, *arguments):
        line = [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert tool("extract_retrieval_data.py", *house, "--out", raw, *FEW).returncode == 0
    done = tool("validate_retrieval_data.py", raw, *house[1:], "--judge", "answers", "--out", out)
    assert done.returncode == 0, done.stderr
    assert mine(house, tmp_path / "n", "--judge", "answers") == 0
    assert (out / "retrieval_dataset.yaml").read_bytes() == (
        tmp_path / "n" / "retrieval_dataset.yaml"
    ).read_bytes()
    assert tool("validate_retrieval_data.py", out / "retrieval_dataset.yaml").returncode == 0
    lost = tool("validate_retrieval_data.py", raw, "--judge", "answers", "--out", tmp_path / "o")
    assert lost.returncode == 2 and "corpus" in lost.stderr
