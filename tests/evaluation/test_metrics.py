"""Metrics on lists small enough to check by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation import (
    MEASURES,
    Content,
    Judgements,
    Measure,
    Scores,
    alpha_ndcg,
    average_precision,
    cluster_coverage,
    distinct_base_share,
    evaluate,
    f1_diversity,
    hit_rate_at_k,
    intra_list_distance,
    jaccard,
    ndcg_at_k,
    pairwise_diversity,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
    set_recall,
    subtopic_recall,
    success_at_k,
)
from dartboard.evaluation.judged_run import ranked
from dartboard.evaluation.measures import at_depths, available, with_distinct
from dartboard.types import Chunk
from tests.evaluation.data import clustered
from tests.examples import examples

LIST = ["a", "x", "b", "y"]


def test_relevance_by_hand():
    assert precision_at_k(LIST, ["a", "b", "c"], 3) == pytest.approx(2 / 3)
    assert precision_at_k(LIST, ["a"], 10) == pytest.approx(0.1)  # / k, however short the list
    assert recall_at_k(LIST, ["a", "b", "c"], 3) == pytest.approx(2 / 3)
    assert recall_at_k(LIST, [], 3) == 0.0
    assert hit_rate_at_k(LIST, ["b"], 2) == 0.0
    assert hit_rate_at_k(LIST, ["b"], 3) == 1.0
    assert reciprocal_rank(LIST, ["b", "y"]) == pytest.approx(1 / 3)
    assert reciprocal_rank(LIST, ["b"], 2) == 0.0
    assert average_precision(LIST, ["a", "b", "c"]) == pytest.approx((1 + 2 / 3) / 3)


def test_ndcg_has_exponential_gains():
    grades = {"a": 1, "b": 3, "c": 0}
    gained = 1 / math.log2(2) + 7 / math.log2(4)
    ideal = 7 / math.log2(2) + 1 / math.log2(3)
    assert ndcg_at_k(LIST, grades, 3) == pytest.approx(gained / ideal)
    assert ndcg_at_k(["b", "a"], grades, 5) == pytest.approx(1.0)
    assert ndcg_at_k(LIST, {"a": 0}, 3) == 0.0


def test_an_id_retrieved_twice_counts_once():
    assert precision_at_k(["a", "a", "b"], ["a", "b"], 3) == pytest.approx(2 / 3)
    assert ndcg_at_k(["a", "a"], {"a": 1}, 2) == pytest.approx(1.0)
    assert average_precision(["a", "a", "b"], ["a", "b"]) == pytest.approx((1 + 2 / 3) / 2)


def test_kernels_by_hand():
    # The example of the mining design: gold {A, B}, retrieved {A, C, D}.
    assert set_recall(["A", "C", "D"], ["A", "B"], 3) == 0.5
    assert success_at_k(["A", "C", "D"], ["A", "B"], 3) == 0.0
    assert success_at_k(["A", "C", "B"], ["A", "B"], 3) == 1.0
    assert success_at_k(["A", "C", "B"], ["A", "B"], 2) == 0.0
    assert jaccard(["A", "C", "D"], ["A", "B"]) == pytest.approx(1 / 4)
    assert jaccard(["A", "A"], ["A"]) == 1.0
    assert success_at_k(["A"], [], 1) == 0.0


def test_subtopics_by_hand():
    facets = {"one": ["a", "b"], "two": ["y"], "nothing": []}
    assert subtopic_recall(LIST, facets, 3) == 0.5
    assert subtopic_recall(LIST, facets, 4) == 1.0


def test_alpha_ndcg_by_hand():
    facets = {"one": ["a", "b"], "two": ["c"]}
    gained = 1 + 0.5 / math.log2(3) + 1 / math.log2(4)
    ideal = 1 + 1 / math.log2(3) + 0.5 / math.log2(4)
    assert alpha_ndcg(["a", "b", "c"], facets=facets) == pytest.approx(gained / ideal)
    assert alpha_ndcg(["a", "c", "b"], facets=facets) == pytest.approx(1.0)
    assert alpha_ndcg(["a", "b"], facets=facets, alpha=1.0, k=2) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_alpha_ndcg_from_similarities_is_that_of_facets_where_chunks_are_alike_or_not():
    names = ["a", "b", "c", "d"]
    facet_of = {"a": 1, "b": 1, "c": 2, "d": 1}
    alike = np.array([[float(facet_of[x] == facet_of[y]) for y in names] for x in names])
    facets = {1: ["a", "b", "d"], 2: ["c"]}
    for order in (["a", "b", "c"], ["x", "d", "a", "c"], ["c"], ["b", "c", "d", "a"]):
        for alpha in (0.0, 0.3, 0.5, 1.0):
            soft = alpha_ndcg(order, dict.fromkeys(names, 1), alike, alpha=alpha, k=4)
            assert soft == pytest.approx(alpha_ndcg(order, facets=facets, alpha=alpha, k=4), abs=1e-12)


def test_alpha_ndcg_rewards_unlike_chunks():
    similarity = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]])
    grades = {"a": 1, "b": 1, "c": 1}
    assert alpha_ndcg(["a", "c"], grades, similarity, k=2) > alpha_ndcg(["a", "b"], grades, similarity, k=2)
    assert alpha_ndcg(["a", "b"], grades, similarity, alpha=0.0, k=2) == pytest.approx(1.0)
    assert alpha_ndcg(["a"], {"a": 0}, np.eye(1)) == 0.0


def test_alpha_ndcg_says_what_it_needs():
    with pytest.raises(ConfigError, match="needs facets, or"):
        alpha_ndcg(LIST, {"a": 1})
    with pytest.raises(ConfigError, match="not both"):
        alpha_ndcg(LIST, {"a": 1}, facets={"f": ["a"]})
    with pytest.raises(ConfigError, match="alpha must be in"):
        alpha_ndcg(LIST, facets={"f": ["a"]}, alpha=1.5)
    with pytest.raises(InvalidInputError, match="each of the 1 relevance_scores"):
        alpha_ndcg(LIST, {"a": 1}, np.eye(2))


def chunk(name, *vector):
    return Chunk(name, name, np.array(vector, dtype=float))


def test_diversity_by_hand():
    right, up, left = chunk("r", 1, 0), chunk("u", 0, 2), chunk("l", -1, 0)
    assert pairwise_diversity([right, up]) == pytest.approx(1.0)
    assert pairwise_diversity([right, right, up]) == pytest.approx(1 - 1 / 3)
    assert pairwise_diversity([right, left]) == 1.0  # kept in [0, 1]
    assert pairwise_diversity([right]) == 0.0
    assert pairwise_diversity([right, up], similarity_fn=lambda a, b: 0.25) == 0.75
    assert intra_list_distance([right, left]) == pytest.approx(1.0)
    assert intra_list_distance([right, up], "euclidean") == pytest.approx(math.sqrt(5))
    assert intra_list_distance([right]) == 0.0


def test_coverage_distinct_share_and_f1():
    labels = {"r": 0, "u": 1, "z": 2}
    assert cluster_coverage([chunk("r", 1), chunk("u", 1), chunk("?", 1)], labels) == pytest.approx(2 / 3)
    with pytest.raises(InvalidInputError, match="cluster_labels is empty"):
        cluster_coverage([], {})
    assert distinct_base_share(["a", "a1", "b"], {"a1": "a"}) == pytest.approx(2 / 3)
    assert distinct_base_share(["a", "a1", "b"], {"a1": "a"}, 2) == 0.5
    assert distinct_base_share([], {}) == 0.0
    assert f1_diversity(0.5, 1.0) == pytest.approx(2 / 3)
    assert f1_diversity(0.0, 0.0) == 0.0


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_k_is_a_whole_number(k):
    with pytest.raises(ConfigError, match="k must be a whole number"):
        precision_at_k(LIST, ["a"], k)


def test_copies_count_once():
    judgements = Judgements(
        qrels={"q": {"a": 1, "b": 1}},
        facets={"q": {"one": ["a"], "two": ["b"]}},
        kernels={"q": ["a", "b"]},
        base_of={"a1": "a", "a2": "a", "b1": "b"},
    )
    names = [
        *("distinct_precision@3", "distinct_recall@3", "set_recall@3"),
        *("success@3", "subtopic_recall@3", "jaccard@3"),
    ]
    same = evaluate({"q": ["a1", "a2", "a"]}, judgements, [*names, "distinct_share@3"]).means
    assert same["distinct_precision@3"] == pytest.approx(1 / 3)
    assert same["distinct_recall@3"] == same["set_recall@3"] == same["subtopic_recall@3"] == 0.5
    assert same["success@3"] == 0.0
    assert same["jaccard@3"] == pytest.approx(1 / 4)
    assert same["distinct_share@3"] == pytest.approx(1 / 3)
    both = evaluate({"q": ["a2", "b1", "a"]}, judgements, names).means
    assert both["distinct_recall@3"] == both["success@3"] == both["subtopic_recall@3"] == 1.0


@examples(60)
@given(
    st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 2), min_size=1),
    st.dictionaries(st.sampled_from("bdfh"), st.sampled_from("aceg")),
    st.integers(1, 8),
)
def test_plain_names_are_the_plain_formulas_whatever_the_bases(picks, grades, base_of, k):
    judgements = Judgements(qrels={"q": grades}, base_of=base_of)
    relevant = {name for name, grade in grades.items() if grade > 0}
    right = [name in relevant for name in picks[:k]]
    gains = [(2 ** grades.get(name, 0) - 1) / math.log2(i + 2) for i, name in enumerate(picks[:k])]
    best = sorted(grades.values(), reverse=True)[:k]
    ideal = sum((2**grade - 1) / math.log2(i + 2) for i, grade in enumerate(best))
    found = evaluate(
        {"q": picks}, judgements, [f"{m}@{k}" for m in ("precision", "recall", "hit_rate", "mrr", "ndcg")]
    ).means
    assert found[f"precision@{k}"] == pytest.approx(sum(right) / k)
    assert found[f"recall@{k}"] == pytest.approx(sum(right) / len(relevant) if relevant else 0.0)
    assert found[f"hit_rate@{k}"] == float(any(right))
    assert found[f"mrr@{k}"] == pytest.approx(1 / (right.index(True) + 1) if any(right) else 0.0)
    assert found[f"ndcg@{k}"] == pytest.approx(sum(gains) / ideal if ideal else 0.0)


def test_distinct_measures_count_a_base_once_and_plain_ones_each_copy():
    judgements = Judgements(
        qrels={"q": {"a": 1, "a1": 1, "b": 1, "c": 0}}, base_of={"a": "a", "a1": "a", "b": "b", "c": "c"}
    )
    names = ["precision@2", "recall@2", "map@2", "ndcg@2"]
    found = evaluate({"q": ["a", "a1"]}, judgements, [*names, *(f"distinct_{name}" for name in names)]).means
    assert (found["precision@2"], found["distinct_precision@2"]) == (1.0, 0.5)
    assert (found["recall@2"], found["distinct_recall@2"]) == (pytest.approx(2 / 3), 0.5)
    assert (found["map@2"], found["distinct_map@2"]) == (pytest.approx(2 / 3), 0.5)
    assert found["ndcg@2"] == 1.0 > found["distinct_ndcg@2"]
    asked = [Measure("precision", 2), Measure("mrr", 2)]
    assert list(map(str, with_distinct(asked, judgements))) == [
        "precision@2",
        "distinct_precision@2",
        "mrr@2",
    ]
    assert with_distinct(asked, judgements.plain) == asked


def test_alternatives_of_a_kernel_answer_as_well():
    judgements = Judgements(
        qrels={"q": {"a": 1, "b": 1, "c": 1, "d": 1}, "other": {"a": 1}},
        kernels={"q": ["a", "b"]},
        alternatives={"q": [["c"], ["a", "d"]]},
    )
    names = ["set_recall@2", "success@2", "jaccard@2"]

    def measured(*picks):
        return tuple(evaluate({"q": picks}, judgements, names).of("q").values())

    assert measured("a", "b") == (1.0, 1.0, 1.0)
    assert measured("c", "x") == (1.0, 1.0, 0.5)
    assert measured("x", "d") == (0.5, 0.0, pytest.approx(1 / 3))
    assert measured("d", "a") == (1.0, 1.0, 1.0)
    assert measured("x", "y") == (0.0, 0.0, 0.0)
    assert evaluate({"other": ["a"]}, judgements, names).of("other")["success@2"] == 1.0
    with pytest.raises(InvalidInputError, match="alternatives for query 'z'"):
        Judgements(qrels={}, alternatives={"z": [["a"]]})


def test_judged_copies_share_the_best_grade():
    judgements = Judgements(qrels={"q": {"a": 1, "a1": 3, "b": 0}}, base_of={"a1": "a"})
    assert judgements.grades == [{"a": 3.0}]
    assert evaluate({"q": ["a"]}, judgements, ["distinct_ndcg@1"]).means == {"distinct_ndcg@1": 1.0}
    assert evaluate({"q": ["a"]}, judgements, ["ndcg@1"]).means == {"ndcg@1": pytest.approx(1 / 7)}


def test_a_query_that_the_run_lacks_counts_as_zero():
    judgements = Judgements(qrels={"q1": {"a": 1}, "q2": {"a": 1}})
    found = evaluate({"q1": ["a"], "unjudged": ["a"]}, judgements, ["recall@1", "mrr", "map", "ndcg@5"])
    assert found.means == dict.fromkeys(found.values, 0.5)
    assert found.of("q2") == dict.fromkeys(found.values, 0.0)


def test_a_query_without_facets_or_kernel_falls_back_on_its_relevant_chunks():
    judgements = Judgements(
        qrels={"q1": {"a": 1}, "q2": {"a": 1, "b": 1}}, facets={"q1": {"f": ["a"]}}, kernels={"q1": ["a"]}
    )
    found = evaluate({"q2": ["a"]}, judgements, ["subtopic_recall@1", "set_recall@1"]).of("q2")
    assert found == {"subtopic_recall@1": 1.0, "set_recall@1": 0.5}


def test_judgements_refuse_facets_without_qrels():
    with pytest.raises(InvalidInputError, match="facets for query 'q', which has no qrels"):
        Judgements(qrels={}, facets={"q": {"f": ["a"]}})


def test_every_measure_over_a_data_set_is_the_metric_of_each_list():
    dataset = clustered(copies=1)
    judgements, content = Judgements.of(dataset), Content.of(dataset)
    chunks = {c.id: c for c in dataset.chunks}
    rng = np.random.default_rng(1)
    run = {q: [str(c) for c in rng.choice(list(chunks), 7, replace=False)] for q in dataset.query_ids}
    known = available(judgements, content)
    assert [*known, "answer"] == list(MEASURES)  # for which a model has to be asked
    found = evaluate(run, judgements, at_depths(known, [1, 5]), content=content)
    with pytest.raises(ConfigError, match="--answers"):
        evaluate(run, judgements, ["answer@5"])
    labels = {c.id: c.metadata["cluster"] for c in dataset.chunks}
    for q in dataset.query_ids:
        picks = [chunks[name] for name in run[q][:5]]
        values = found.of(q)
        assert values["diversity@5"] == pytest.approx(pairwise_diversity(picks), abs=1e-9)
        assert values["intra_list_distance@5"] == pytest.approx(intra_list_distance(picks), abs=1e-9)
        assert values["cluster_coverage@5"] == pytest.approx(cluster_coverage(picks, labels))
        assert values["distinct_share@5"] == distinct_base_share(run[q], judgements.base_of, 5)
        expected = f1_diversity(values["precision@5"], values["diversity@5"])
        assert values["f1_diversity@5"] == pytest.approx(expected)
        assert values["diversity@1"] == 0.0


def test_measures_say_what_they_need():
    judgements = Judgements(qrels={"q": {"a": 1}})
    assert available(judgements, None) == [name for name, kind in MEASURES.items() if not kind.needs]
    with pytest.raises(ConfigError, match="needs facets"):
        evaluate({}, judgements, ["alpha_ndcg@5"])
    with pytest.raises(ConfigError, match=r"content=Content\.of"):
        evaluate({}, judgements, ["diversity@5"])
    content = Content(vectors=np.eye(2), row_of={"a": 0, "b": 1})
    with pytest.raises(ConfigError, match="needs clusters"):
        evaluate({}, judgements, ["cluster_coverage@5"], content=content)
    with pytest.raises(InvalidInputError, match="the run names chunk 'z'"):
        evaluate({"q": ["a", "z"]}, judgements, ["diversity@5"], content=content)


def test_measures_are_values():
    assert str(Measure.parse("ndcg@10")) == "ndcg@10"
    assert Measure.parse("map").title == "MAP"
    assert Measure.parse("alpha_ndcg@5").title == "α-nDCG@5"
    assert list(map(str, at_depths(["recall", "mrr@7"], [1, 2]))) == ["recall@1", "recall@2", "mrr@7"]
    for wrong, complaint in (("bleu@3", "unknown measure"), ("ndcg@x", "whole number"), ("ndcg@0", ">= 1")):
        with pytest.raises(ConfigError, match=complaint):
            Measure.parse(wrong)


def test_scores_are_averaged_query_by_query():
    one = Scores(query_ids=["a", "b"], values={"m": np.array([0.0, 1.0])})
    two = Scores(query_ids=["a", "b"], values={"m": np.array([1.0, 1.0])})
    assert Scores.mean_of([one, two]).values["m"].tolist() == [0.5, 1.0]
    with pytest.raises(InvalidInputError, match="different queries"):
        Scores.mean_of([one, Scores(query_ids=["a"], values={"m": np.array([1.0])})])
    assert Scores(query_ids=[], values={"m": np.array([])}).means == {"m": 0.0}


def test_ground_truth_stands_in_for_grades():
    dataset = clustered()
    del dataset.metadata["qrels"]
    assert Judgements.of(dataset).grades[0] == dict.fromkeys(dataset.ground_truth["q00"], 1.0)


@given(
    st.lists(st.sampled_from("abcdefgh"), max_size=12),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3)),
    st.integers(1, 12),
)
def test_every_metric_lies_between_0_and_1(retrieved, grades, k):
    relevant = [name for name, grade in grades.items() if grade > 0]
    values = [
        precision_at_k(retrieved, relevant, k),
        recall_at_k(retrieved, relevant, k),
        ndcg_at_k(retrieved, grades, k),
        hit_rate_at_k(retrieved, relevant, k),
        reciprocal_rank(retrieved, relevant, k),
        average_precision(retrieved, relevant, k),
        set_recall(retrieved, relevant, k),
        jaccard(retrieved, relevant),
    ]
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in values)
    assert success_at_k(retrieved, relevant, k) == float(
        bool(relevant) and set(relevant) <= set(retrieved[:k])
    )


def test_a_ranking_by_score_is_that_of_its_list():
    judged = Judgements(qrels={"1": {"a": 1}, "2": {"x": 1}, "3": {"c": 1}})
    run = {"1": {"a": 1.0, "b": 2.0}, "3": {"c": float("nan"), "d": 1.0}}
    lists = {query: ranked(ranking) for query, ranking in run.items()}
    asked = ["mrr", "precision@2", "precision"]
    assert evaluate(run, judged, asked).means == evaluate(lists, judged, asked).means
