"""BM25 is the formula, term by term, and what independent implementations say."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.lexical import Analyzer, BM25Index
from tests.examples import examples

PLAIN = Analyzer(stem=False, stop_words=False)
TEXTS = [
    "the cat sat on the mat",
    "dogs and cats and dogs",
    "",
    "get_user_id returns the id of a user",
    "the of and",
    "a mat for every dog: mat, mat, mat",
]
WORDS = st.sampled_from(["ant", "bee", "cow", "dog", "elk", "fox"])
CORPORA = st.lists(st.lists(WORDS, max_size=9), max_size=14)


def naive_summand(term, row, corpus, k1, b):
    """The formula as it is written, with nothing clever."""
    n = sum(term in document for document in corpus)
    idf = math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5))
    average = sum(map(len, corpus)) / len(corpus)
    f = corpus[row].count(term)
    return idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(corpus[row]) / average)) if f else 0.0


@examples(150)
@given(CORPORA, st.lists(WORDS, max_size=7), st.sampled_from([0.0, 0.5, 1.2, 3.0]), st.floats(0, 1))
def test_formula_term_by_term(corpus, query, k1, b):
    index = BM25Index.build([" ".join(words) for words in corpus], k1=k1, b=b, analyzer=PLAIN)
    scores = index.scores(" ".join(query))
    for row in range(len(corpus)):
        explained = index.explain(" ".join(query), row)
        for part in explained:
            wanted = naive_summand(part["term"], row, corpus, k1, b) * query.count(part["term"])
            assert part["score"] == pytest.approx(wanted, rel=1e-5)
            assert part["tf"] == corpus[row].count(part["term"])
            assert part["df"] == sum(part["term"] in document for document in corpus)
            assert part["length"] == len(corpus[row])
        total = sum(naive_summand(term, row, corpus, k1, b) for term in query)
        assert scores[row] == pytest.approx(total, rel=1e-5)
        assert scores[row] == pytest.approx(sum(part["score"] for part in explained), rel=1e-5)


def test_explain_says_all_that_goes_into_a_summand():
    index = BM25Index.build(TEXTS)
    mat, absent = index.explain("mats zebra", 5)
    assert mat | {"score": 0} == {
        "term": "mat",
        "tf": 4,
        "df": 2,
        "idf": pytest.approx(math.log(1 + (6 - 2 + 0.5) / (2 + 0.5))),
        "length": 6,
        "score": 0,
    }
    assert (absent["df"], absent["tf"], absent["score"]) == (0, 0, 0.0)
    with pytest.raises(InvalidInputError, match="row must be in 0"):
        index.explain("mat", 6)


def corpus_of(n, seed):
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 401) ** 1.1
    terms = rng.choice(400, size=(n, 30), p=weights / weights.sum())
    return [[f"w{term}" for term in row[: rng.integers(1, 31)]] for row in terms]


@pytest.mark.parametrize("k1, b", [(1.2, 0.75), (0.9, 0.4)])
def test_same_scores_as_bm25s(k1, b):
    # bm25s calls our idf "lucene", whose numerator lacks (k1 + 1), a constant factor.
    corpus = corpus_of(500, seed=1)
    other = bm25s.BM25(method="lucene", k1=k1, b=b)
    other.index(corpus, show_progress=False)
    index = BM25Index.build(map(" ".join, corpus), k1=k1, b=b, analyzer=PLAIN)
    for query in corpus_of(40, seed=2):
        known = [term for term in query if term in other.vocab_dict]
        np.testing.assert_allclose(
            index.scores(" ".join(known)), (k1 + 1) * other.get_scores(known), rtol=2e-5, atol=1e-6
        )


@examples(150)
@given(CORPORA, st.lists(WORDS, max_size=6), st.integers(1, 8), st.randoms(use_true_random=False))
def test_top_is_the_head_of_the_sorted_scores(corpus, query, k, random):
    index = BM25Index.build([" ".join(words) for words in corpus], analyzer=PLAIN)
    mask = random.choice([None, np.array([random.random() < 0.6 for _ in corpus], dtype=bool)])
    scores = index.scores(" ".join(query), mask)
    order = [row for row in np.lexsort((np.arange(len(corpus)), -scores)) if scores[row] > 0][:k]
    rows, found = index.top(" ".join(query), k, mask)
    assert rows.tolist() == order
    assert found.tolist() == scores[order].tolist()
    if mask is not None:
        assert mask[rows].all()
        assert not scores[~mask].any()


@pytest.mark.parametrize("k", [1, 10, 100])
def test_shortcut_changes_nothing(k):
    corpus = corpus_of(6000, seed=4)
    index = BM25Index.build(map(" ".join, corpus), analyzer=PLAIN)
    rng = np.random.default_rng(5)
    for at, words in enumerate(corpus_of(60, seed=6)):
        query = " ".join(words[: rng.integers(1, 8)])
        mask = rng.random(6000) < 0.3 if at % 3 == 0 else None
        scores = index.scores(query, mask)
        order = np.lexsort((np.arange(6000), -scores))[:k]
        rows, found = index.top(query, k, mask)
        assert rows.tolist() == order[scores[order] > 0].tolist()
        assert found.tolist() == scores[rows].tolist()


@examples(100)
@given(st.lists(st.tuples(CORPORA, st.sets(st.integers(0, 30))), max_size=9), st.lists(WORDS, max_size=5))
def test_an_index_that_grows_and_shrinks_scores_like_a_new_one(writes, query):
    """Tables are added, joined and folded; rows die. The scores are those of the passages that are left."""
    index, texts, alive = BM25Index.build([], analyzer=PLAIN), [], []
    asked = " ".join(query)
    for corpus, dead in writes:
        added = [" ".join(words) for words in corpus]
        texts, alive = texts + added, alive + [True] * len(added)
        alive = [here and row not in dead for row, here in enumerate(alive)]
        index = index.followed_by(added, None if all(alive) else np.array(alive, dtype=bool))
        fresh = BM25Index.build([t for t, here in zip(texts, alive, strict=True) if here], analyzer=PLAIN)
        places = np.flatnonzero(alive)
        np.testing.assert_allclose(index.scores(asked)[places], fresh.scores(asked), rtol=1e-6)
        rows, found = fresh.top(asked, 3)
        assert index.top(asked, 3)[0].tolist() == places[rows].tolist()
        assert index.top(asked, 3)[1].tolist() == found.tolist()
        for row, place in enumerate(places):
            assert index.explain(asked, int(place)) == fresh.explain(asked, row)
        if len(texts) % 3 == 0:
            index, texts = index.folded(), [t for t, here in zip(texts, alive, strict=True) if here]
            alive = [True] * len(texts)
            assert len(index) == len(texts)


def test_finds_what_was_asked():
    index = BM25Index.build(TEXTS)
    assert index.top("cat", 5)[0].tolist() == [0, 1]
    assert index.top("get_user_id()", 5)[0].tolist() == [3]
    assert index.top("User", 5)[0].tolist() == [3]
    assert index.top("dogs", 1)[0].tolist() == [1]


@pytest.mark.parametrize("query", ["", "   ", "zebra", "the of", "?!"])
def test_nothing_to_find(query):
    for index in (BM25Index.build(TEXTS), BM25Index.build([]), BM25Index.build(["", "the"])):
        rows, scores = index.top(query, 3)
        assert rows.size == scores.size == 0
        assert index.scores(query).tolist() == [0.0] * len(index)


def test_equal_scores_by_lower_row():
    index = BM25Index.build(["bee fox"] * 50 + ["fox bee"] * 50)
    rows, scores = index.top("fox", 60)
    assert rows.tolist() == list(range(60))
    assert len(set(scores.tolist())) == 1


def test_progress_and_any_iterable():
    heard = []
    texts = ["word"] * 2500
    BM25Index.build(texts, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(1000, 2500), (2000, 2500), (2500, 2500)]
    heard.clear()
    BM25Index.build(iter(texts), progress=lambda done, total: heard.append((done, total)))
    assert heard[-1] == (2500, None)


def test_many_blocks_count_as_one(monkeypatch):
    corpus = corpus_of(200, seed=7)
    whole = BM25Index.build(map(" ".join, corpus))
    monkeypatch.setattr("dartboard.lexical.term_counts._WORDS_A_BLOCK", 100)
    blocks = BM25Index.build(map(" ".join, corpus))
    assert blocks.scores("w1 w2 w50").tolist() == whole.scores("w1 w2 w50").tolist()
    assert blocks.explain("w1", 3) == whole.explain("w1", 3)


@pytest.mark.parametrize(
    "knobs", [{"k1": -0.1}, {"k1": math.nan}, {"k1": math.inf}, {"b": -0.1}, {"b": 1.1}, {"b": math.nan}]
)
def test_parameters_out_of_range(knobs):
    with pytest.raises(ConfigError, match="must be"):
        BM25Index.build(TEXTS, **knobs)


def test_bad_calls():
    with pytest.raises(InvalidInputError, match="text 1 is NoneType"):
        BM25Index.build(["a", None])


def test_long_counts_are_kept():
    index = BM25Index.build(["word " * 70_000, "word"])
    assert index.explain("word", 0)[0]["tf"] == 70_000
    assert Counter(part["tf"] for part in index.explain("word", 1)) == {1: 1}
