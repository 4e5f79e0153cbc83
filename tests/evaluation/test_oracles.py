"""Our numbers against trec_eval's and ndeval's, to 1e-9, on random runs and on trec_eval's own files."""

import os
from pathlib import Path

import numpy as np
import pyndeval
import pytest
import pytrec_eval

from dartboard.evaluation import Judgements, alpha_ndcg, evaluate
from dartboard.evaluation.judged_run import ranked

REFERENCE = Path(os.environ.get("DARTBOARD_DATA", "../shared/data")) / "trec_eval_reference"
DEPTHS = (1, 3, 5, 10, 100)
PAIRS = {
    **{f"P_{k}": f"precision@{k}" for k in DEPTHS},
    **{f"recall_{k}": f"recall@{k}" for k in DEPTHS},
    **{f"success_{k}": f"hit_rate@{k}" for k in DEPTHS},
    **{f"map_cut_{k}": f"map@{k}" for k in DEPTHS},
    "map": "map",
    "recip_rank": "mrr",
}
LINEAR = {f"ndcg_cut_{k}": f"ndcg_linear@{k}" for k in DEPTHS}
GAINS = {**{f"ndcg_cut_{k}": f"ndcg@{k}" for k in DEPTHS}, "ndcg": "ndcg"}


def reference(qrels_file):
    if not REFERENCE.exists():
        pytest.skip("trec_eval's test files are not here")
    qrels, run = {}, {}
    for line in (REFERENCE / qrels_file).read_text().splitlines():
        query, _, doc, grade = line.split()
        qrels.setdefault(query, {})[doc] = int(grade)
    for line in (REFERENCE / "results.test").read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        run.setdefault(query, {})[doc] = float(score)
    return qrels, run


def random_qrels(rng, queries=40, docs=120, grades=4):
    return {
        f"q{q}": {f"d{d}": int(rng.integers(0, grades)) for d in rng.choice(docs, rng.integers(1, 60), False)}
        for q in range(queries)
    }


def random_run(rng, qrels, docs=120, levels=30):
    """Scores with many ties; some queries unanswered, some lists short."""
    return {
        q: {f"d{d}": float(rng.integers(0, levels)) for d in rng.choice(docs, rng.integers(1, docs), False)}
        for q in qrels
        if rng.random() > 0.1
    }


def theirs(qrels, run, names):
    asked = {"P", "recall", "success", "map_cut", "map", "recip_rank", "ndcg_cut", "ndcg"}
    wanted = {
        f"{kind}.{','.join(map(str, DEPTHS))}"
        if kind in ("P", "recall", "success", "map_cut", "ndcg_cut")
        else kind
        for kind in asked
    }
    found = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    return {name: np.array([found.get(q, {}).get(name, 0.0) for q in qrels]) for name in names}


def assert_equal(qrels, run):
    ours = evaluate(run, Judgements(qrels=qrels), [*PAIRS.values(), *LINEAR.values(), *GAINS.values()])
    oracle = theirs(qrels, run, [*PAIRS, *LINEAR])
    np.testing.assert_allclose(
        [ours.values[measure] for measure in LINEAR.values()], [oracle[name] for name in LINEAR], atol=1e-9
    )
    # trec_eval gains are the grades themselves: give it 2^rel - 1 as grades.
    powers = {q: {d: 2 ** max(g, 0) - 1 for d, g in judged.items()} for q, judged in qrels.items()}
    oracle |= theirs(powers, run, GAINS)
    for name, measure in (PAIRS | GAINS).items():
        np.testing.assert_allclose(ours.values[measure], oracle[name], atol=1e-9, rtol=0, err_msg=measure)
        assert ours.means[measure] == pytest.approx(oracle[name].mean(), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_relevance_measures_are_trec_evals_on_random_runs(seed):
    rng = np.random.default_rng(seed)
    qrels = random_qrels(rng)
    assert_equal(qrels, random_run(rng, qrels))


def test_a_level_of_relevance_is_trec_evals():
    rng = np.random.default_rng(7)
    qrels = random_qrels(rng)
    run = random_run(rng, qrels)
    names = ["P_10", "recall_10", "map", "recip_rank"]
    found = pytrec_eval.RelevanceEvaluator(
        qrels, {"P.10", "recall.10", "map", "recip_rank"}, relevance_level=2
    )
    oracle = found.evaluate(run)
    ours = evaluate(run, Judgements(qrels=qrels, least_grade=2), [PAIRS[name] for name in names])
    for name in names:
        expected = [oracle.get(query, {}).get(name, 0.0) for query in qrels]
        np.testing.assert_allclose(ours.values[PAIRS[name]], expected, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("qrels_file", ["qrels.test", "qrels.rel_level"])
def test_relevance_measures_on_trec_evals_own_files(qrels_file):
    assert_equal(*reference(qrels_file))


def test_trec_evals_own_expected_output():
    qrels, run = reference("qrels.test")
    lines = (line.split() for line in (REFERENCE / "out.test.a").read_text().splitlines())
    expected = {name: value for name, _, value in lines}
    found = evaluate(run, Judgements(qrels=qrels), PAIRS.values()).means
    for name in set(PAIRS) & set(expected):
        assert f"{found[PAIRS[name]]:.4f}" == expected[name], name


def random_facets(rng, queries=30, docs=40, facets=5):
    return {
        str(q): {
            f"f{f}": [f"d{d}" for d in rng.choice(docs, rng.integers(1, 8), False)]
            for f in range(rng.integers(1, facets + 1))
        }
        for q in range(queries)
    }


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_novelty_measures_are_ndevals(seed, alpha):
    rng = np.random.default_rng(seed)
    facets = random_facets(rng)
    run = {
        q: [f"d{d}" for d in rng.permutation(40)[: rng.integers(1, 40)]] for q in facets if rng.random() > 0.1
    }
    rows = [(q, f, d, 1) for q, named in facets.items() for f, docs in named.items() for d in docs]
    scored = [(q, d, float(-place)) for q, docs in run.items() for place, d in enumerate(docs)]
    names = [f"{kind}@{k}" for kind in ("alpha-nDCG", "strec") for k in (1, 3, 5, 10, 20)]
    oracle = pyndeval.RelevanceEvaluator(rows, names, alpha=alpha).evaluate(scored)
    measures = [f"subtopic_recall@{k}" for k in (1, 3, 5, 10, 20)]
    ours = evaluate(run, Judgements(qrels={q: {} for q in facets}, facets=facets), measures)
    for q in facets:
        for k in (1, 3, 5, 10, 20):
            expected = oracle[q] if q in run else dict.fromkeys(names, 0.0)
            assert ours.of(q)[f"subtopic_recall@{k}"] == pytest.approx(expected[f"strec@{k}"], abs=1e-9)
            value = alpha_ndcg(run.get(q, []), alpha=alpha, k=k, facets=facets[q])
            assert value == pytest.approx(expected[f"alpha-nDCG@{k}"], abs=1e-9)


def test_alpha_ndcg_over_all_queries_is_alpha_ndcg_of_each():
    rng = np.random.default_rng(9)
    facets = random_facets(rng)
    run = {q: [f"d{d}" for d in rng.permutation(40)] for q in facets}
    ours = evaluate(run, Judgements(qrels={q: {} for q in facets}, facets=facets), ["alpha_ndcg@10"])
    each = [alpha_ndcg(run[q], facets=facets[q]) for q in facets]
    np.testing.assert_allclose(ours.values["alpha_ndcg@10"], each, atol=1e-12)


def test_equal_scores_are_ranked_by_falling_id():
    assert ranked({"a": 1.0, "c": 2.0, "b": 2.0, "d": 0.0}) == ["c", "b", "a", "d"]
    assert ranked({"a": 1.0, "c": 2.0}) == ["c", "a"]
    assert ranked(["a", "c"]) == ["a", "c"]
