"""A result as dictionaries: everything that it knows is there, each thing once."""

import json

import numpy as np

from dartboard.explain.records import PER_PICK, as_record, pick_records
from dartboard.plain_text import counted
from dartboard.types import Chunk, RetrievalResult
from tests.tea import filled


def test_each_pick_has_what_the_result_knows_of_it():
    result = filled().search("How does tea grow?", k=3)
    records = pick_records(result)
    assert [record["rank"] for record in records] == [1, 2, 3]
    known = [name for name in PER_PICK if result.metadata.get(name)]
    assert {"gain", "coverage", "similarity", "stands_for", "shares", "retriever_score"} <= {*known}
    for name in known:
        assert [record[name] for record in records] == result.metadata[name]
    assert records[0].keys() == {"rank", *known}


def test_the_whole_result_is_json():
    result = filled().search("How does tea grow?", k=3)
    found = json.loads(json.dumps(as_record(result)))
    assert list(found)[:2] == ["query", "chunks"] and found["query"] == result.query
    assert [(one["id"], one["text"]) for one in found["chunks"]] == [(c.id, c.text) for c in result.chunks]
    assert list(found["chunks"][0])[:4] == ["rank", "id", "text", "metadata"]
    assert found.keys() - {"query", "chunks"} == result.metadata.keys() - set(PER_PICK)


def test_what_a_result_does_not_know_is_left_out():
    bare = RetrievalResult("?", [Chunk("a", "A text.", np.ones(3), {})], [1.0])
    assert pick_records(bare) == [{"rank": 1}]
    assert as_record(RetrievalResult("?", [], [])) == {"query": "?", "chunks": []}


def test_counts_in_words():
    assert [counted(number, "chunk") for number in (0, 1, 2, 3000)] == [
        "0 chunks",
        "1 chunk",
        "2 chunks",
        "3,000 chunks",
    ]
