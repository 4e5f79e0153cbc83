"""The engine: open, search, calibrate, refuse."""

import numpy as np
import pytest

from dartboard.calibration import Calibration, Estimate
from dartboard.engine import Engine
from dartboard.errors import CollectionError, ConfigError, InvalidInputError, StoreFormatError
from dartboard.retrievers import MultiVectorRetriever, Part, Ranked, Retriever
from dartboard.retrievers.multi_vector import whole_text
from dartboard.search_options import SearchOptions
from dartboard.selection import TopK
from dartboard.stores import Record, open_store
from dartboard.stores.memory import MemoryStore
from tests.models import Favourite, SharedWords, WordBag
from tests.tea import QUERY, TEXTS, filled


def ids(result):
    return [chunk.id for chunk in result.chunks]


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid", "rrf"])
def test_search_explains_itself(retriever):
    engine = filled(retriever=retriever)
    result = engine.search(QUERY, k=3)
    assert len(result.chunks) == 3 and "tea" in result.chunks[0].text
    assert result.metadata["config"]["top_k"] == 3
    assert len(engine.search("tea grows hills coffee is").chunks) == 5
    facts = result.metadata
    assert facts["retriever"] == retriever and facts["method"] == "dartboard"
    assert all(facts["shares"]) and len(facts["retriever_score"]) == 3
    assert facts["coverage"] == sorted(facts["coverage"])
    assert {"select", "total"} <= set(facts["seconds"])


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid", "rrf"])
def test_top_k_is_the_retrievers_order_equal_scores_by_id(retriever):
    """A vector for each of two words: the eight passages tie in pairs and more, and half are copies."""
    engine = Engine(MemoryStore(), model=WordBag(), retriever=retriever)
    collection = engine.create()
    texts = {name: "tea hills" if name in "hbdf" else "hills tea cups" for name in "habcdefg"}
    vectors = engine.model.encode_documents(list(texts.values()))
    records = zip(texts.items(), vectors, strict=True)
    collection.upsert([Record(id, text, vector) for (id, text), vector in records])
    found = engine.candidates("tea on hills", 8).found
    assert ids(engine.search("tea on hills", k=8, method="top_k")) == [each.chunk.id for each in found]
    assert [each.chunk.id for each in found] == [
        each.chunk.id for each in sorted(found, key=lambda each: (-each.score, each.chunk.id))
    ]


@pytest.mark.parametrize("retriever", ["dense", "hybrid", "rrf"])
@pytest.mark.parametrize(
    "options", [{}, {"max_per_source": 2}, {"token_budget": 20}, {"must_include": ["j"]}]
)
def test_a_file_gives_what_memory_gives(tmp_path, retriever, options):
    memory = filled(retriever=retriever)
    (records,) = memory.collection.iterate()
    with Engine.open(str(tmp_path / "x.dartboard"), model=WordBag(), retriever=retriever) as engine:
        engine.create().upsert(records)
        expected, result = memory.search(QUERY, k=3, **options), engine.search(QUERY, k=3, **options)
        assert [(chunk.id, chunk.text, chunk.metadata) for chunk in result.chunks] == [
            (chunk.id, chunk.text, chunk.metadata) for chunk in expected.chunks
        ]
        ranks = [
            [{name: share["rank"] for name, share in shares.items()} for shares in each.metadata["shares"]]
            for each in (result, expected)
        ]
        assert ranks[0] == ranks[1] and all(ranks[0])
        assert result.metadata["stands_for"] == expected.metadata["stands_for"]
        np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)
        for ours, theirs in zip(result.chunks, expected.chunks, strict=True):
            np.testing.assert_array_equal(ours.embedding, theirs.embedding)


def test_a_result_is_of_one_state_whoever_writes(tmp_path):
    """The method of selection writes: what was found before is what is handed over."""
    with Engine.open(str(tmp_path / "x.dartboard"), model=WordBag(), retriever="hybrid") as engine:
        (records,) = filled().collection.iterate()
        engine.create().upsert(records)

        class Writing(TopK):
            def select(self, pool, limits):
                changed = [Record(each.id, f"changed {each.text}", each.embedding) for each in records]
                engine.collection.upsert(changed[:5])
                engine.delete([each.id for each in records[5:]])
                return super().select(pool, limits)

        result = engine.search(QUERY, k=5, method=Writing())
        assert len(result.chunks) == 5
        assert {chunk.id: chunk.text for chunk in result.chunks}.items() <= TEXTS.items()
        after = engine.search(QUERY, k=10)
        assert len(after.chunks) == 5 and all(chunk.text.startswith("changed") for chunk in after.chunks)


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid"])
def test_a_query_vector_that_is_known_is_not_made_again(retriever, monkeypatch):
    engine = filled(retriever=retriever)
    expected, vector = engine.search(QUERY, k=3), engine.model.encode_query(QUERY)
    monkeypatch.setattr(type(engine.model), "encode_query", None)
    found = engine.search(QUERY, k=3, query_vector=vector)
    assert ids(found) == ids(expected) and found.scores == expected.scores
    for wrong, says in ((vector[:-1], "dimensions where"), (vector * np.nan, "NaN")):
        with pytest.raises(InvalidInputError, match=f"query_vector .*{says}"):
            engine.search(QUERY, query_vector=wrong)


def test_a_result_carries_its_options():
    engine = filled()
    options = SearchOptions(k=3, sigma=0.2, max_per_source=1)
    for query in (QUERY, "nothing"):
        found = engine.search(query, options, where="number < 0" if query == "nothing" else None)
        assert found.explanation.options.max_per_source == 1
        assert "options" not in found.metadata
    result = engine.search(QUERY, options)
    assert result.explanation.options is options
    assert ids(engine.search(QUERY, result.explanation.options)) == ids(result)
    assert result.metadata["config"]["sigma"] == 0.2


def test_a_required_chunk_that_nobody_found_has_no_rank():
    engine = filled(retriever="bm25")
    (records,) = engine.collection.iterate()
    missed = next(record.id for record in records if "tea" not in record.text.split())
    result = engine.search("tea", k=3, must_include=[missed])
    place = ids(result).index(missed)
    assert result.metadata["shares"][place] == {} and result.metadata["retriever_score"][place] is None
    nothing = engine.search("nonsense", k=1, must_include=[missed])
    assert nothing.metadata["shares"] == [{}] and nothing.metadata["retriever_score"] == [None]


class Ids(Retriever):
    """A retriever of one's own, which gives more ids than asked for."""

    def rank(self, view, query, k, *, where=None):
        return Ranked.of(view.search_vector(query.vector(self._model), 10 * k, where=where))


class Strange(Retriever):
    """One whose ``retrieve`` returns what it should not."""

    def retrieve(self, collection, query, k, *, where=None):
        return ["a"]


@pytest.mark.parametrize("file", [True, False])
def test_a_retriever_that_gives_ids_alone(tmp_path, file):
    (records,) = filled().collection.iterate()
    model = WordBag()
    store = open_store(str(tmp_path / "x.dartboard")) if file else MemoryStore()
    with Engine(store, model=model, retriever=Ids("ids", model)) as engine:
        engine.create().upsert(records)
        found = engine.candidates(QUERY, 3).found
        assert len(found) == 3 and all(each.chunk.text and each.shares["ids"].rank for each in found)
        result = engine.search(QUERY, k=2, triage_k=4)
        assert result.metadata["candidates"] == 4
        assert all(set(shares) == {"ids"} for shares in result.metadata["shares"])
    with pytest.raises(InvalidInputError, match="Candidates"):
        Engine(filled().store, model=model, retriever=Strange("strange", model)).search(QUERY)


def test_a_collection_that_was_made_anew_with_another_model_is_refused():
    engine = filled()
    engine.search(QUERY)
    engine.store.drop(engine.name)
    other = Engine(engine.store, collection=engine.name, model=WordBag(31))
    other.create()
    with pytest.raises(StoreFormatError, match="was made with"):
        engine.search(QUERY)


def test_other_methods_and_limits():
    engine = filled()
    plain = engine.search(QUERY, k=4, method="top_k")
    assert ids(plain) == [each.chunk.id for each in engine.candidates(QUERY, 4).found]
    assert engine.search(QUERY, token_budget=9).chunks
    capped = engine.search(QUERY, k=5, max_per_source=1)
    assert len({chunk.metadata["source"] for chunk in capped.chunks}) == len(capped.chunks) == 2
    assert "a" not in ids(engine.search(QUERY, k=9, exclude=["a"]))
    assert "j" in ids(engine.search(QUERY, k=2, triage_k=2, must_include=["j"]))
    assert set(ids(engine.search(QUERY, k=9, where="number >= 7"))) <= {"h", "i", "j"}
    assert ids(engine.search(QUERY, k=3, where="number > 99")) == []
    assert ids(engine.search(QUERY, k=3, min_similarity=0.999)) == []
    assert engine.search(QUERY, k=2, sigma=0.3).metadata["sigma"] == 0.3
    scored = filled(pair_scorer=SharedWords()).search(QUERY, k=2, reranker="hybrid")
    assert scored.metadata["variant"] == "hybrid"


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid", "rrf"])
@pytest.mark.parametrize("reranker", ["crossencoder", "hybrid"])
@pytest.mark.parametrize("method", ["dartboard", "top_k"])
def test_a_pair_scorers_order_counts_whatever_the_retriever(retriever, reranker, method):
    """The retriever's last candidate is the one that the pair scorer wants."""
    plain = filled(retriever=retriever)
    last = plain.candidates(QUERY).found[-1].chunk
    engine = Engine(plain.store, model=plain.model, retriever=retriever, pair_scorer=Favourite(last.text))
    result = engine.search(QUERY, k=5, reranker=reranker, method=method)
    assert len(result.chunks) == 5 and ids(result)[0] == last.id


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"top_k": 3}, r"search\(\) takes no 'top_k': did you mean 'k'\?"),
        ({"filter": "number = 1"}, "takes no 'filter': did you mean 'where'"),
        ({"reranker_type": "hybrid"}, "takes no 'reranker_type': did you mean 'reranker'"),
        ({"sigmas": 0.1}, "takes no 'sigmas': did you mean 'sigma'"),
        ({"zzz": 1}, "takes no 'zzz': there are query, k, token_budget"),
    ],
)
def test_an_option_by_another_name_is_told_the_right_one(wrong, says):
    with pytest.raises(TypeError, match=says):
        filled().search(QUERY, **wrong)


def test_bad_questions():
    engine = filled()
    for query in ("", "  "):
        with pytest.raises(InvalidInputError, match="empty"):
            engine.search(query)
    for query in (None, ["sigma"]):
        with pytest.raises(InvalidInputError, match=type(query).__name__):
            engine.search(query)
    vector = engine.model.encode_query(QUERY)
    with pytest.raises(InvalidInputError) as caught:
        engine.search(QUERY, also=["how is coffee roasted"], query_vector=vector)
    assert caught.value.field == "query_vector"
    with pytest.raises(InvalidInputError, match="no chunk 'z'"):
        engine.search(QUERY, must_include=["z"])
    with pytest.raises(ConfigError, match="both in must_include and in exclude"):
        engine.search(QUERY, must_include=["a"], exclude=["a"])
    with pytest.raises(InvalidInputError, match="must_include is a list of chunk ids"):
        engine.search(QUERY, must_include="a")
    with pytest.raises(InvalidInputError, match="a filter is text"):
        engine.search(QUERY, where=5)
    with pytest.raises(InvalidInputError, match="filter: expected"):
        engine.search(QUERY, where="number >")
    with pytest.raises(ConfigError, match="unknown method"):
        engine.search(QUERY, method="best")
    with pytest.raises(ConfigError, match="no token vectors"):
        engine.search(QUERY, reranker="crossencoder")
    with pytest.raises(ConfigError, match="unknown retriever"):
        Engine(MemoryStore(), model=WordBag(), retriever="magic").create()


def test_a_missing_collection_says_what_to_do():
    with pytest.raises(CollectionError, match="dartboard index PATH"):
        Engine(MemoryStore(), model=WordBag()).search(QUERY)


def test_another_model_is_refused():
    store = filled().store
    with pytest.raises(StoreFormatError, match="was made with 'WordBag'"):
        Engine(store, model=WordBag(dim=16)).search(QUERY)


def test_a_retriever_whose_fields_are_missing_is_refused():
    engine = filled(retriever="dense")

    class Tokens(WordBag):
        fingerprint = engine.model.fingerprint

        def token_vectors(self, texts, **_):
            return [np.eye(4, 32, dtype=np.float32) for _ in ([texts] if isinstance(texts, str) else texts)]

    with pytest.raises(StoreFormatError, match="index the documents again"):
        Engine(engine.store, model=Tokens(), retriever="colbert").search(QUERY)


def test_the_collection_remembers_its_retriever():
    store = filled(retriever="rrf").store
    assert Engine(store, model=WordBag()).search(QUERY, k=2).metadata["retriever"] == "rrf"


def test_delete_stats_snapshot(tmp_path):
    engine = filled()
    assert engine.delete(["a"]) == 1 and engine.delete(where="number = 1") == 1
    assert engine.stats().records == 8
    engine.snapshot(tmp_path / "s")
    with Engine(MemoryStore(), model=WordBag()) as other:
        other.store.restore(tmp_path / "s")
        assert other.stats().records == 8 and other.exists


def test_a_calibration_is_kept_with_the_collection():
    engine = filled()
    estimate = Estimate(value=0.2, low=0.1, high=0.3, pairs=9)
    engine.calibrate(
        Calibration(
            kind="sigma",
            reason="it won",
            sigma=estimate,
            model=engine.model.fingerprint,
        )
    )
    again = Engine(engine.store, model=WordBag())
    result = again.search(QUERY, k=2)
    assert (result.metadata["sigma"], result.metadata["sigma_source"]) == (0.2, "calibration")


@pytest.mark.parametrize("own_model", [False, True], ids=["by name", "by a program only"])
def test_a_collection_of_several_vectors_opens_again_by_its_address(tmp_path, own_model):
    path, model = str(tmp_path / "parts.dartboard"), WordBag()
    parts = {"whole": Part(whole_text, 2.0, WordBag() if own_model else None), "source": Part(whole_text)}
    retriever = MultiVectorRetriever(model, parts)
    with Engine.open(path, model=model, retriever=retriever) as engine:
        vectors = model.encode_documents(list(TEXTS.values()))
        records = [Record(id, text, v) for (id, text), v in zip(TEXTS.items(), vectors, strict=True)]
        engine.create().upsert(retriever.index(records))
        before = engine.search(QUERY, k=3)
    with Engine.open(path, model=model) as engine:
        if own_model:
            with pytest.raises(ConfigError, match="'multi-vector', which its name does not make again: pass"):
                engine.search(QUERY, k=3)
            return
        again = engine.search(QUERY, k=3)
        assert ids(again) == ids(before)
        assert again.metadata["retriever_score"] == before.metadata["retriever_score"]
        with pytest.raises(ConfigError, match="can search, but not index"):
            engine.retriever.index(records)


def test_more_than_a_hundred_passages_and_pages_beyond():
    engine = Engine(MemoryStore(), model=WordBag(), retriever="dense")
    texts = [f"tea number {n} from garden {n * 7}" for n in range(230)]
    engine.create()
    vectors = engine.model.encode_documents(texts)
    engine.collection.upsert(
        [Record(f"t{n}", text, vector) for n, (text, vector) in enumerate(zip(texts, vectors, strict=True))]
    )
    found = engine.search("tea from a garden", k=150)
    assert len(found) == 150 and found.explanation.candidates == 230
    assert len(engine.search("tea from a garden", k=5, offset=110)) == 5
    assert len(engine.search("tea from a garden", k=5, offset=230)) == 0
    with pytest.raises(ConfigError) as caught:
        engine.search("tea", k=150, triage_k=120)
    assert caught.value.field == "triage_k"


def test_a_mistyped_path_makes_nothing_before_the_first_write(tmp_path):
    from dartboard.stores import open_store

    with open_store(str(tmp_path / "handbook.dartboard")):
        pass
    wrong = tmp_path / "hanbook.dartboard"
    deep = tmp_path / "new" / "folder" / "index.dartboard"
    for path in (wrong, deep):
        with Engine.open(str(path), model=WordBag()) as engine:
            assert not engine.exists
            with pytest.raises(CollectionError) as caught:
                engine.search(QUERY)
            assert caught.value.field == "store"
        assert not path.exists() and not deep.parent.exists()
        assert ("handbook.dartboard" in str(caught.value)) == (path == wrong)
    with Engine.open(str(wrong), model=WordBag(), retriever="dense") as engine:
        engine.create()
        assert engine.exists and wrong.exists()
