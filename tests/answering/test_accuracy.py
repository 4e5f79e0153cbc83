"""The end-to-end measure: what is asked, what it costs, what is kept, what the report says."""

import json
from contextlib import closing

import pytest

from dartboard.answering.accuracy import measure_answers, plan_of
from dartboard.answering.registry import answer_model
from dartboard.errors import BudgetError, ConfigError, EndpointError
from dartboard.evaluation.experiment import evaluate_dataset
from dartboard.evaluation.report import write_report
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.llm.call_limits import CallLimits
from tests.evaluation.data import clustered
from tests.llm.chat_server import QUICK, ModelServer, finding
from tests.mining.faulty_server import FaultyServer

SYSTEMS = ["cosine", "dartboard", "random", "oracle"]


def data():
    """Each question asks for a code that one of its relevant passages holds."""
    made = clustered(queries=8)
    by_id = {chunk.id: at for at, chunk in enumerate(made.chunks)}
    answers = {}
    for number, (query_id, kernel) in enumerate(made.metadata["kernels"].items()):
        chunk = made.chunks[by_id[kernel[1]]]
        code = f"{number * 7919 % 9973:04d}"
        chunk.text += f"\nThe code of door {number} is {code}."
        made.queries[number] = f"What is the code of door {number}?"
        if number:
            answers[query_id] = [code]
    made.metadata["answers"] = answers
    return made


def config(folder):
    return EvaluationConfig(
        datasets=["clustered"],
        retrievers=SYSTEMS,
        output_dir=str(folder),
        resamples=200,
        copies=[0],
        sigma_sweep=False,
    )


@pytest.fixture(scope="module")
def measured_before(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    dataset = data()
    return dataset, evaluate_dataset(dataset, config(folder))


def ask(server, before, folder, **options):
    dataset, outcome = before
    journal = folder / "parts" / "clustered.answers.jsonl"
    with closing(answer_model(f"openai:m@{server.url}", patience=QUICK)) as chat:
        return measure_answers(outcome, dataset, config(folder), chat, journal=journal, **options)


def test_the_measure_stands_beside_the_others(measured_before, tmp_path):
    dataset, _ = measured_before
    told, heard = [], []
    with ModelServer(finding) as server:
        outcome = ask(
            server,
            measured_before,
            tmp_path,
            confirm=lambda found: bool(told.append(found)) or True,
            listener=lambda *step: heard.append(step),
        )
        calls = len(server.requests)
    record = outcome.record
    assert record["answer"] == {
        "model": "openai:m",
        "prompt": "cited-1",
        "k": 5,
        "queries": 7,
        "unanswered": 0,
    }
    assert record["measures"]["answer@5"] == "Answer@5"
    by_hand = {
        system: [
            float(any(f"door {number} is" in chunk.text for chunk in dataset.chunks if chunk.id in picks))
            for number in range(1, 8)
            for picks in [seeded[0][f"q{number:02}"][:5]]
        ]
        for system, seeded in outcome.runs.items()
    }
    assert by_hand["oracle"] == [1.0] * 7
    for system, right in by_hand.items():
        assert outcome.added[system].values["answer@5"].tolist() == right
        found = record["systems"][system]["answer@5"]
        assert found["mean"] == pytest.approx(sum(right) / 7, abs=1e-6)
        assert found["low"] <= found["mean"] <= found["high"]
    assert set(record["comparisons"]["answer@5"]) == {"cosine", "random", "oracle"}
    assert "p_holm" in record["comparisons"]["answer@5"]["cosine"]
    assert told[0].tasks == calls and told[0].known == 0 and told[0].usage.calls == calls <= 28
    assert heard[-1] == ("Asking openai:m", calls, calls)


def test_reports_show_it(measured_before, tmp_path):
    with ModelServer(finding) as server:
        outcome = ask(server, measured_before, tmp_path)
    write_report([outcome], config(tmp_path), {"clustered": {}})
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["datasets"][0]["answer"]["queries"] == 7
    queries = json.loads((tmp_path / "per_query" / "clustered.json").read_text())
    assert queries["added"]["query_ids"] == [f"q{number:02}" for number in range(1, 8)]
    for file in ("report.md", "report.html"):
        text = (tmp_path / file).read_text()
        assert "Answer@5" in text and "names a known answer to" in text and "of 7 questions" in text


def test_nothing_is_paid_for_twice(measured_before, tmp_path):
    with ModelServer(finding) as server:
        first = ask(server, measured_before, tmp_path)
        asked = len(server.requests)
        told = []
        second = ask(
            server, measured_before, tmp_path, confirm=lambda found: bool(told.append(found)) or True
        )
        assert len(server.requests) == asked
    assert told[0].known == told[0].tasks and told[0].usage.calls == 0
    assert second.record == first.record


def test_a_run_that_fails_goes_on_where_it_was(measured_before, tmp_path):
    tired = True

    def moody(prompt):
        return None if tired and len(server.requests) > 5 else finding(prompt)

    with ModelServer(moody) as server:
        with pytest.raises(EndpointError, match=r"calls in a row|calls failed"):
            ask(server, measured_before, tmp_path, limits=CallLimits(concurrency=1))
        tired, before, told = False, len(server.requests), []
        whole = ask(server, measured_before, tmp_path, confirm=lambda found: bool(told.append(found)) or True)
        assert told[0].known == 5
        assert len(server.requests) - before == told[0].tasks - 5
        assert ask(server, measured_before, tmp_path / "anew").record == whole.record


def test_a_budget_is_kept(measured_before, tmp_path):
    with ModelServer(finding) as server, pytest.raises(BudgetError, match="used up"):
        ask(server, measured_before, tmp_path, limits=CallLimits(concurrency=1, budget_tokens=12_000))
    assert 0 < len(server.requests) < 20


def test_nobody_is_asked_where_an_estimate_is_enough(measured_before, tmp_path):
    with ModelServer(finding) as server:
        outcome = ask(server, measured_before, tmp_path, confirm=lambda found: False)
        assert server.requests == []
    assert outcome is measured_before[1]


def test_silence_counts_as_wrong_and_is_asked_about_again(measured_before, tmp_path):
    def silent(prompt):
        return "" if "door 3?" in prompt else finding(prompt)

    with ModelServer(silent) as server:
        outcome = ask(server, measured_before, tmp_path)
        asked = len(server.requests)
        ask(server, measured_before, tmp_path)
        assert len(server.requests) > asked
    assert outcome.record["answer"]["unanswered"] >= 1
    assert outcome.added["oracle"].values["answer@5"].tolist() == [1, 1, 0, 1, 1, 1, 1]


def test_faults_on_a_schedule_change_nothing(measured_before, tmp_path):
    """The server's answers are JSON that quotes the passage: a known answer stands in it or does not."""
    with FaultyServer(seed=1) as calm:
        expected = ask(calm, measured_before, tmp_path / "calm").record["systems"]["oracle"]["answer@5"]
    with FaultyServer(seed=1, faults=0.3) as server:
        for _ in range(20):
            try:
                found = ask(server, measured_before, tmp_path / "faulty").record["systems"]["oracle"][
                    "answer@5"
                ]
            except EndpointError:
                continue
            break
    assert set(server.happened) > {"answer", "limit"}
    assert found["mean"] <= expected["mean"] == 1.0


def test_data_without_answers_is_refused(measured_before):
    _, outcome = measured_before
    with pytest.raises(ConfigError, match="knows no answers: they can be measured on RGB"):
        plan_of(clustered(), outcome.runs, list(outcome.runs["cosine"][0]), 5)


def test_equal_picks_share_a_task(measured_before):
    dataset, outcome = measured_before
    runs = {"one": outcome.runs["cosine"], "two": outcome.runs["cosine"]}
    plan = plan_of(dataset, runs, dataset.query_ids, 3)
    assert len(plan.tasks) == 7 and len(plan.task_of) == 14
    assert all(len(task.documents) == 3 for task in plan.tasks)
