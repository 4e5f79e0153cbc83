"""``dartboard ask`` as a user runs it, with a model server on loopback."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from dartboard.cli import main
from tests.cli.running import environment, run
from tests.llm.chat_server import ChatServer, ModelServer, Waiting, cut, openai_events, quoting, streamed

DOCUMENTS = {
    "keys.md": "# Keys\n\nKeys are rotated on the first of the month by the platform team.\n",
    "logs.md": "# Logs\n\nLogs of requests are kept for one week and then deleted.\n",
    "food.md": "# Food\n\nThe canteen serves soup on Fridays.\n",
}
QUESTION = "When are keys rotated?"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ask")
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text)
    store = folder / "index.dartboard"
    done = run("index", str(folder), "--store", str(store), cache=folder / "cache")
    assert done.returncode == 0, done.stderr
    return store


@pytest.fixture
def quiet(monkeypatch, tmp_path):
    """No setting of the machine counts."""
    for name in ("DARTBOARD_ANSWER_MODEL", "OPENAI_API_KEY", "GEMINI_API_KEY", "DARTBOARD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def asked(index, server, *more):
    return main(["ask", QUESTION, "--store", str(index), "--model", f"openai:m@{server.url}", *more])


def test_an_answer_and_its_sources(index, quiet, capsys):
    with ModelServer() as server:
        assert asked(index, server, "--k", "3") == 0
    out, errors = capsys.readouterr()
    answer, _, sources = out.partition("\nSources\n")
    assert "Keys are rotated on the first of the month by the platform team [1]." in answer
    assert "[1] " in sources and "keys.md" in sources and "Not cited" in sources
    assert sources.index("[1]") < sources.index("[2]") < sources.index("Not cited") < sources.index("[3]")
    assert errors == ""


def test_a_question_about_something_else(index, quiet, capsys):
    question = ["ask", "Who won the first football World Cup?", "--store", str(index)]
    with ModelServer() as server:
        assert main([*question, "--model", f"openai:m@{server.url}"]) == 0
        assert "nothing relevant found: the best candidate" in capsys.readouterr().err
        assert main([*question, "--model", f"openai:m@{server.url}", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert all("it found nothing relevant" in body["messages"][-1]["content"] for body in server.bodies)
    assert found["relevance"]["verdict"] == "nothing_relevant" and found["passages"]


@pytest.mark.parametrize("flag", ["--no-stream", "--json"])
def test_as_a_whole(index, quiet, capsys, flag):
    with ModelServer() as server:
        assert asked(index, server, flag, "--tokens", "200") == 0
    out = capsys.readouterr().out
    if flag == "--json":
        found = json.loads(out)
        assert found["answer"].startswith("# Keys Keys are rotated") and found["cited"] == [1, 2]
        assert found["passages"][0]["metadata"]["source"] == "keys.md"
        assert found["model"] == "openai:m" and found["tokens"]["counted"]
    else:
        assert out.startswith("# Keys Keys are rotated")


def test_settings_come_from_everywhere(index, quiet, capsys, monkeypatch, tmp_path):
    with ModelServer() as server:
        file = tmp_path / "dartboard.toml"
        file.write_text(
            f'store = "{index}"\nanswer_model = "openai:file@{server.url}"\nanswer_tokens = 77\nk = 1\n'
        )
        assert main(["config", "--trust"]) == 0
        assert main(["ask", QUESTION, "--json"]) == 0
        monkeypatch.setenv("DARTBOARD_ANSWER_MODEL", f"openai:variable@{server.url}")
        assert main(["ask", QUESTION, "--json"]) == 0
        capsys.readouterr()
        assert main(["config", "--json"]) == 0
        models = [body["model"] for body in server.bodies]
        assert [body["max_tokens"] for body in server.bodies] == [77, 77]
    assert models == ["file", "variable"]
    shown = json.loads(capsys.readouterr().out)["settings"]
    assert shown["answer_model"]["source"] == "DARTBOARD_ANSWER_MODEL"
    assert shown["answer_tokens"]["value"] == 77


def test_an_endpoint_that_never_answers_is_left(index, quiet, capsys):
    waiting = Waiting()
    with ChatServer(waiting) as server:
        assert asked(index, server, "--answer-timeout", "1") == 1
        assert len(server.requests) == 1
        waiting.go.set()
    out, errors = capsys.readouterr()
    assert out == "" and "took too long: the answer has not begun after 1 s" in errors


def test_without_a_model_it_says_what_to_set(index, quiet, capsys):
    assert main(["ask", QUESTION, "--store", str(index)]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and errors.count("\n") == 1
    for word in ("DARTBOARD_ANSWER_MODEL", "openai:llama3.1@http://localhost:11434/v1", "dartboard.toml"):
        assert word in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "gemini:g"], "GEMINI_API_KEY"),
        (["--model", "openai:gpt"], "OPENAI_API_KEY"),
        (["--model", "clever"], "unknown model for answers"),
    ],
)
def test_what_is_missing_is_named(index, quiet, capsys, arguments, said):
    assert main(["ask", QUESTION, "--store", str(index), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((401, b"bad key", {}), "refused: HTTP 401 bad key"),
        (streamed(openai_events()), "wrote nothing (stop)"),
        (streamed(openai_events(finish="content_filter")), "content_filter"),
    ],
)
def test_errors_are_one_line(index, quiet, capsys, reply, said):
    with ChatServer(reply) as server:
        assert asked(index, server) == 1
    out, errors = capsys.readouterr()
    assert out == "" and said in errors and errors.startswith("dartboard: openai:m ")


def test_a_cut_keeps_what_came(index, quiet, capsys):
    with ChatServer(cut(openai_events("Monthly [1]", finish=None, done=False, usage=None))) as server:
        assert asked(index, server, "--k", "1") == 1
    out, errors = capsys.readouterr()
    assert out.startswith("Monthly [1]\n") and "Sources" in out
    assert "broke off in the middle" in errors


def test_hostile_answers_are_neutralised_and_doubts_are_told(index, quiet, capsys):
    hostile = openai_events("\x1b[2J\x1b]0;owned\x07", "Monthly [9].\r\x9b31m", finish="length")
    with ChatServer(streamed(hostile)) as server:
        assert asked(index, server, "--k", "1") == 0
    out, errors = capsys.readouterr()
    assert not {"\x1b", "\x07", "\r", "\x9b"} & set(out)
    assert "cites [9], and there is no such passage" in errors and "--answer-tokens" in errors
    assert "none of them cited" in out


def test_nothing_found_asks_nobody(index, quiet, capsys):
    with ModelServer() as server:
        assert asked(index, server, "--filter", 'source = "none.md"') == 0
        assert server.requests == []
    assert "Nobody was asked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--k", "0"], "k must be"),
        (["--k", "2", "--token-budget", "5"], "exclude each other"),
        (["--triage", "0"], "triage_k"),
        (["--answer-tokens", "0"], "--answer-tokens"),
        (["--parts", "0"], "--parts"),
        (["--parts", "9", "--decompose"], "--parts"),
    ],
)
def test_misuse(index, quiet, capsys, arguments, said):
    assert main(["ask", QUESTION, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_keeps_what_came(index, tmp_path, as_json):
    waiting = Waiting("Monthly ", "[1] ")
    with ChatServer(waiting) as server:
        command = ["ask", QUESTION, "--store", str(index), "--model", f"openai:m@{server.url}"]
        with subprocess.Popen(
            [sys.executable, "-m", "dartboard", *command, *(["--json"] if as_json else [])],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        ) as process:
            if as_json:
                assert waiting.began.wait(60)
                assert not waiting.left.wait(0.5)  # timing: nothing may happen meanwhile
            else:
                assert process.stdout.read(8) == "Monthly "
                assert waiting.began.wait(60)
                process.stdout.read(4)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=30)
        assert waiting.left.wait(60)
        waiting.go.set()
    assert process.returncode == 130
    assert "the answer is not complete" in errors and "Traceback" not in errors
    if as_json:
        found = json.loads(out)
        assert (found["answer"], found["finish_reason"]) == ("Monthly [1] ", "interrupted")
    else:
        assert "Sources" in out


def test_on_a_terminal_words_come_one_by_one(index, tmp_path):
    """A real terminal: the first words are there while the model still writes, and no code gets out."""
    waiting = Waiting("First \x1b[31mwords ")
    leader, follower = pty.openpty()
    with ChatServer(waiting) as server:
        command = ["ask", QUESTION, "--store", str(index), "--model", f"openai:m@{server.url}", "--k", "1"]
        with subprocess.Popen(
            [sys.executable, "-m", "dartboard", *command],
            env=environment(tmp_path, TERM="xterm", NO_COLOR="1"),
            stdout=follower,
            stderr=subprocess.DEVNULL,
        ) as process:
            os.close(follower)
            seen = b""
            while b"words" not in seen:
                seen += os.read(leader, 1000)
            assert not waiting.go.is_set()
            waiting.go.set()
            while b"Passages" not in seen:
                seen += os.read(leader, 1000)
            process.wait(30)
    os.close(leader)
    assert b"First words" in seen and b"the end" in seen
    assert process.returncode == 0


BOTH = "When are keys rotated, and how long are logs kept?"
PARTS = ["When are keys rotated?", "How long are logs kept?"]


def splitting(prompt):
    """A model that splits any question into these parts, and answers by quoting."""
    return json.dumps(PARTS) if "Which questions does a search" in prompt else quoting(prompt)


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))


def test_a_question_is_split_and_its_parts_are_shown(index, quiet, own_cache, capsys, monkeypatch):
    with ModelServer(splitting) as server:
        model = ["--model", f"openai:m@{server.url}"]
        ask = ["ask", BOTH, "--store", str(index), "--k", "2", "--decompose"]
        assert main([*ask, *model]) == 0
        out, errors = capsys.readouterr()
        assert "keys.md" in out and "logs.md" in out and "food.md" not in out
        assert errors.endswith("Sub-questions:\n  1. When are keys rotated?\n  2. How long are logs kept?\n")
        assert main([*ask, *model, "--json"]) == 0
        out, errors = capsys.readouterr()
        assert [one["text"] for one in json.loads(out)["questions"]] == [BOTH, *PARTS] and errors == ""
        assert len(server.requests) == 3  # the parts were kept
        assert main([*ask, *model, "--parts", "1", "--also", "Who serves soup?", "--json"]) == 0
        assert "at most 1 of them" in server.bodies[3]["messages"][-1]["content"]
        asked = [one["text"] for one in json.loads(capsys.readouterr().out)["questions"]]
        assert asked == [BOTH, "Who serves soup?", PARTS[0]]

        search = ["search", BOTH, "--store", str(index), "--k", "2", "--decompose"]
        assert main(search) == 2 and "DARTBOARD_ANSWER_MODEL" in capsys.readouterr().err
        monkeypatch.setenv("DARTBOARD_ANSWER_MODEL", f"openai:m@{server.url}")
        assert main(search) == 0
        out, errors = capsys.readouterr()
        assert "for: How long are logs kept?" in out and "Sub-questions:" in errors
        assert main([*search, "--json"]) == 0
        assert [one["text"] for one in json.loads(capsys.readouterr().out)["questions"]] == [BOTH, *PARTS]


def test_a_model_that_splits_nothing_loses_nothing(index, quiet, own_cache, capsys):
    with ModelServer(lambda prompt: "No." if "Which questions" in prompt else quoting(prompt)) as server:
        assert asked(index, server, "--decompose") == 0
        out, errors = capsys.readouterr()
        assert "[1]" in out and "wrote nothing that can be read as questions; searching for" in errors
    with ModelServer(lambda prompt: "[]" if "Which questions" in prompt else quoting(prompt)) as server:
        assert asked(index, server, "--decompose") == 0
        assert capsys.readouterr().err == "The question has one part only.\n"


def test_options_of_a_search_are_options_of_a_question(index, quiet, capsys):
    with ModelServer() as server:
        assert asked(index, server, "--k", "1", "--json") == 0
        (first,) = json.loads(capsys.readouterr().out)["passages"]
        more = ["--also", "How long are logs kept?", "--weights", "1,3", "--seen", first["chunk_id"]]
        assert asked(index, server, "--k", "1", "--json", *more) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["passages"][0]["metadata"]["source"] == "logs.md"
        assert [one["weight"] for one in found["questions"]] == pytest.approx([0.25, 0.75])
        assert asked(index, server, "--k", "1", "--offset", "1", "--json") == 0
        (second,) = json.loads(capsys.readouterr().out)["passages"]
        assert second["chunk_id"] != first["chunk_id"]
