"""``dartboard eval --ray``: the report of one process to the byte, whatever dies on the way."""

import json

import pytest

from dartboard.cli import main
from dartboard.cluster import Recipe, recipe_of
from dartboard.embeddings import LateInteraction, default_model
from dartboard.errors import ClusterError, InvalidInputError
from dartboard.evaluation.baselines import (
    Oracle,
    PairScorerSystem,
    Pyversity,
    RandomSystem,
    RecordedRun,
    SelectionSystem,
)
from dartboard.evaluation.distributed import (
    ClusterRunner,
    _plain,
    answer_some,
    system_from_json,
    system_to_json,
)
from dartboard.evaluation.experiment import evaluate_dataset
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import parts_of
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.selection import MMR, Dartboard, Exhaustive, NearDuplicateFilter, TopK
from tests.cluster.filters import of_ray
from tests.evaluation.data import clustered
from tests.models import SharedWords

pytestmark = of_ray

QUICK = ["eval", "--dataset", "synthetic_clustered", "--systems", "quick", "--resamples", "200"]


def report(folder):
    """Every file of a report but those with times in them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timings.json" and path.parent.name != "parts"
    }


def finished(folder):
    """What the journal knows, without times."""
    lines = (folder / "parts" / "synthetic_clustered.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    return {(row["system"], row["query"]): row["lists"] for row in rows}


def test_the_same_report_and_a_journal_to_go_on_from(whole, tmp_path, capsys):
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert main([*QUICK, "--out", str(alone), "--copies", "0,1"]) == 0
    asked = [*QUICK, "--out", str(together), "--copies", "0,1", "--ray", whole.address]
    assert main(asked) == 0
    assert "2 machines of the cluster" in capsys.readouterr().err
    assert report(together) == report(alone) and len(report(alone)) > 10
    assert finished(together) == finished(alone)
    journal = together / "parts" / "synthetic_clustered.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:20])
    assert main([*asked, "--resume"]) == 0
    assert report(together) == report(alone) and finished(together) == finished(alone)


def test_a_worker_is_killed_on_the_way(whole, cluster):
    data = clustered(queries=60, per_cluster=40)
    config = EvaluationConfig(["x"], ["cosine", "mmr-0.5", "random", "dartboard", "oracle"], resamples=200)
    config.copies, config.sigma_sweep = [], False
    killed = []

    def listen(step, done, total):
        if done >= 8 and not killed:
            killed.append(whole.kill_worker("dartboard answer_some"))

    expected = evaluate_dataset(data, config)
    found = evaluate_dataset(data, config, remote=ClusterRunner(cluster, Recipe()), listener=listen)
    assert killed and found.record == expected.record and found.runs == expected.runs


def test_systems_that_read_texts(whole, tmp_path):
    data = tmp_path / "little"
    (data / "qrels").mkdir(parents=True)
    words = ["keys rotate", "backups run", "limits hold", "brokers wait", "offsets move", "queues drain"]
    rows = [
        {"_id": f"p{n}", "title": "", "text": f"{w} at hour {n} of the day"} for n, w in enumerate(words * 3)
    ]
    (data / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"_id": f"q{n}", "text": f"when do {w}?"} for n, w in enumerate(words)]
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    judged = "".join(f"q{n}\tp{n}\t1\nq{n}\tp{n + 6}\t1\n" for n in range(6))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    systems = "cosine,dartboard-hybrid,dartboard-crossencoder,oracle"
    command = ["eval", "--dataset", str(data), "--systems", systems, "--resamples", "200", "--copies", "0"]
    command += ["--triage-k", "10"]
    for ray in ("off", whole.address):
        assert main([*command, "--out", str(tmp_path / ray.replace(":", "_")), "--ray", ray]) == 0
    assert report(tmp_path / "off") == report(tmp_path / whole.address.replace(":", "_"))


def test_what_a_worker_cannot_do_is_an_error_of_ours(whole, cluster):
    shared = ClusterRunner(cluster, Recipe())
    triage = Triage(clustered(), 20)
    assert list(shared.parts(triage, [], depth=3)) == []
    with pytest.raises(ClusterError, match=r"a worker on .* failed: ValueError"):
        list(shared.parts(triage, [("q01", [Pyversity("no such strategy")])], depth=3))
    scorer = LateInteraction(default_model())
    assert not shared.takes(PairScorerSystem("hybrid", scorer))
    with pytest.raises(ClusterError, match="no model was named to read texts with"):
        list(shared.parts(triage, [("q01", [PairScorerSystem("hybrid", scorer)])], depth=3))


def test_what_a_worker_does(whole, cluster):
    data = clustered()
    triage = Triage(data, 20)
    systems = [
        SelectionSystem("cosine", TopK()),
        RandomSystem((0, 1)),
        PairScorerSystem("hybrid", LateInteraction(default_model())),
    ]
    kept = cluster.keep(_plain(data))
    told = [("q01", [system_to_json(system) for system in systems])]
    plain = recipe_of("default").plain()
    for _ in range(2):
        found = answer_some(plain, kept, 20, told, 3)
        expected = parts_of(triage, "q01", systems, 3)
        assert [one[:3] for one in found] == [(p.system, "q01", [list(x) for x in p.lists]) for p in expected]
    with pytest.raises(ClusterError, match="no model was named"):
        answer_some(Recipe().plain(), kept, 20, told, 3)


@pytest.mark.parametrize(
    "system",
    [
        SelectionSystem("cosine", TopK()),
        SelectionSystem("mmr-0.3", MMR(relevance_weight=0.3)),
        SelectionSystem("dedup-0.85", NearDuplicateFilter(threshold=0.85)),
        SelectionSystem("0.07", Dartboard(), 0.07, (1, 2)),
        RandomSystem((3, 4)),
        Pyversity("dpp"),
    ],
    ids=lambda system: system.name,
)
def test_a_system_is_made_again_from_its_description(system):
    assert system_from_json(system_to_json(system), lambda: None) == system


def test_some_systems_stay_where_they_are():
    assert system_to_json(RecordedRun("mine", {})) is None and system_to_json(Oracle(None)) is None
    assert system_to_json(SelectionSystem("all", Exhaustive())) is None
    assert system_to_json(PairScorerSystem("hybrid", SharedWords())) is None
    scorer = LateInteraction(default_model())
    again = system_from_json(system_to_json(PairScorerSystem("hybrid", scorer)), lambda: scorer)
    assert again == PairScorerSystem("hybrid", scorer)
    with pytest.raises(InvalidInputError, match="unknown kind of system 'other'"):
        system_from_json('{"kind": "other", "seeds": []}', lambda: None)
