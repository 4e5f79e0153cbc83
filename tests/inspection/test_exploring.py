"""One question from all sides, beside what a search gives."""

import json

import pytest

from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from dartboard.inspection import explore
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from tests.models import SharedWords, WordBag

TEXTS = {
    "a": "tea grows on hills",
    "b": "tea grows on steep hills",
    "b2": "tea grows on steep hills",
    "c": "tea grows on green hills",
    "d": "tea is dried and rolled",
    "e": "coffee grows on hills too",
    "f": "coffee is roasted dark",
    "g": "black tea is oxidised",
    "h": "green tea is steamed",
    "i": "water boils at sea level",
    "j": "cups are made of clay",
}
QUERY = "how does tea grow on hills"


def filled(**options):
    engine = Engine(MemoryStore(), **({"model": WordBag(), "retriever": "hybrid"} | options))
    vectors = engine.model.encode_documents(list(TEXTS.values()))
    records = [
        Record(id, text, vector, {"source": f"{id}.md", "number": number})
        for number, ((id, text), vector) in enumerate(zip(TEXTS.items(), vectors, strict=True))
    ]
    engine.create().upsert(engine.retriever.index(records))
    return engine


@pytest.mark.parametrize("retriever", ["dense", "bm25", "hybrid", "rrf"])
def test_picks_are_those_of_a_search(retriever):
    engine = filled(retriever=retriever)
    found = explore(engine, QUERY, k=4).to_json()
    ids = [each["id"] for each in found["candidates"]]
    for method, facts in found["methods"].items():
        result = engine.search(QUERY, k=4, method=method)
        assert [ids[pick] for pick in facts["picks"]] == [chunk.id for chunk in result.chunks]
        if method != "top_k":  # whose search weighs equal scores by id; here all are measured alike
            assert facts["coverage"] == pytest.approx(result.metadata["coverage"][-1])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("reranker", ["cosine", "hybrid", "crossencoder"])
def test_every_reranker(reranker):
    engine = filled(pair_scorer=SharedWords())
    found = explore(engine, QUERY, k=3, reranker=reranker).to_json()
    ids = [each["id"] for each in found["candidates"]]
    result = engine.search(QUERY, k=3, reranker=reranker)
    assert [ids[step["pick"]] for step in found["steps"]] == [chunk.id for chunk in result.chunks]
    assert found["sigma"]["value"] == pytest.approx(result.metadata["sigma"])
    assert found["sigma"]["source"] == result.metadata["sigma_source"]
    assert found["reranker_type"] == reranker


def test_a_filter_without_a_match_gives_an_empty_board():
    found = explore(filled(), QUERY, where="number > 100").to_json()
    assert found["candidates"] == [] and found["steps"] == [] and found["layout"] is None
    assert found["methods"]["dartboard"]["picks"] == []
    json.dumps(found, allow_nan=False)


def test_an_empty_query_is_refused():
    with pytest.raises(InvalidInputError, match="query is empty"):
        explore(filled(), " ")
