"""``dartboard eval --answers`` as a user runs it: estimate, measure, kill, go on."""

import json
import re
import threading

import pytest

from dartboard.cli import main
from tests.cli.running import run, start
from tests.llm.chat_server import ModelServer, finding
from tests.mining.doors import code

DOORS = range(1, 7)


@pytest.fixture
def data(tmp_path):
    rows = [
        {
            "id": door,
            "query": f"What is the code of door {door}?",
            "answer": [[code(door)]],
            "positive": [f"The code of door {door} is {code(door)}."],
            "negative": [f"Door {door} is painted green.", f"Nobody uses door {door} on Sundays."],
        }
        for door in DOORS
    ]
    file = tmp_path / "en.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def asked(data, out, server, *more):
    arguments = [
        "eval",
        "--dataset",
        str(data),
        "--systems",
        "cosine,dartboard",
        "--k",
        "1,3",
        "--copies",
        "0",
    ]
    arguments += ["--resamples", "200", "--no-sigma-sweep", "--out", str(out)]
    return [*arguments, "--answers", f"openai:m@{server.url}", *more]


def test_estimate_then_measure_then_nothing_more(data, tmp_path, capsys):
    out = tmp_path / "report"
    with ModelServer(finding) as server:
        assert main(asked(data, out, server, "--answers-estimate")) == 0
        told = " ".join(capsys.readouterr().err.split())
        assert server.requests == []
        found = re.search(
            r"(\d+) different prompts over 2 systems, 0 answered before. openai:m: about (\d+) calls", told
        )
        assert found, told
        assert main(asked(data, out, server, "--answers-concurrency", "2")) == 0
        assert len(server.requests) == int(found[2])
        assert "names a known answer to" in capsys.readouterr().out
        assert main(asked(data, out, server, "--resume")) == 0
        assert len(server.requests) == int(found[2])
    [record] = json.loads((out / "results.json").read_text())["datasets"]
    assert record["answer"]["queries"] == len(DOORS) and record["answer"]["model"] == "openai:m"
    assert set(record["comparisons"]["answer@3"]) == {"cosine"}


def test_a_killed_run_never_pays_twice(data, tmp_path):
    out = tmp_path / "report"
    enough, go = threading.Event(), threading.Event()

    def slow(prompt):
        if len(server.requests) > 4:
            enough.set()
            go.wait(60)
        return finding(prompt)

    with ModelServer(slow) as server:
        arguments = asked(data, out, server, "--answers-concurrency", "1")
        with start(*arguments, cache=tmp_path / "cache") as process:
            assert enough.wait(120)
            process.kill()
            process.communicate(timeout=30)
        go.set()
        before = len(server.requests)
        done = run(*arguments, cache=tmp_path / "cache")
        assert done.returncode == 0, done.stderr
        assert "4 answered before" in " ".join(done.stderr.split())
        prompts = [body["messages"][-1]["content"] for body in server.bodies]
    assert before == 5  # the fifth was under way: nobody knows whether it was charged
    assert len(prompts) == len(set(prompts)) + 1


def test_what_is_wrong_is_said_before_anything_is_worked_out(data, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    out = ["--out", str(tmp_path / "r")]
    assert main(["eval", "--dataset", str(data), *out, "--answers", "openai:m"]) == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err
    assert main(["eval", "--dataset", str(data), *out, "--answers-budget", "5"]) == 2
    assert "--answers MODEL" in capsys.readouterr().err
    none = ["--dataset", "synthetic_clustered", *out, "--answers", "openai:m@http://127.0.0.1:9"]
    assert main(["eval", *none]) == 2
    assert "knows no answers" in capsys.readouterr().err
