"""What selects from given documents picks what ``select`` picks, in every framework."""

import asyncio
import json
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard import select
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.search_options import SearchOptions
from dartboard.selection import MMR
from tests.examples import examples
from tests.integrations.frameworks import FRAMEWORKS, CountingBag, Doc, Patient, docs, while_free
from tests.models import WordBag
from tests.tea import QUERY, TEXTS

EVERY = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: type(one).__name__)
NOTED = {
    "rank", "score", "similarity", "gain", "coverage", "stands_for", "stands_for_count", "bound", "sigma",
    "sigma_source", "method", "candidates", "relevance", "vector_source", "query_model",
}  # fmt: skip


def cloud(seed, count, dim=6):
    """Vectors around a few centres, with exact copies among them, and a question."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((3, dim))
    vectors = centres[chance.integers(3, size=count)] + 0.3 * chance.standard_normal((count, dim))
    vectors[chance.integers(count, size=count // 4)] = vectors[0]
    return vectors, chance.standard_normal(dim)


class Asked(WordBag):
    """Any query is the one that is asked, and documents have vectors of their own."""

    def __init__(self, vector):
        super().__init__(len(vector))
        self.vector = vector

    def encode(self, texts, batch_size=32):
        assert list(texts) == [QUERY]
        return np.array([self.vector], dtype=np.float32)


def ids(found):
    return [id for id, *_ in found]


def notes(found):
    return [metadata["dartboard"] for _, _, metadata, _ in found]


def words(texts=TEXTS):
    return WordBag().encode(list(texts.values()))


def asked(query=QUERY):
    return WordBag().encode([query])[0]


@EVERY
@examples(40)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 40), k=st.integers(1, 8), also=st.booleans())
def test_picks_are_those_of_select(framework, seed, count, k, also):
    vectors, question = cloud(seed, count)
    texts = [f"number {place}" for place in range(count)]
    given = [Doc(f"d{place}", texts[place], vector=vector) for place, vector in enumerate(vectors)]
    model = Asked(question)
    more = {"method": "mmr"} if also else {}
    expected = select(vectors, question.astype(np.float32), k=k, texts=texts, **more)
    found = framework.rerank(given, model=model, given=True, k=k, **more)
    assert ids(found) == [f"d{at}" for at in expected.indices]
    stands = [[f"d{at}" for at in some] for some in expected.stands_for]
    assert [note["stands_for"] for note in notes(found)] == stands
    assert np.allclose([note["gain"] for note in notes(found)], expected.gains)
    assert {note["vector_source"] for note in notes(found)} == {"given"}


@EVERY
def test_notes_are_whole_plain_json_and_add_up(framework):
    given = docs()
    before = deepcopy(given)
    found = framework.rerank(given, model=WordBag(), k=4)
    expected = select(words(), asked(), k=4, texts=list(TEXTS.values()))
    assert ids(found) == [list(TEXTS)[at] for at in expected.indices]
    for rank, (id, text, metadata, score) in enumerate(found, start=1):
        note = metadata["dartboard"]
        assert set(note) >= NOTED and note["rank"] == rank and text == TEXTS[id]
        assert json.loads(json.dumps(note, allow_nan=False)) == note
        assert score in (None, note["score"]) and note["vector_source"] == "model:WordBag"
        assert note["stands_for_count"] == len(note["stands_for"])
    gains = [note["gain"] for note in notes(found)]
    assert np.allclose(np.cumsum(gains), [note["coverage"] for note in notes(found)])
    assert given == before, "documents of the caller were changed"
    again = [replace(one, metadata=one.metadata | {"dartboard": "old"}, score=0.5) for one in given]
    assert notes(framework.rerank(again, model=WordBag(), k=1))[0]["before"] == "old"
    assert "why" in framework.rerank(given, model=WordBag(), k=1, **_key(framework, "why"))[0][2]


def _key(framework, name):
    return {"meta_key" if type(framework).__name__ == "Haystack" else "metadata_key": name}


@EVERY
def test_options_go_through(framework):
    texts = list(TEXTS.values())
    for options, wanted in (
        ({"k": 3, "method": MMR(0.3)}, {"method": MMR(0.3)}),
        ({"k": 3, "sigma": 0.3}, {"sigma": 0.3}),
        ({"top_k": 2}, {"k": 2}),
        ({"options": SearchOptions(k=2), "sigma": 0.1}, {"k": 2, "sigma": 0.1}),
        ({"k": 3, "offset": 2}, {"offset": 2}),
    ):
        expected = select(words(), asked(), texts=texts, **{"k": 3} | wanted)
        found = framework.rerank(docs(), model=WordBag(), **options)
        assert ids(found) == [list(TEXTS)[at] for at in expected.indices], options
    found = framework.rerank(
        docs(), model=WordBag(), k=9, exclude=["a"], must_include=["j"], where="number >= 3"
    )
    assert ids(found)[0] == "j" and not {"a", "b", "c"} & set(ids(found))
    found = framework.rerank(docs(), model=WordBag(), k=9, max_per_source=2)
    assert len(found) == 2
    assert len(framework.rerank(docs(), model=WordBag(), token_budget=9)) == 2
    assert framework.rerank(docs(), model=WordBag(), min_similarity=0.999) == []
    assert framework.rerank(docs(), model=WordBag(), exclude=list(TEXTS)) == []
    assert framework.rerank(docs(), model=WordBag(), seen=list(TEXTS)) == []
    likely = framework.rerank(docs(), model=WordBag(), k=9, min_similarity=0.4)
    assert 0 < len(likely) < 9 and all(note["similarity"] >= 0.4 for note in notes(likely))
    several = framework.rerank(docs(), model=WordBag(), k=3, also=["how is coffee roasted"])
    assert {note["serves"] for note in notes(several)} == {0, 1}
    assert len(notes(several)[0]["questions"]) == 2


@EVERY
def test_wrong_options_are_refused_when_they_are_set(framework):
    for wrong in ({"k": 0}, {"sigma": -1}, {"kk": 3}, {"method": "best"}, {"model": 3}, {"options": 3}):
        with pytest.raises((ValueError, TypeError)):
            framework.rerank([], **wrong)
    with pytest.raises(InvalidInputError):
        framework.rerank(docs(), " ", model=WordBag())


@EVERY
def test_what_was_seen_is_covered_and_not_picked_again(framework):
    seen = ["a", "gone"]
    expected = select(words(), asked(), k=3, seen=[0], texts=list(TEXTS.values()))
    found = framework.rerank(docs(), model=WordBag(), k=3, seen=seen)
    assert ids(found) == [list(TEXTS)[at] for at in expected.indices]
    assert not {"a", "b", "c"} & set(ids(found)) and notes(found)[0]["covered_before"] > 0.3
    assert ids(framework.rerank(docs(), model=WordBag(), k=3, seen=words()[:1])) == ids(found)


@EVERY
def test_vectors_that_are_there_are_used_and_the_others_embedded_once(framework):
    model = CountingBag()
    given = [
        replace(one, vector=None if one.id in "bf" else vector)
        for one, vector in zip(docs(), words(), strict=True)
    ]
    for _ in range(2):
        found = framework.rerank(given, model=model, given=True, k=10)
        assert ids(found) == ids(framework.rerank(docs(), model=WordBag(), k=10))
        source = {id: metadata["dartboard"]["vector_source"] for id, _, metadata, _ in found}
        assert source["b"] == source["f"] == "model:CountingBag" and source["a"] == "given"
    assert sorted(model.encoded) == sorted([QUERY, TEXTS["b"], TEXTS["f"], QUERY])


@EVERY
def test_documents_without_text_keep_their_place_at_the_end(framework):
    given = [Doc("blank", "  "), *docs(), Doc("empty", "")]
    found = framework.rerank(given, model=WordBag(), k=20)
    assert ids(found)[:-2] == ids(framework.rerank(docs(), model=WordBag(), k=10))
    assert ids(found)[-2:] == ["blank", "empty"] and [one[2]["dartboard"]["rank"] for one in found][-1] == 12
    assert "blank" not in ids(framework.rerank(given, model=WordBag(), k=3))
    assert ids(framework.rerank([Doc("blank", " ")], model=WordBag(), k=3)) == ["blank"]
    assert framework.rerank([], model=WordBag()) == []


@EVERY
@pytest.mark.parametrize("wrong", [[1.0], [float("nan")] * 32, [0.0] * 32], ids=["short", "nan", "zero"])
def test_an_unusable_vector_is_named(framework, wrong):
    given = [replace(one, vector=vector) for one, vector in zip(docs(), words(), strict=True)]
    given[2].vector = wrong
    with pytest.raises(InvalidInputError, match="'c'"):
        framework.rerank(given, model=WordBag(), given=True)


@EVERY
def test_vectors_of_nobody_knows_whom_need_the_query_s(framework):
    given = [replace(one, vector=vector) for one, vector in zip(docs(), words(), strict=True)]
    with pytest.raises(ConfigError, match="model"):
        framework.rerank(given, given=True)
    if type(framework).__name__ == "LangChain":
        return
    found = framework.rerank(given, given=True, query_vector=asked().tolist(), k=3)
    assert ids(found) == ids(framework.rerank(docs(), model=WordBag(), k=3))
    assert notes(found)[0]["query_model"] == "given"


@EVERY
def test_the_order_of_scores_counts_where_it_is_asked_for(framework):
    given = [replace(one, score=float(place)) for place, one in enumerate(docs())]
    plain = framework.rerank(given, model=WordBag(), k=3)
    found = framework.rerank(given, model=WordBag(), k=3, scored=True)
    assert ids(plain) == ids(framework.rerank(docs(), model=WordBag(), k=3)) != ids(found)
    assert ids(framework.rerank(given, model=WordBag(), k=3, scored=True, method="top_k")) == ["j", "i", "h"]
    assert notes(found)[0]["score_before"] == given["abcdefghij".index(ids(found)[0])].score
    for wrong in (None, float("nan")):
        with pytest.raises(InvalidInputError, match="'c'"):
            framework.rerank([*given[:2], replace(given[2], score=wrong)], model=WordBag(), scored=True)


@EVERY
def test_the_event_loop_stays_free(framework):
    patient = Patient()
    assert asyncio.run(while_free(patient, framework.arerank(docs(), patient)))
