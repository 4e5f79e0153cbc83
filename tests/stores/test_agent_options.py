"""Several questions, what was seen, pages, caps and the preferred copy: the same over every store."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.search_options import SearchOptions
from tests.stores.every_store import KINDS, store_of
from tests.tea import QUERY, filled

COFFEE = "how is coffee roasted"
TERMS = (
    "{} The monthly fee of the basic plan is 5 euros for every user, and it is billed at the end of the "
    "month to the card that is on file, without any further notice to the owner of the account."
)


@pytest.fixture(scope="module", params=KINDS)
def engine(request, tmp_path_factory):
    with store_of(request.param, tmp_path_factory.mktemp(request.param)) as store:
        yield filled(store, retriever="hybrid" if request.param == "embedded" else "dense")


def ids(result):
    return [chunk.id for chunk in result.chunks]


def test_each_question_is_served(engine):
    result = engine.search(QUERY, k=4, also=[COFFEE])
    told = result.explanation
    assert {"f"} & set(ids(result)) and {"a", "b", "c"} & set(ids(result))
    assert told.serves[ids(result).index("f")] == 1
    assert [one["text"] for one in told.questions] == [QUERY, COFFEE]
    assert all(0 < one["coverage"] <= 1 for one in told.questions)
    assert sum(one["weight"] for one in told.questions) == pytest.approx(1)
    mixed = sum(one["weight"] * one["coverage"] for one in told.questions)
    assert mixed == pytest.approx(told.coverage[-1], abs=1e-5)
    assert result.metadata["serves"] == told.serves and len(told.shares) == 4


def test_many_questions_share_the_candidates():
    assert SearchOptions(triage_k=1000).candidates_each == 1000
    assert SearchOptions(triage_k=1000, also=["x"] * 15).candidates_each == 125
    assert SearchOptions(also=["x"] * 15).candidates_each == 100


def test_weights_decide_whose_passage_comes_first(engine):
    assert ids(engine.search(QUERY, k=1, also=[COFFEE], weights=[1, 50])) == ["f"]
    assert ids(engine.search(QUERY, k=1, also=[COFFEE], weights=[50, 1]))[0] in "abc"


def test_what_was_seen_is_not_repeated(engine):
    first = engine.search(QUERY, k=3)
    more = engine.search(QUERY, k=10, seen=ids(first))
    assert not set(ids(first)) & set(ids(more)) and len(more)
    assert 0 < more.explanation.covered_before < 1
    assert more.explanation.coverage[0] > more.explanation.covered_before
    assert all(gain > 0 for gain in more.scores)
    assert first.explanation.covered_before is None
    everything = engine.search(QUERY, k=10, seen=list("abcdefghij"))
    assert ids(everything) == [] and everything.explanation.covered_before == pytest.approx(1)
    assert everything.metadata["relevance"]["verdict"] != "nothing_relevant"
    assert not set(ids(first)) & set(ids(engine.search(QUERY, k=10, seen=ids(first), method="mmr")))


def test_after_a_page_was_seen_comes_the_next_page(engine):
    by_gain = {"k": 3, "sigma": 0.1, "relevance_below": 0.0}
    first, second = (engine.search(QUERY, offset=offset, **by_gain) for offset in (0, 3))
    more = engine.search(QUERY, seen=ids(first), **by_gain)
    assert ids(more) == ids(second)
    assert more.explanation.covered_before == pytest.approx(first.explanation.coverage[-1], rel=1e-5)
    assert more.scores == pytest.approx(second.scores, rel=1e-4)


def test_vectors_that_were_seen_count_as_their_passages_do(engine):
    vectors = np.stack([chunk.embedding for chunk in engine.search(QUERY, k=3).chunks])
    found = engine.search(QUERY, k=3, seen=vectors, sigma=0.1)
    assert found.explanation.covered_before > 0 and len(found)
    assert found.explanation.candidates == 10
    nonsense = engine.model.encode_query("zzz qqq")
    unlike = engine.search("zzz qqq", k=3, seen=nonsense[None])
    assert unlike.explanation.relevance == engine.search("zzz qqq", k=3).explanation.relevance
    assert all(id in "abcdefghij" for id in ids(found))
    assert all(id in "abcdefghij" for stands in found.explanation.stands_for for id in stands)


def test_pages_are_disjoint_and_stable(engine):
    whole = ids(engine.search(QUERY, k=10))
    pages = [engine.search(QUERY, k=3, offset=at) for at in (0, 3, 6, 9)]
    assert [id for page in pages for id in ids(page)] == whole
    assert sorted(whole) == list("abcdefghij")
    assert len(engine.search(QUERY, offset=10)) == 0


def test_caps_by_any_field(engine):
    found = engine.search(QUERY, k=10, max_per={"source": 2, "number": 1})
    assert sorted(chunk.metadata["source"] for chunk in found.chunks) == ["False.md"] * 2 + ["True.md"] * 2
    with pytest.raises(InvalidInputError, match="no candidate has 'author'"):
        engine.search(QUERY, max_per={"author": 2})


def test_a_budget_in_the_readers_tokens(engine):
    words = engine.search(QUERY, token_budget=9, tokenizer=str.split)
    assert sum(len(chunk.text.split()) for chunk in words.chunks) <= 9 and len(words) == 2
    letters = engine.search(QUERY, token_budget=20, tokenizer=len)
    assert sum(len(chunk.text) for chunk in letters.chunks) <= 20 and len(letters) == 1


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"also": [" "]}, InvalidInputError, "a question in also is empty"),
        ({"also": "coffee"}, InvalidInputError, "also is a list of questions, got one string"),
        ({"also": [7]}, InvalidInputError, "also is a list of questions"),
        ({"also": ["x"] * 16}, ConfigError, "at most 15 are allowed"),
        ({"weights": [1.0]}, ConfigError, "give also"),
        ({"also": ["x"], "weights": [1.0]}, ConfigError, "one number per question: got 1 for 2"),
        ({"also": ["x"], "weights": [1.0, 0.0]}, ConfigError, "finite numbers > 0"),
        ({"seen": ["nobody"]}, InvalidInputError, "no chunk 'nobody' in the collection: check seen"),
        ({"seen": "a"}, InvalidInputError, r"write \['a'\]"),
        ({"seen": ["a"], "must_include": ["a"]}, ConfigError, "both in must_include and in seen"),
        ({"seen": ["a"] * 1001}, ConfigError, "at most 1000"),
        ({"offset": -1}, ConfigError, "offset must be a whole number >= 0"),
        ({"offset": 3, "token_budget": 90}, ConfigError, "not with token_budget"),
        (
            {"prefer": "edition"},
            InvalidInputError,
            "no candidate has 'edition' in its metadata: check prefer",
        ),
        ({"prefer": ""}, ConfigError, "prefer must be the name of a field"),
        ({"max_per": 3}, ConfigError, "fields with a number each"),
        ({"max_per": {"source": 0}}, ConfigError, "whole number >= 1"),
        ({"token_budget": 9, "tokenizer": 7}, ConfigError, "a name, a file or a function"),
    ],
)
def test_bad_input_is_refused(options, error, says):
    with pytest.raises(error, match=says):
        filled().search(QUERY, **options)


def test_the_newest_copy_is_picked_and_the_others_are_named():
    texts = {"old": TERMS.format(""), "new": TERMS.format("Terms."), "other": "how coffee is roasted"}
    texts["changed"] = TERMS.format("").replace(" 5 ", " 6 ")
    engine = filled(texts=texts, retriever="dense")
    query = "what is the monthly fee of the basic plan"
    newest = engine.search(query, k=4, prefer="number")
    found = dict(zip(ids(newest), newest.explanation.copies, strict=True))
    assert "new" in found and "old" not in list(found)[:3]
    assert {"id": "old", "number": 0} in found["new"]
    assert {"id": "changed", "number": 3, "differs": [["5", "6"]]} in found["new"]
    assert engine.search(query, k=4).explanation.copies is None


@pytest.mark.parametrize("reranker", ["crossencoder", "hybrid"])
def test_pair_scorers_read_every_question(reranker):
    from tests.models import SharedWords

    engine = filled(retriever="dense", pair_scorer=SharedWords())
    result = engine.search(QUERY, k=4, also=[COFFEE], reranker=reranker, seen=["a"])
    assert "a" not in ids(result) and set(result.explanation.serves) == {0, 1}
