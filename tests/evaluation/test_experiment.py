"""From a data set to results: resumable, repeatable, the same however many workers there are."""

import json

import numpy as np
import pytest

from dartboard.datasets import make_query_focused
from dartboard.errors import ConfigError
from dartboard.evaluation import Judgements, precision_at_k, recall_at_k
from dartboard.evaluation.baselines import RecordedRun
from dartboard.evaluation.experiment import evaluate_dataset, rounded
from dartboard.evaluation.journal import Journal, Part, file_name
from dartboard.evaluation.measures import at_depths, headline, headline_measure
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.report import markdown
from dartboard.evaluation.runner import answer, identity
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.evaluation.summary import headline_measures
from tests.evaluation.data import clustered

SOME = ["cosine", "mmr-0.5", "random", "dartboard", "oracle"]


def config(**more):
    settings = {"datasets": ["x"], "retrievers": SOME, "resamples": 200, "sigma_sweep": False, "copies": []}
    return EvaluationConfig(**(settings | more))


@pytest.fixture(scope="module")
def outcome():
    return evaluate_dataset(clustered(), config(sigma_sweep=True, copies=[0, 2]))


def test_the_record_has_every_system_and_measure(outcome):
    record = outcome.record
    assert list(record["systems"]) == SOME
    assert record["reference"] == "dartboard"
    assert record["headline"] == {"quality": "set_recall@5", "diversity": "diversity@5"}
    assert {"ndcg@1", "ndcg@10", "alpha_ndcg@5", "cluster_coverage@3"} <= set(record["measures"])
    for measures in record["systems"].values():
        for one in measures.values():
            assert one["low"] <= one["mean"] + 1e-6 and one["mean"] <= one["high"] + 1e-6
    oracle = record["systems"]["oracle"]
    assert oracle["set_recall@5"]["mean"] == 1.0
    assert all(s["ndcg@5"]["mean"] <= oracle["ndcg@5"]["mean"] for s in record["systems"].values())
    json.dumps(record, allow_nan=False)


def test_comparisons_are_with_the_reference(outcome):
    found = outcome.record["comparisons"]["set_recall@5"]
    assert set(found) == set(SOME) - {"dartboard"}
    better = found["oracle"]
    means = {name: one["set_recall@5"]["mean"] for name, one in outcome.record["systems"].items()}
    assert better["difference"] == pytest.approx(means["oracle"] - means["dartboard"], abs=1e-5)
    assert better["wins"] + better["ties"] + better["losses"] == 12
    assert better["p_holm"] >= better["p"]


def test_random_is_the_mean_of_its_seeds(outcome):
    assert len(outcome.runs["random"]) == 10
    assert outcome.record["seeds"]["random"] == 10


def test_the_sweep_marks_labels_and_rule(outcome):
    sweep = outcome.record["sweep"]
    assert len(sweep["sigmas"]) == len(sweep["values"]["set_recall@5"])
    calibrated = sweep["calibrated"]
    assert calibrated["value"] in sweep["sigmas"]
    assert calibrated["low"] <= calibrated["value"] <= calibrated["high"]
    assert 0.0 < sweep["auto"]["sigma"] < 1.0
    dartboard = outcome.record["systems"]["dartboard"]["set_recall@5"]["mean"]
    assert sweep["auto"]["values"]["set_recall@5"] == pytest.approx(dartboard, abs=1e-6)


def test_redundancy_repeats_the_comparison(outcome):
    levels = outcome.record["redundancy"]
    assert levels["copies"] == [0, 2]
    assert set(levels["systems"]) == {"cosine", "mmr-0.5", "random", "dartboard"}
    clean = outcome.record["systems"]["cosine"]["set_recall@5"]["mean"]
    assert levels["systems"]["cosine"][0] == pytest.approx(clean, abs=1e-6)


def test_redundancy_is_left_out_with_a_reason():
    record = evaluate_dataset(clustered(copies=1), config(copies=[0, 1])).record
    assert record["redundancy"] == {"skipped": "the data set has near-copies already"}
    assert {"recall@5", "distinct_recall@5", "precision@5", "distinct_precision@5"} <= set(record["measures"])
    assert "distinct_share@5" in record["measures"]


def test_one_level_of_copies_is_compared_with_the_corpus_as_it_is():
    assert evaluate_dataset(clustered(), config(copies=[2])).record["redundancy"]["copies"] == [0, 2]
    assert evaluate_dataset(clustered(), config(copies=[0])).record["redundancy"] is None


def test_a_measure_that_is_asked_for_comes_with_the_one_that_counts_copies_once():
    record = evaluate_dataset(clustered(copies=1), config(metrics=["precision"], k_values=[5])).record
    assert list(record["measures"].values()) == ["Precision@5", "Distinct precision@5"]
    record = evaluate_dataset(clustered(), config(metrics=["precision"], k_values=[5])).record
    assert list(record["measures"]) == ["precision@5"]


def test_precision_is_the_specifications_on_a_set_with_near_duplicates():
    """Of chunks, not of facts: nearest neighbours pick copies, and every one of them is relevant."""
    dataset = make_query_focused()
    outcome = evaluate_dataset(dataset, config(retrievers=["cosine", "dartboard", "oracle"], k_values=[5]))
    for system, (run,) in outcome.runs.items():
        found = outcome.record["systems"][system]
        for measure, formula in (("precision@5", precision_at_k), ("recall@5", recall_at_k)):
            expected = np.mean([formula(run[q], dataset.ground_truth[q], 5) for q in dataset.query_ids])
            assert found[measure]["mean"] == pytest.approx(expected, abs=1e-6)
    found = outcome.record["systems"]
    assert found["cosine"]["distinct_precision@5"]["mean"] < found["cosine"]["precision@5"]["mean"] == 1.0
    assert found["oracle"]["precision@5"]["mean"] == 1.0, "an upper bound of the plain measures, too"
    assert "10.0 relevant per query (4.0 distinct)" in markdown([outcome.record])


def test_workers_change_nothing():
    records = [evaluate_dataset(clustered(), config(workers=workers)).record for workers in (1, 4)]
    assert json.dumps(records[0]) == json.dumps(records[1])


def test_a_reference_that_does_not_take_part_is_refused():
    with pytest.raises(ConfigError, match="reference 'foo' does not take part: choose one of cosine"):
        evaluate_dataset(clustered(), config(retrievers=["cosine"], reference="foo"))


def test_the_default_reference_falls_back_on_the_first_system():
    assert evaluate_dataset(clustered(), config(retrievers=["cosine"])).record["reference"] == "cosine"


def test_measures_that_the_data_cannot_answer_are_refused():
    dataset = clustered()
    dataset.metadata["facets"] = {}
    with pytest.raises(ConfigError, match="cannot answer alpha_ndcg@5"):
        evaluate_dataset(dataset, config(metrics=["alpha_ndcg@5"]))


@pytest.mark.parametrize("name", ["answer", "answer@1"])
def test_answers_are_measured_by_another_command(name):
    with pytest.raises(ConfigError, match="asking a model: dartboard eval --answers MODEL"):
        evaluate_dataset(clustered(), config(metrics=[name]))


def test_a_data_set_without_judgements_is_refused():
    dataset = clustered()
    dataset.metadata |= {"qrels": {}, "facets": {}, "kernels": {}}
    dataset.ground_truth = {}
    with pytest.raises(ConfigError, match="no judged query"):
        evaluate_dataset(dataset, config())


def test_the_headline_is_what_the_data_knows_best():
    names = at_depths(["ndcg", "recall", "alpha_ndcg", "subtopic_recall", "set_recall", "distinct_ndcg"], [5])
    qrels = {"q": {"a": 1, "b": 1}}
    assert headline(names, Judgements(qrels=qrels), 5) == {"quality": "ndcg@5"}
    faceted = Judgements(qrels=qrels, facets={"q": {"f": ["a"], "g": ["b"]}})
    assert headline(names, faceted, 5)["quality"] == "ndcg@5"
    shared = Judgements(qrels=qrels, facets={"q": {"f": ["a", "b"]}})
    assert headline(names, shared, 5)["quality"] == str(headline_measure(shared, 5)) == "subtopic_recall@5"
    assert headline(at_depths(["recall", "alpha_ndcg"], [5]), shared, 5)["quality"] == "recall@5"
    needed = Judgements(qrels=qrels, facets=shared.facets, kernels={"q": ["a"]})
    assert headline(names, needed, 5)["quality"] == "set_recall@5"
    copies = Judgements(qrels=qrels, base_of={"b": "a"})
    assert headline(names, copies, 5)["quality"] == "distinct_ndcg@5"
    assert headline(at_depths(["mrr"], [3]), faceted, 5)["quality"] == "mrr@3"
    many = Judgements(qrels={"q": {f"d{i}": 1 for i in range(30)}}, kernels={"q": ["d1"]})
    assert headline(names, many, 5)["quality"] == "ndcg@5"


class Interrupting:
    """Answers some questions, then is interrupted."""

    name, seeds = "interrupting", (0,)

    def __init__(self, allowed):
        self.allowed = allowed
        self.asked = []

    def rank(self, question, k, seed):
        self.asked.append(question.query_id)
        if len(self.asked) > self.allowed:
            raise KeyboardInterrupt
        return [c.id for c in question.candidates[:k]]


def test_an_interruption_keeps_what_is_finished(tmp_path):
    dataset = clustered()
    triage, path = Triage(dataset), tmp_path / "parts" / "x.jsonl"
    made_for = identity(dataset, depth=5, triage_k=100)
    first = Interrupting(5)
    with pytest.raises(KeyboardInterrupt), Journal(path, made_for, resume=False) as journal:
        answer(triage, dataset.query_ids, [first], depth=5, workers=1, journal=journal)
    with path.open("a") as file:
        file.write('{"system": "interrupting", "query": "q1')  # torn by a crash
    second = Interrupting(100)
    heard = []
    with Journal(path, made_for, resume=True) as journal:
        kept = len(journal.parts)
        runs, seconds = answer(
            triage,
            dataset.query_ids,
            [second],
            depth=5,
            workers=1,
            journal=journal,
            listener=lambda step, done, total: heard.append((done, total)),
        )
    assert kept == 5
    assert len(second.asked) == 12 - kept
    assert heard[0] == (kept, 12) and heard[-1] == (12, 12)
    whole, _ = answer(triage, dataset.query_ids, [Interrupting(100)], depth=5)
    assert runs == whole
    assert len(seconds["interrupting"]) == 12
    with Journal(path, made_for, resume=True) as journal:
        assert len(journal.parts) == 12


def test_more_systems_go_on_from_the_same_parts(tmp_path):
    evaluate_dataset(clustered(), config(retrievers=["cosine"]), journal_dir=tmp_path)
    before = (tmp_path / "clustered.jsonl").read_text()
    both = evaluate_dataset(
        clustered(), config(retrievers=["cosine", "dartboard"]), journal_dir=tmp_path, resume=True
    )
    assert (tmp_path / "clustered.jsonl").read_text().startswith(before)
    again = evaluate_dataset(clustered(), config(retrievers=["cosine", "dartboard"]))
    assert both.record == again.record


def test_parts_made_for_something_else_are_refused(tmp_path):
    with Journal(tmp_path / "x", {"depth": 5}, resume=False) as journal:
        journal.add(Part("s", "q", [["a"]], 0.1))
    with pytest.raises(ConfigError, match=r"other settings \(depth\)"):
        Journal(tmp_path / "x", {"depth": 10}, resume=True)
    with Journal(tmp_path / "x", {"depth": 10}, resume=False) as journal:
        assert not journal.parts
    (tmp_path / "y").write_text("\n")
    with Journal(tmp_path / "y", {"depth": 10}, resume=True) as journal:
        assert not journal.parts


def test_names_stay_inside_their_folder():
    assert file_name("../a b/c") == "_a_b_c"
    assert file_name("hotpot+5@0.97") == "hotpot+5@0.97"
    assert file_name("..") == "_"


def test_another_data_set_has_another_identity():
    one, other = (identity(clustered(seed=seed), depth=5, triage_k=10) for seed in (0, 1))
    assert one != other
    assert one == identity(clustered(seed=0), depth=5, triage_k=10)
    unknown = clustered()
    del unknown.metadata["query_embeddings"]
    assert identity(unknown, depth=5, triage_k=10) != one


def test_a_failing_system_says_so():
    class Broken(RecordedRun):
        def rank(self, question, k, seed):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        answer(Triage(clustered()), ["q00", "q01"], [Broken("b", {})], depth=3)


def test_rounding_reaches_everything():
    assert rounded({"a": [1 / 3, (2 / 3,)], "b": "x", "c": 1}) == {
        "a": [0.333333, [0.666667]],
        "b": "x",
        "c": 1,
    }
    assert rounded(float(np.float64(1 / 3))) == 0.333333


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"datasets": []}, "no data set"),
        ({"retrievers": []}, "no system"),
        ({"retrievers": ["nothing"]}, "unknown system"),
        ({"metrics": ["bleu"]}, "unknown measure"),
        ({"k_values": []}, "k_values"),
        ({"k_values": [0]}, "k_values"),
        ({"triage_k": 5}, "leaves fewer candidates"),
        ({"resamples": 5}, "resamples"),
        ({"copies": [-1]}, "copies"),
    ],
)
def test_settings_are_checked(wrong, complaint):
    with pytest.raises(ConfigError, match=complaint):
        config(**wrong)


def test_settings_as_the_specification_has_them():
    settings = EvaluationConfig(["d"], ["cosine"], ["ndcg"])
    assert settings.k_values == [1, 3, 5, 10]
    assert settings.output_dir == "results/"
    assert settings.headline_k == 5
    assert EvaluationConfig(["d"], ["cosine"], k_values=[2, 20]).headline_k == 2


def test_what_is_asked_for_is_shown_as_asked_and_first():
    asked = ["precision", "ndcg", "diversity"]
    record = evaluate_dataset(clustered(copies=1), config(metrics=asked)).record
    assert record["headline"] == {"quality": "precision@5", "diversity": "diversity@5"}
    assert headline_measures(record) == ["ndcg@5", "diversity@5"]
    assert evaluate_dataset(clustered(), config(metrics=["ndcg@7"], k_values=[3, 9])).record["asked"] == [
        "ndcg@7"
    ]


def test_the_seed_reaches_the_random_system():
    runs = [evaluate_dataset(clustered(), config(seed=seed)).runs["random"] for seed in (0, 0, 1)]
    assert runs[0] == runs[1] and not any(run in runs[0] for run in runs[2])
