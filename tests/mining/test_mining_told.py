"""What ``dartboard mine`` tells of doubts: about the judge, the prompt, the cost, two judges that are one."""

import json
import re

import pytest
import yaml

from dartboard.cli.app import main
from dartboard.cli.mine_view import told_cost
from dartboard.llm.usage import Usage
from tests.mining.doors import FEW, code, into, write_house
from tests.mining.faulty_server import FaultyServer


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.setenv("COLUMNS", "160")


def test_what_the_controls_say_against_a_judge_is_told(house, tmp_path, capsys):
    answer = {"label": "YES", "evidence": "", "missing": "", "reason": "sure"}

    class YesMan(FaultyServer):
        """Agrees with everything, and quotes what it was shown."""

        def answer(self, body):
            lines = body["messages"][-1]["content"].splitlines()
            quote = next((line for line in lines if line.startswith("The code of door")), "")
            return json.dumps(answer | {"evidence": quote})

    with YesMan() as server:
        server.override = lambda body: (200, {}, reply(server.answer(body)))
        run = ["mine", "run", *house, *FEW, "--judge", f"openai:yes@{server.url}", "--no-kernels"]
        assert main([*run, *into(tmp_path)]) == 1
        said = capsys.readouterr()
        told = " ".join(said.err.split())
        assert "dartboard eval" not in said.out
        assert "failed its controls: of " in told and "negative controls it was wrong on 8" in told
        assert "the judge was wrong on 8 of 8 negative controls (100%): do not trust" in told
        assert "does not fence" not in told
        assert main([*run, "--prompt", "seed-1", "--out", str(tmp_path / "seed")]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "the prompt seed-1 does not fence contexts: an order inside one reaches the judge" in told


def test_a_judge_that_fails_its_controls_verifies_nothing(house, tmp_path, capsys):
    out = tmp_path / "m"
    run = ["mine", "run", *house, *FEW, "--no-kernels", "--out", str(out)]
    assert main([*run, "--judge", "answers"]) == 0
    assert (out / "beir").is_dir() and (out / "qrels.txt").exists()
    (out / "journal.jsonl").unlink()

    class Prose(FaultyServer):
        """Says NO once, so that it is not given up, and then nothing that can be read."""

        asked = 0

    with Prose() as server:

        def answer(body):
            server.asked += 1
            odd = server.asked % 3
            return (200, {}, reply("I think so." if odd else '{"label": "NO", "reason": "not there"}'))

        server.override = answer
        assert main([*run, "--judge", f"openai:prose@{server.url}", "--concurrency", "1"]) == 1
    capsys.readouterr()
    file = out / "retrieval_dataset.yaml"
    assert yaml.safe_load(file.read_text())["verified"] is False
    assert not (out / "beir").exists() and not (out / "qrels.txt").exists()
    assert main(["mine", "validate", str(out)]) == 1
    assert "error: the judge failed its controls" in capsys.readouterr().out
    assert main(["eval", "--dataset", str(file), "--systems", "cosine", "--out", str(tmp_path / "r")]) == 1
    assert "failed its controls, so its labels are not verified" in " ".join(capsys.readouterr().err.split())


def reply(content):
    message = {"message": {"content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return json.dumps({"choices": [message], "usage": usage}).encode()


def test_no_negative_control_is_a_note(tmp_path, capsys):
    registry, corpus = write_house(tmp_path, questions=1)
    run = ["mine", "run", str(registry), "--corpus", corpus, *FEW, "--judge", "answers"]
    assert main([*run, *into(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "no negative control was asked, which needs two cases with different targets" in told


def cellar(folder, answers):
    """Cases that name one note of the two or more that they need, beside one that needs one."""
    registry, corpus = write_house(folder, questions=1)
    lines = [
        f'  - {{id: "both:{first}", question: "Which codes open doors {first} and {first + 1}?", '
        f'target: "door-{first}.md", facets: [["{answers(first)}"], ["{answers(first + 1)}"]]}}'
        for first in (2, 3, 4)
    ]
    registry.write_text(registry.read_text() + "\n".join(lines) + "\n")
    return ["mine", "run", str(registry), "--corpus", corpus, *FEW, "--judge", "answers", *into(folder)]


def test_a_judge_without_errors_is_trusted_though_targets_are_not_enough(tmp_path, capsys):
    run = cellar(tmp_path, code)
    assert main(run) == 0
    told = capsys.readouterr()
    assert "do not trust" not in told.err
    page = " ".join(told.out.split())
    assert "Left out of the positive controls" in page and "both:2, both:3, both:4." in page
    assert "dartboard eval --dataset" in page
    assert main(["mine", "validate", str(tmp_path / "m")]) == 0
    assert "is sound." in capsys.readouterr().out
    assert main([*run[:-1], str(tmp_path / "other"), "--no-kernels"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "wrong on 3 of 4 positive controls" in told
    assert "Or targets are not enough for an answer, which only a run with kernels finds out" in told


def test_no_positive_control_that_counts_is_told(tmp_path, capsys):
    run = cellar(tmp_path, code)
    registry = tmp_path / "registry.yaml"
    listed = yaml.safe_load(registry.read_text())["cases"][1:]
    registry.write_text(json.dumps({"cases": listed}))
    assert main(run) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert "no positive control counts, since the targets of 3 cases are not enough for an answer" in told


@pytest.mark.parametrize("shown", [[], ["--json"]])
def test_a_run_without_positives_warns_and_does_not_suggest_eval(tmp_path, capsys, shown):
    registry, corpus = write_house(tmp_path)
    for door in range(1, 5):
        registry.write_text(registry.read_text().replace(f'"{code(door)}"', '"nowhere to be found"'))
    run = ["mine", "run", str(registry), "--corpus", corpus, *FEW, "--judge", "answers", *into(tmp_path)]
    assert main([*run, *shown]) == 1
    told = capsys.readouterr()
    assert "no context is positive: nothing can be measured with this data set" in " ".join(told.err.split())
    assert "dartboard eval" not in told.out and "dartboard calibrate" not in told.out
    assert "retrieval_dataset.yaml" in told.out


def test_help_warns_of_a_prompt_without_fences(capsys):
    assert main(["mine", "judge", "--help"]) == 0
    assert "does NOT fence contexts" in " ".join(re.sub(r"[│\n]", " ", capsys.readouterr().out).split())


def test_a_judge_beside_a_part_of_itself_is_told_of(house, tmp_path, capsys):
    with FaultyServer() as server:
        other = f"openai:doorman@{server.url}"
        run = ["mine", "run", *house, *FEW, "--judge", f"ensemble:answers,{other}", "--no-kernels"]
        assert main([*run, "--second-judge", "answers", *into(tmp_path)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "They are not independent: answers is part of both." in page
    text = (tmp_path / "m" / "retrieval_dataset.yaml").read_text()
    assert 'shared:\n  - "answers"\n' in text
    assert main(["mine", "validate", str(tmp_path / "m")]) == 0


def test_a_budget_that_is_used_up_tells_what_this_run_did(house, tmp_path, capsys):
    with FaultyServer() as server:
        run = ["mine", "run", *house, *FEW, "--judge", f"openai:doorman@{server.url}", "--prices", "2,12"]
        run += ["--no-kernels", "--max-output", "200", "--concurrency", "1", *into(tmp_path)]
        assert main([*run, "--budget", "0.02"]) == 1
        asked = len(server.bodies)
        assert asked and f"for {asked} calls in this run" in " ".join(capsys.readouterr().err.split())
        assert main([*run, "--budget", "0.02", "--resume"]) == 1
        assert len(server.bodies) == asked
        assert "for 0 calls in this run" in " ".join(capsys.readouterr().err.split())


def test_lost_requests_are_part_of_the_cost():
    assert told_cost(Usage(calls=3, input_tokens=5, output_tokens=1, unanswered=2)) == (
        "3 calls, 6 tokens, 2 requests lost without an answer"
    )
    assert told_cost(Usage(unanswered=1)) == "0 calls, 0 tokens, 1 request lost without an answer"
    assert told_cost(Usage()) == "no calls"


def test_checks_alone_resolve_names_by_the_corpus(tmp_path, capsys):
    """``--judge check`` follows ``house.Door`` to where it is defined, as ``--checks`` after a judge does."""
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("from house.doors import Door as Entrance\n")
    doors = 'class Door:\n    """Opens."""\n\n\nclass Lock:\n    """Closes."""\n'
    (package / "doors.py").write_text(doors)
    (tmp_path / "s.py").write_text("import house\nhouse.Entrance()\n")
    (tmp_path / "t.py").write_text("assert 'house.Entrance()' in open('s.py').read()\n")
    (tmp_path / "registry.yaml").write_text(
        'cases:\n  - {id: "a", question: "What opens?", target: "house.doors.Door", solution: "s.py",\n'
        '     check: {command: ["python", "t.py"], files: ["t.py"], candidate: "s.py"}}\n'
    )
    run = ["mine", "run", str(tmp_path / "registry.yaml"), "--corpus", f"package:house@{tmp_path}"]
    run += ["--random", "5"]
    assert main([*run, "--judge", "check", "--checks", "--json", *into(tmp_path)]) == 0
    data = yaml.safe_load((tmp_path / "m" / "retrieval_dataset.yaml").read_text())
    (pair,) = data["pairs"]
    assert [one["fqn"] for one in pair["positive_ctxs"]] == ["house.doors.Door"]
    assert "house.doors.Lock" in [one["fqn"] for one in pair["negative_ctxs"]]
