"""α from labelled queries."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.evaluation.alpha_fit import fit_alpha, measure_of
from dartboard.retrievers import BM25Retriever, DenseRetriever, HybridRetriever
from tests.models import WordBag
from tests.retrievers.corpus import TEXTS, collection_for


class Blind(WordBag):
    """A model whose queries say nothing of their words."""

    def encode_query(self, text, **options):
        return np.random.default_rng(len(text)).standard_normal(32).astype(np.float32)


QUERIES = {f"q-{id}": " ".join(text.split()[-4:]) for id, text in TEXTS.items() if id != "copy"}
RELEVANT = {f"q-{id}": {id: 1.0} for id in TEXTS if id != "copy"}


@pytest.fixture(scope="module")
def collection():
    return collection_for()


def test_a_member_that_knows_nothing_gets_nothing(collection):
    fit = fit_alpha([DenseRetriever(Blind()), BM25Retriever()], collection, QUERIES, RELEVANT)
    assert fit.alpha < 0.5 and fit.score > fit.by_alpha[1.0] + 0.2
    assert fit.interval[0] <= fit.alpha <= fit.interval[1]
    assert fit.score == max(fit.by_alpha.values()) and fit.held_out <= fit.score
    assert fit.default == fit.by_alpha[0.7] and fit.queries == 11 and set(fit.alpha_without) == set(QUERIES)
    assert fit.gain[0] <= fit.held_out - fit.default <= fit.gain[1]


def test_what_is_fitted_is_what_the_hybrid_does(collection):
    """The table of α agrees with running the hybrid itself at each."""
    members = [DenseRetriever(Blind()), BM25Retriever()]
    fit = fit_alpha(members, collection, QUERIES, RELEVANT, metric="ndcg@3", grid=[0.0, 0.4, 1.0])
    assert sorted(fit.by_alpha) == [0.0, 0.4, 0.7, 1.0]
    measure = measure_of("ndcg@3")
    for alpha, mean in fit.by_alpha.items():
        hybrid = HybridRetriever(members, alpha=alpha)
        scores = [
            measure([c.chunk.id for c in hybrid.retrieve(collection, text, 3).found], RELEVANT[name])
            for name, text in QUERIES.items()
        ]
        assert np.mean(scores) == pytest.approx(mean)


def test_equally_good_goes_to_the_default(collection):
    """Both members find every passage by its own words."""
    queries = {name: TEXTS[next(iter(RELEVANT[name]))] for name in QUERIES if name != "q-cache"}
    heard = []
    fit = fit_alpha(
        [DenseRetriever(WordBag()), BM25Retriever()],
        collection,
        queries,
        RELEVANT,
        progress=lambda *at: heard.append(at),
    )
    assert fit.alpha == 0.7 and fit.score == 1.0 and fit.interval == (0.7, 0.7)
    assert heard[-1] == (10, 10)


def test_unjudged_queries_are_left_out_and_functions_measure(collection):
    members = [DenseRetriever(WordBag()), BM25Retriever()]
    fit = fit_alpha(
        members,
        collection,
        QUERIES | {"extra": "anything"},
        RELEVANT,
        metric=lambda ranked, grades: 1.0,
        folds=2,
        resamples=10,
    )
    assert fit.queries == 11 and fit.score == 1.0


def test_measures():
    ranked = ["a", "b", "c", "d"]
    assert measure_of("recall@2")(ranked, {"a": 1, "d": 2, "x": 0}) == 0.5
    expected = (2 + 1 / np.log2(4)) / (2 + 1 / np.log2(3))
    assert measure_of("ndcg@3")(ranked, {"a": 2, "c": 1}) == pytest.approx(expected)


def test_ndcg_is_trec_evals():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    source = np.random.default_rng(0)
    ids = [f"d{at}" for at in range(20)]
    measure = measure_of("ndcg@10")
    for _ in range(20):
        grades = {id: int(source.integers(0, 3)) for id in source.choice(ids, 8, replace=False)}
        grades["d0"] = 1
        ranked = source.permutation(ids).tolist()
        run = {"q": {id: float(-at) for at, id in enumerate(ranked)}}
        (expected,) = pytrec_eval.RelevanceEvaluator({"q": grades}, {"ndcg_cut.10"}).evaluate(run).values()
        assert measure(ranked, grades) == pytest.approx(expected["ndcg_cut_10"])


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"metric": "map@10"}, ConfigError, "ndcg@K, recall@K"),
        ({"metric": "ndcg@0"}, ConfigError, "ndcg@K, recall@K"),
        ({"grid": [0.5, 2.0]}, ConfigError, r"lie in \[0, 1\]"),
        ({"folds": 1}, InvalidInputError, "11 queries"),
        ({"folds": 12}, InvalidInputError, "for 12 folds"),
    ],
)
def test_what_cannot_be_fitted(collection, options, error, message):
    members = [DenseRetriever(WordBag()), BM25Retriever()]
    with pytest.raises(error, match=message):
        fit_alpha(members, collection, QUERIES, RELEVANT, **options)
