"""A model that refuses or babbles: no verdicts come of it, the run says so, and nothing is lost for later."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from dartboard.cli.app import main
from dartboard.errors import ConfigError
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.errors import NoAnswersError
from dartboard.llm.usage import Usage
from dartboard.mining.journaled_judge import JournaledJudge
from dartboard.mining.judge_runner import judge_many
from dartboard.mining.judges.base import Verdict, reasons_of
from dartboard.mining.verdict_journal import Journal
from tests.mining.doors import FEW, write_house
from tests.mining.faulty_run import door_judge
from tests.mining.faulty_server import FaultyServer, door_tasks


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


@pytest.fixture
def raw(tmp_path):
    registry, corpus = write_house(tmp_path)
    path = tmp_path / "raw.jsonl"
    assert main(["mine", "extract", str(registry), "--corpus", corpus, "--out", str(path), *FEW]) == 0
    return path


def command(raw, server, out):
    judge = ["mine", "judge", str(raw), "--judge", f"openai:doorman@{server.url}", "--out", str(out)]
    return [*judge, "--concurrency", "2", "--no-exports"]


def refused(message="this model does not exist", status=400):
    return status, {}, json.dumps({"error": {"message": message}}).encode()


def said(content, finish="stop", **more):
    answer = {"choices": [{"message": {"content": content, **more}, "finish_reason": finish}]}
    return 200, {}, json.dumps(answer).encode()


def data_set(out):
    return (out / "retrieval_dataset.yaml").read_bytes()


def verdicts(out):
    lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()[1:]]
    return [line for line in lines if line["verdict"] is not None]


HOPELESS = [
    (refused(), "this model does not exist"),
    (refused("your account is under review", 451), "HTTP 451"),
    (said(None, refusal="I cannot help with doors"), "I cannot help with doors"),
    (said(None, "content_filter"), "content_filter"),
    (said("", "length"), "--max-output"),
    (said('{"label": "YES", "evid', "length"), "cut at the limit of 8,192 output tokens"),
    (said("Certainly! It is YES."), "cannot be read"),
]


@pytest.mark.parametrize(("answer", "why"), HOPELESS, ids=[why for _, why in HOPELESS])
def test_a_run_without_answers_stops_and_keeps_no_verdict(raw, tmp_path, capsys, answer, why):
    with FaultyServer() as server:
        assert main(command(raw, server, tmp_path / "whole")) == 0
        whole, calls = data_set(tmp_path / "whole"), len(server.bodies)
        server.override = lambda body: answer
        out = tmp_path / "mined"
        capsys.readouterr()
        assert main(command(raw, server, out)) == 1
        error = capsys.readouterr().err
        assert re.search(r"gave no readable answer to 1[0-2] calls in a row", error) and why in error
        assert "--give-up-after" in error and "Traceback" not in error
        assert len(server.bodies) - calls < 40 and not (out / "retrieval_dataset.yaml").exists()
        server.override = lambda body: None
        with Journal.open(out / "journal.jsonl", resume=True) as journal:
            assert len(journal) == 0
        assert main([*command(raw, server, out), "--resume"]) == 0
        assert data_set(out) == whole


def test_a_single_question_that_gets_no_answer_is_an_error(tmp_path, capsys):
    registry, corpus = write_house(tmp_path, questions=1)
    path = tmp_path / "one.jsonl"
    assert main(["mine", "extract", str(registry), "--corpus", corpus, "--out", str(path), *FEW]) == 0
    with FaultyServer() as server:
        server.override = lambda body: refused()
        assert main(command(path, server, tmp_path / "m")) == 1
        assert "gave no readable answer to any of its 2 controls" in capsys.readouterr().err


def of_door_2(body):
    return "What is the code of door 2?" in body["messages"][-1]["content"]


def test_one_question_that_is_refused_stops_nothing_and_can_be_asked_again(raw, tmp_path, capsys):
    out = tmp_path / "mined"
    with FaultyServer() as server:
        assert main(command(raw, server, tmp_path / "whole")) == 0
        server.override = lambda body: refused("this is about weapons") if of_door_2(body) else None
        assert main(command(raw, server, out)) == 0
        told = capsys.readouterr()
        assert "this is about weapons" in told.out and "Unsure (" in told.out
        assert "--resume --retry-unsure" in told.err
        assert any(line["verdict"].get("answered") is False for line in verdicts(out))
        first, asked = data_set(out), len(server.bodies)
        assert main([*command(raw, server, out), "--resume"]) == 0
        assert data_set(out) == first and len(server.bodies) == asked
        capsys.readouterr()
        assert main([*command(raw, server, out), "--resume", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["unanswered"] > 0 and sum(facts["unsure_reasons"].values()) >= facts["unanswered"]
        server.override = lambda body: None
        assert main([*command(raw, server, out), "--resume", "--retry-unsure"]) == 0
        assert all(of_door_2(body) for body in server.bodies[asked:]) and len(server.bodies) > asked
        assert data_set(out) == data_set(tmp_path / "whole")
        asked = len(server.bodies)
        assert main([*command(raw, server, out), "--resume"]) == 0
        assert len(server.bodies) == asked and data_set(out) == data_set(tmp_path / "whole")


def test_how_long_to_go_on_can_be_said(raw, tmp_path, capsys):
    with FaultyServer() as server:
        server.override = lambda body: refused()
        assert (
            main([*command(raw, server, tmp_path / "m"), "--give-up-after", "3", "--concurrency", "1"]) == 1
        )
        assert "to 6 calls in a row" in capsys.readouterr().err
        # Five controls are of the first question: the sixth call is the first of another one.
    with pytest.raises(ConfigError, match="give_up_after must be >= 1"):
        CallLimits(give_up_after=0)


def test_asking_again_needs_a_journal(raw, tmp_path, capsys):
    with FaultyServer() as server:
        assert main([*command(raw, server, tmp_path / "m"), "--retry-unsure"]) == 2
        assert "give --resume, too" in capsys.readouterr().err and not (tmp_path / "m").exists()


def test_what_the_last_calls_cost_is_counted(tmp_path):
    """Answers that cannot be read are paid for, also those that end the run."""
    with FaultyServer(babble=1.0) as server, door_judge(server.url) as judge:
        with Journal.open(tmp_path / "j.jsonl") as journal, pytest.raises(NoAnswersError):
            list(
                judge_many(
                    JournaledJudge(judge, journal), door_tasks(200), CallLimiter(CallLimits(concurrency=4))
                )
            )
        with Journal.open(tmp_path / "j.jsonl", resume=True) as journal:
            assert journal.usage.calls == server.books["delivered"] > 10
            assert journal.withdraw_unanswered() >= 9 and len(journal) == 0
            assert journal.withdraw_unanswered() == 0
            assert journal.usage.calls == server.books["delivered"]
        with Journal.open(tmp_path / "j.jsonl", resume=True) as journal:
            assert len(journal) == 0


def test_an_answer_takes_the_place_of_none(tmp_path):
    none = Verdict(label="UNSURE", reason="refused", answered=False)
    with Journal.open(tmp_path / "j.jsonl") as journal:
        journal.add("k", none, Usage())
        assert journal.get("k") == none
        journal.add("k", Verdict(label="NO"), Usage())
        journal.add("k", Verdict(label="YES"), Usage())
        assert journal.get("k").label == "NO"
    with Journal.open(tmp_path / "j.jsonl", resume=True) as journal:
        assert journal.get("k").label == "NO"


def test_reasons_are_counted_by_kind():
    def unsure(reason, **more):
        return Verdict(label="UNSURE", reason=reason, **more)

    given = [
        unsure("the quoted evidence stands in no context: 'a'; it said YES: because"),
        unsure("the quoted evidence stands in no context: 'b'; it said YES: so"),
        unsure("the endpoint refused: HTTP 400 bad; very bad", answered=False),
        unsure(""),
        unsure("x" * 500),
        Verdict(label="NO", reason="not there"),
    ]
    assert reasons_of(given) == {
        "the quoted evidence stands in no context": 2,
        "no reason was given": 1,
        "the endpoint refused: HTTP 400 bad; very bad": 1,
        f"{'x' * 159}…": 1,
    }


def test_a_long_pause_is_obeyed_up_to_a_limit_and_can_be_interrupted(raw, tmp_path, capsys):
    busy = (429, {"retry-after": "500"}, b"slow down")
    with FaultyServer() as server:
        server.override = lambda body: busy
        out = tmp_path / "mined"
        assert main([*command(raw, server, out), "--max-wait", "90"]) == 1
        error = capsys.readouterr().err
        assert "asks to wait 500 s, longer than the 90 s" in error and "come back after 20" in error
        assert "resume then" in error and len(server.bodies) <= 4
        asked = len(server.bodies)
        line = [sys.executable, "-m", "dartboard", *command(raw, server, out), "--resume"]
        with subprocess.Popen(line, stderr=subprocess.PIPE) as process:
            errors = ""
            while "asking again in 500.0 s" not in errors and (byte := process.stderr.read(1)):
                errors += byte.decode("latin-1")
            assert process.poll() is None and len(server.bodies) > asked
            os.kill(process.pid, signal.SIGINT)
            errors += process.communicate(timeout=60)[1].decode()
        assert process.returncode == 130 and "with --resume the command goes on" in errors
        assert "asking again in 500.0 s" in errors
        server.override = lambda body: None
        assert main([*command(raw, server, out), "--resume"]) == 0


def test_limits_of_one_answer_are_sent_and_checked(raw, tmp_path, capsys):
    with FaultyServer() as server:
        assert main([*command(raw, server, tmp_path / "m"), "--max-output", "777", "--timeout", "9"]) == 0
        assert {body["max_tokens"] for body in server.bodies} == {777}
        for option, value in (("--timeout", "0"), ("--max-wait", "-1"), ("--max-output", "0")):
            assert main([*command(raw, server, tmp_path / "n"), option, value]) in (1, 2)
            assert not (tmp_path / "n").exists()
        server.bodies.clear()
        assert main(command(raw, server, tmp_path / "o")) == 0
        assert {body["max_tokens"] for body in server.bodies} == {8192}
