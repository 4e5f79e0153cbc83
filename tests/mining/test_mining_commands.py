"""``dartboard mine`` as a user meets it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from dartboard.cli import mine_run
from dartboard.cli.app import main
from dartboard.mining import pipeline as room
from dartboard.mining.dataset import Kernel
from dartboard.mining.dataset_writer import write_dataset
from tests.mining.doors import FEW, into, write_house
from tests.mining.faulty_server import FaultyServer
from tests.mining.mined import mined, pair
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def surroundings(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")


def extracted(house, tmp_path):
    raw = tmp_path / "raw.jsonl"
    assert main(["mine", "extract", *house, "--out", str(raw), *FEW]) == 0
    return str(raw)


def test_help_teaches_the_flow(capsys):
    assert main(["mine"]) == 0
    page = capsys.readouterr().out
    for word in (
        "extract",
        "judge",
        "validate",
        "compare",
        "--resume",
        "--budget",
        "calibrate",
        "registry.yaml",
    ):
        assert word in page
    for command in ("extract", "judge", "run", "validate", "compare"):
        assert main(["mine", command, "--help"]) == 0
        assert "Examples:" in capsys.readouterr().out


def test_help_loads_nothing_heavy():
    code = "import sys; from dartboard.cli.app import main; main(['mine', '--help']); "
    code += "print([m for m in ('yaml', 'httpx', 'scipy', 'dartboard.mining') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_step_by_step(house, tmp_path, capsys):
    raw = extracted(house, tmp_path)
    assert "4 questions with" in capsys.readouterr().out
    out = tmp_path / "mined"
    assert main(["mine", "judge", raw, "--judge", "answers", "--out", str(out)]) == 0
    page = capsys.readouterr().out
    assert "4 questions on notes, judged by answers" in page and "false positive" in page
    assert "Kernels: 4 minimal, 1.0 contexts on average." in page and "no calls" in page
    assert sorted(path.name for path in out.iterdir()) == [
        "beir",
        "journal.jsonl",
        "qrels.txt",
        "retrieval_dataset.yaml",
    ]
    assert main(["mine", "validate", str(out)]) == 0
    assert "is sound" in capsys.readouterr().out
    assert main(["mine", "compare", str(out)]) == 0
    assert "nothing to compare" in capsys.readouterr().out


def test_all_at_once_gives_the_same_bytes_and_json(house, tmp_path, capsys):
    raw = extracted(house, tmp_path)
    assert main(["mine", "judge", raw, "--judge", "answers", "--out", str(tmp_path / "a")]) == 0
    capsys.readouterr()
    run = ["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(tmp_path / "b"), "--json"]
    assert main(run) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"] == 4 and told["kernels"] == {"minimal": 4} and told["usage"]["calls"] == 0
    one, other = (tmp_path / name / "retrieval_dataset.yaml" for name in "ab")
    assert one.read_bytes() == other.read_bytes()


def test_a_second_run_must_say_that_it_resumes(house, tmp_path, capsys):
    raw = extracted(house, tmp_path)
    judge = ["mine", "judge", raw, "--judge", "answers", "--out", str(tmp_path / "mined")]
    assert main(judge) == 0
    assert main(judge) == 1
    assert "--resume" in capsys.readouterr().err
    assert main([*judge, "--resume"]) == 0


def test_what_two_sources_found_is_compared(tmp_path, capsys):
    expansion = pair().kernels["expansion"]
    more = Kernel(contexts=("toy.Agent", "toy.Tool", "toy.both"), status="sufficient")
    one = pair(kernels={"expansion": expansion, "imports": more})
    write_dataset(mined(one), tmp_path)
    assert main(["mine", "compare", str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "expansion – imports" in page and "0.667" in page and "only imports: toy.both" in page
    assert "none: all alike" in page, "one question gives no interval"
    assert main(["mine", "compare", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sources"][0]["cases"] == 1


def test_a_question_that_needs_no_context_is_told(house, tmp_path, capsys):
    registry = tmp_path / "registry.yaml"
    registry.write_text(
        registry.read_text().replace("What is the code of door 1?", "Is 7919 the code of door 1?")
    )
    assert main(["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(tmp_path / "m")]) == 0
    assert "Answered without any context, and marked: door:1." in capsys.readouterr().out


def test_problems_are_listed_and_fail(house, tmp_path, capsys):
    out = tmp_path / "mined"
    assert main(["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(out), "--no-exports"]) == 0
    file = out / "retrieval_dataset.yaml"
    file.write_text(file.read_text().replace("The code of door 1 is", "The code of door one was", 1))
    capsys.readouterr()
    assert main(["mine", "validate", str(file)]) == 1
    page = capsys.readouterr().out
    assert "error: [door:1] evidence does not stand in the text" in page and f"{file}:" in page
    assert main(["mine", "validate", str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["errors"] >= 1 and told["problems"][0]["line"] > 1
    assert [one["message"] for one in told["problems"] if one["level"] == "warning"] == [
        "the file was changed after it was written"
    ]


def test_a_dry_run_asks_nobody_and_writes_nothing(house, tmp_path, capsys):
    raw = extracted(house, tmp_path)
    capsys.readouterr()
    with FaultyServer() as server:
        judge = [
            "mine",
            "judge",
            raw,
            "--judge",
            f"openai:doorman@{server.url}",
            "--out",
            str(tmp_path / "m"),
        ]
        assert main([*judge, "--dry-run"]) == 0
        assert "give --prices" in capsys.readouterr().out
        assert main([*judge, "--dry-run", "--prices", "2,12", "--budget", "0.0001"]) == 0
        page = capsys.readouterr().out
        assert "kernels (about)" in page and "More than the budget" in page and "Nobody was asked" in page
        assert main([*judge, "--dry-run", "--prices", "2,12", "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert steps["contexts"]["usage"]["cost"] > 0 and steps["controls"]["tasks"] == 20
        assert not server.bodies and not (tmp_path / "m").exists()
    assert main(["mine", "judge", raw, "--judge", "answers", "--out", "m", "--dry-run"]) == 0
    assert "costs nothing" in capsys.readouterr().out


def test_a_model_with_faults_a_budget_and_an_agent(house, tmp_path, capsys):
    raw, out = extracted(house, tmp_path), tmp_path / "mined"
    with FaultyServer(seed=1, faults=0.1) as server:
        judge = ["mine", "judge", raw, "--judge", f"openai:doorman@{server.url}", "--prices", "2,12"]
        judge += ["--out", str(out), "--second-judge", "answers", "--concurrency", "4", "--rpm", "100000"]
        assert main([*judge, "--budget", "0.02"]) == 1
        assert (
            "budget is used up" in capsys.readouterr().err and not (out / "retrieval_dataset.yaml").exists()
        )
        assert main([*judge, "--budget", "5", "--resume"]) == 0
        page = capsys.readouterr().out
        assert "answers agree on" in page and "spent" in page
        first = (out / "retrieval_dataset.yaml").read_bytes()
        asked = len(server.bodies)
        assert main([*judge, "--resume"]) == 0
        assert len(server.bodies) == asked and (out / "retrieval_dataset.yaml").read_bytes() == first
        agent = ["--agent", f"openai:doorman@{server.url}", "--out", str(tmp_path / "agent")]
        assert main([*judge, *agent]) == 0
    assert "the agent used nothing" in (tmp_path / "agent" / "retrieval_dataset.yaml").read_text()


def test_killed_and_resumed_it_ends_with_the_same_bytes(house, tmp_path):
    raw = extracted(house, tmp_path)

    def command(out, url):
        judge = [sys.executable, "-m", "dartboard", "mine", "judge", raw, "--judge", f"openai:doorman@{url}"]
        return [*judge, "--out", str(tmp_path / out), "--resume", "--concurrency", "4"]

    with FaultyServer(seed=2) as server:
        assert subprocess.run(command("whole", server.url), capture_output=True).returncode == 0
        whole = len(server.bodies)
        for sent, code, stop in ((signal.SIGKILL, -9, whole // 4), (signal.SIGINT, 130, whole // 3)):
            server.bodies.clear()
            sent_now = threading.Event()
            server.on_request = lambda count, at=stop, go=sent_now: count <= at or go.wait(600)
            with subprocess.Popen(command("killed", server.url), stderr=subprocess.PIPE) as process:
                wait_until(lambda at=stop, p=process: len(server.bodies) >= at or p.poll() is not None)
                os.kill(process.pid, sent)
                sent_now.set()
                errors = process.communicate(timeout=300)[1].decode()
                assert process.returncode == code, errors
        assert "with --resume the command goes on" in errors and "Traceback" not in errors
        server.on_request = lambda count: None
        server.bodies.clear()
        assert subprocess.run(command("killed", server.url), capture_output=True).returncode == 0
        assert len(server.bodies) < whole
    for name in ("retrieval_dataset.yaml", "qrels.txt", "beir/corpus.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


WRONG = [
    (["--judge", "gemini"], 1, "GEMINI_API_KEY"),
    (["--judge", "check"], 2, "--checks"),
    (["--judge", "ensemble:answers,check:answers"], 2, "--checks"),
    (["--judge", "oracle"], 1, "unknown judge 'oracle'"),
    (["--judge", "answers", "--prices", "cheap"], 2, "--prices takes two numbers"),
    (["--judge", "answers", "--agent", "answers"], 2, "--agent must be a chat model"),
    (["--judge", "answers", "--corpus", "folder:/nowhere"], 1, "there is no folder"),
    (["--judge", "answers", "--out", "/etc/hostname"], 2, "--out must be a folder"),
]


@pytest.mark.parametrize(("options", "code", "message"), WRONG)
def test_what_is_asked_for_wrongly_is_one_line(house, tmp_path, capsys, options, code, message):
    raw = extracted(house, tmp_path)
    assert main(["mine", "judge", raw, "--out", str(tmp_path / "m"), *options]) == code
    error = capsys.readouterr().err.strip()
    assert message in error and "Traceback" not in error and not (tmp_path / "m").exists()


def test_a_changed_corpus_is_refused(house, tmp_path, capsys):
    raw = extracted(house, tmp_path)
    (tmp_path / "notes" / "door-9.md").write_text("A new note.")
    assert main(["mine", "judge", raw, "--judge", "answers", "--out", str(tmp_path / "m")]) == 1
    assert "extract again" in capsys.readouterr().err
    assert (
        main(["mine", "judge", raw, "--judge", "answers", "--out", str(tmp_path / "m"), "--no-kernels"]) == 0
    )


def test_run_opens_its_corpus_once_and_reads_nothing_back_to_go_on(house, tmp_path, monkeypatch):
    opened = []
    whole = mine_run.open_corpus
    monkeypatch.setattr(mine_run, "open_corpus", lambda spec: opened.append(spec) or whole(spec))
    for reader in ("dartboard.mining.raw_candidates.read_candidates", "dartboard.datasets.mined.load_mined"):
        monkeypatch.setattr(reader, lambda path: pytest.fail(f"{path} was read back"))
    out = tmp_path / "m"
    assert main(["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(out)]) == 0
    assert opened == [house[-1]]
    written = sorted(path.name for path in out.iterdir())
    assert written == ["beir", "journal.jsonl", "qrels.txt", "raw.jsonl", "retrieval_dataset.yaml"]


def test_the_bar_hears_every_step(house, tmp_path, monkeypatch):
    heard = []
    whole = room.find_kernels

    def listening(bench, *args, **more):
        heard.append(bench.limiter.usage)
        return whole(bench, *args, **more)

    monkeypatch.setattr(room, "find_kernels", listening)
    assert main(["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(tmp_path / "m")]) == 0
    assert len(heard) == 1 and heard[0].calls == 0


def test_evaluation_and_calibration_take_it(tmp_path, capsys):
    registry, corpus = write_house(tmp_path, doors=16, questions=12)
    out = tmp_path / "mined"
    assert (
        main(["mine", "run", str(registry), "--corpus", corpus, "--judge", "answers", "--out", str(out)]) == 0
    )
    file = str(out / "retrieval_dataset.yaml")
    measures = "hit_rate,precision,recall,set_recall,success,jaccard"
    report = ["--systems", "cosine,mmr-0.5,dartboard", "--metrics", measures, "-k", "1,3", "--copies", "0"]
    report += ["--no-sigma-sweep", "--resamples", "200", "--out", str(tmp_path / "report")]
    assert main(["eval", "--dataset", file, *report]) == 0
    results = json.loads((tmp_path / "report" / "results.json").read_text())
    text = json.dumps(results)
    for measure in ("hit_rate@3", "precision@3", "set_recall@3", "success@3", "jaccard@3"):
        assert measure in text
    calibration = tmp_path / "calibration.json"
    assert main(["calibrate", "--dataset", file, "-k", "3", "--out", str(calibration)]) == 0
    assert json.loads(calibration.read_text())["sigma"]["pairs"] > 0
    assert main(["calibrate", "--dataset", str(out), "-k", "3"]) == 0


def test_names_are_no_paths_for_callers_that_do_not_ask(tmp_path):
    from dartboard.datasets import load_text
    from dartboard.errors import DatasetError

    registry, corpus = write_house(tmp_path)
    out = tmp_path / "mined"
    assert (
        main(["mine", "run", str(registry), "--corpus", corpus, "--judge", "answers", "--out", str(out)]) == 0
    )
    assert len(load_text(str(out), paths=True)) == 4 == len(load_text(str(out / "beir"), paths=True))
    with pytest.raises(DatasetError, match="there is no data set"):
        load_text(str(out), fetch=False)
    with pytest.raises(DatasetError, match="there is no data set"):
        load_text(str(tmp_path), paths=True)


@pytest.mark.parametrize("judge", ["gemini", "openai:gpt-5", "ensemble:answers,gemini,openai:gpt-5"])
def test_a_dry_run_needs_no_key(house, tmp_path, capsys, monkeypatch, judge):
    monkeypatch.delenv("OPENAI_API_KEY")
    raw = extracted(house, tmp_path)
    dry = ["--judge", judge, "--second-judge", "gemini", "--agent", "gemini", "--dry-run", "--prices", "2,12"]
    assert main(["mine", "judge", raw, "--out", str(tmp_path / "m"), *dry]) == 0
    assert "Nobody was asked" in capsys.readouterr().out
    assert main(["mine", "run", *house, *FEW, "--out", str(tmp_path / "m"), *dry]) == 0
    assert not (tmp_path / "m").exists()


def test_a_missing_key_is_said_before_anything_is_asked(house, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    out = tmp_path / "m"
    assert main(["mine", "run", *house, *FEW, "--out", str(out), "--judge", "openai:gpt"]) == 1
    assert "openai:gpt needs a key: set the variable OPENAI_API_KEY" in capsys.readouterr().err
    assert not out.exists()


REFUSED = [
    (["--budget", "-1", "--prices", "2,12"], "budget_cost must be a number >= 0"),
    (["--budget", "nan", "--prices", "2,12"], "budget_cost must be a number >= 0"),
    (["--budget-tokens", "-1"], "budget_tokens must be a number >= 0"),
    (["--budget", "5"], "--budget is money, which needs --prices"),
    (["--rpm", "0"], "requests_per_minute must be a positive number"),
    (["--tpm", "-3"], "tokens_per_minute must be a positive number"),
    (["--prices", "2"], "--prices takes two numbers"),
    (["--prices", "-2,3"], "a price for a million tokens"),
    (["--prompt", "poem"], "no prompt of version 'poem'"),
    (["--timeout", "-1"], "timeout > 0"),
    (["--concurrency", "500"], "'--concurrency'"),
    (["--votes", "0"], "'--votes'"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
@pytest.mark.parametrize("verb", ["judge", "run"])
def test_options_are_checked_before_any_file_is_touched(house, tmp_path, capsys, verb, options, message):
    start = ["mine", "run", *house, *FEW]
    if verb == "judge":
        start = ["mine", "judge", extracted(house, tmp_path)]
    out = tmp_path / "m"
    common = ["--judge", "openai:doorman@http://127.0.0.1:9/v1", "--out", str(out)]
    capsys.readouterr()
    assert main([*start, *common, *options]) in (1, 2)
    assert message in capsys.readouterr().err and not out.exists()


def test_a_run_that_is_no_resumption_changes_nothing(house, tmp_path, capsys):
    out = tmp_path / "m"
    run = ["mine", "run", *house, *FEW, "--judge", "answers", "--out", str(out)]
    assert main(run) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    registry = tmp_path / "registry.yaml"
    registry.write_text(registry.read_text().replace("door:1", "gate:1"))
    assert main(run) == 1
    assert "--resume" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_a_relative_corpus_is_found_from_everywhere(tmp_path, monkeypatch, capsys):
    write_house(tmp_path)
    monkeypatch.chdir(tmp_path)
    extract = ["mine", "extract", "registry.yaml", "--corpus", "folder:notes", "--out", "deep/raw.jsonl"]
    assert main([*extract, *FEW]) == 0
    head = json.loads((tmp_path / "deep" / "raw.jsonl").read_text().splitlines()[0])
    assert head["settings"]["corpus"] == "folder:../notes" and str(tmp_path) not in json.dumps(head)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    judge = ["mine", "judge", "../deep/raw.jsonl", "--judge", "answers"]
    assert main([*judge, "--out", "mined"]) == 0
    assert main([*judge, "--out", "mined", "--resume"]) == 0
    (tmp_path / "notes").rename(tmp_path / "moved")
    capsys.readouterr()
    assert main([*judge, "--out", "again"]) == 1
    assert "If it has moved, say where it is by --corpus" in capsys.readouterr().err
    assert main([*judge, "--out", "again", "--corpus", "folder:../moved"]) == 0


def test_candidates_do_not_choose_a_server(tmp_path, monkeypatch, capsys):
    """A file from elsewhere names its corpus; a server would get the searches of the kernels."""
    write_house(tmp_path)
    monkeypatch.chdir(tmp_path)
    extract = ["mine", "extract", "registry.yaml", "--corpus", "folder:notes", "--out", "raw.jsonl"]
    assert main([*extract, *FEW]) == 0
    head, *rest = (tmp_path / "raw.jsonl").read_text().splitlines(keepends=True)
    hostile = head.replace("folder:notes", "store:postgresql://attacker.example/docs")
    assert hostile != head
    (tmp_path / "raw.jsonl").write_text("".join([hostile, *rest]))
    assert main(["mine", "judge", "raw.jsonl", "--judge", "answers", "--out", "mined"]) == 1
    said = capsys.readouterr().err
    assert "sent to postgresql://attacker.example/docs" in said and "--corpus" in said


def unanswered_registry(tmp_path, lacking):
    registry, corpus = write_house(tmp_path)
    lines = registry.read_text().splitlines()
    answers = [at for at, line in enumerate(lines) if line.strip().startswith("answer:")]
    for at in answers[:lacking]:
        lines[at] = "    answer: 'yes'" if at == answers[0] else "    # no answer"
    registry.write_text("\n".join(lines) + "\n")
    return [str(registry), "--corpus", corpus, *FEW]


def test_cases_without_answers_are_told_of(tmp_path, capsys):
    given = unanswered_registry(tmp_path, 2)
    assert main(["mine", "run", *given, "--judge", "answers", "--out", str(tmp_path / "m")]) == 0
    told = capsys.readouterr()
    assert "2 of 4 cases have no answer string" in told.err and "door:1, door:2;" in told.err
    assert "Unsure (" in told.out and "the case has no known answer strings" in told.out


def test_a_judge_of_answers_without_any_answer_is_refused(tmp_path, capsys):
    given = unanswered_registry(tmp_path, 4)
    assert main(["mine", "run", *given, "--judge", "answers", "--out", str(tmp_path / "m")]) == 1
    assert "none of the 4 cases has an answer string" in capsys.readouterr().err
    assert not (tmp_path / "m" / "journal.jsonl").exists()


def test_what_was_not_asked_has_no_rate(tmp_path, capsys):
    registry, corpus = write_house(tmp_path, questions=1)
    run = ["mine", "run", str(registry), "--corpus", corpus, *FEW, "--judge", "answers"]
    assert main([*run, *into(tmp_path)]) == 0
    page = capsys.readouterr().out
    line = next(line for line in page.splitlines() if line.startswith("false positive"))
    assert "none asked" in line and "0 of 0" in line and "%" not in line
    assert "(1 case)" in next(line for line in page.splitlines() if line.startswith("false negative"))


def test_judges_who_agree_everywhere_are_not_called_certain(house, tmp_path, capsys):
    with FaultyServer() as server:
        judge = ["mine", "run", *house, *FEW, "--judge", "answers", *into(tmp_path)]
        assert main([*judge, "--second-judge", f"openai:doorman@{server.url}"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "Cohen's kappa 1.00, without an interval: they never differ" in page
    assert "with 4 cases they may differ on up to 49.0% of contexts" in page


@pytest.mark.parametrize("name", ["doors.yaml", "my set.yml"])
def test_a_mined_file_may_have_any_name(house, tmp_path, capsys, name):
    assert main(["mine", "run", *house, *FEW, "--judge", "answers", *into(tmp_path)]) == 0
    file = tmp_path / name
    (tmp_path / "m" / "retrieval_dataset.yaml").rename(file)
    assert main(["mine", "validate", str(file)]) == 0
    report = ["--systems", "cosine", "-k", "1", "--copies", "0", "--no-sigma-sweep", "--resamples", "100"]
    assert main(["eval", "--dataset", str(file), *report, "--out", str(tmp_path / "report")]) == 0
    assert main(["eval", "--dataset", str(tmp_path / "registry.yaml"), *report, "--out", "r"]) == 1
    assert "'pairs' is missing" in capsys.readouterr().err


def test_the_bar_tells_what_the_run_has_cost(house, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    with FaultyServer() as server:
        judge = ["mine", "run", *house, *FEW, "--judge", f"openai:doorman@{server.url}", *into(tmp_path)]
        assert main([*judge, "--prices", "2,12"]) == 0
    bar = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    for step in ("controls", "contexts", "kernels"):
        assert re.search(rf"{step} .*\d+ calls, [\d,]+ tokens, 0\.\d{{4}} spent", bar), step
