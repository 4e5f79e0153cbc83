"""Several vectors a passage: exact sums over the parts, parts that are missing, and what parts there are."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, StoreFormatError
from dartboard.retrievers import DenseRetriever, HybridRetriever, MultiVectorRetriever, Part
from dartboard.retrievers.multi_vector import code, comments, metadata_field, prose, whole_text
from dartboard.retrievers.query import Query
from dartboard.stores import Record
from tests.models import WordBag

from .corpus import collection_for, records_of

QUERY = "close the connection"
SOURCES = {
    "close": 'def close(self):\n    """Close the connection."""\n    self._link.shutdown()  # no more bytes',
    "open": "def open(self):\n    return self._connect()",
    "note": "# The connection is kept open",
    "other": "int main() { return 0; } // the end",
}


def retriever(**options):
    parts = {"code": Part(code, 1.0), "comments": (comments, 3.0)}
    return MultiVectorRetriever(WordBag(), parts, **options)


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def by_hand(text):
    record, model = Record("x", text, np.ones(4)), WordBag()
    total = 0.0
    for extract, weight in ((code, 0.25), (comments, 0.75)):
        if part := extract(record):
            total += weight * cosine(model.encode([QUERY])[0], model.encode([part])[0])
    return total


def test_weighted_sum_with_nothing_for_what_is_missing():
    several = retriever(depth=1)
    collection = collection_for(several, texts=SOURCES)
    found = several.retrieve(collection, QUERY, 4).found
    assert found[0].chunk.id == "close"
    for candidate in found:
        assert candidate.score == pytest.approx(by_hand(candidate.chunk.text), abs=1e-5)
    assert found[0].shares["comments"].rank == 1 and found[0].shares["multi-vector"].rank == 1
    everything = retriever().retrieve(collection, QUERY, 4).found
    assert {c.chunk.id for c in everything} == set(SOURCES)
    assert "code" not in next(c for c in everything if c.chunk.id == "note").shares


def test_explains_by_part():
    several = retriever()
    collection = collection_for(several, texts=SOURCES)
    told = several.explain(collection, QUERY, "open")
    assert told["parts"]["comments"] == {"cosine": None, "weight": 0.75}
    assert told["score"] == pytest.approx(by_hand(SOURCES["open"]), abs=1e-5)


@pytest.mark.parametrize("normalise", ["minmax", "zscore"])
def test_normalised_parts(normalise):
    several = retriever(normalise=normalise)
    collection = collection_for(several, texts=SOURCES)
    found = {c.chunk.id: c.score for c in several.retrieve(collection, QUERY, 4).found}
    asked, expected = WordBag().encode([QUERY])[0], 0.0
    for extract, weight in ((code, 0.25), (comments, 0.75)):
        parts = [extract(Record("x", text, np.ones(4))) for text in SOURCES.values()]
        raw = np.array([cosine(asked, WordBag().encode([part])[0]) if part else 0.0 for part in parts])
        low, spread = (raw.min(), np.ptp(raw)) if normalise == "minmax" else (raw.mean(), raw.std())
        expected = expected + weight * (raw - low) / spread
    np.testing.assert_allclose([found[id] for id in SOURCES], expected, atol=1e-5)
    hybrid = HybridRetriever([DenseRetriever(WordBag()), several], depth=2)
    assert len(hybrid.retrieve(collection, QUERY, 4)) >= 2


def test_scores_for_a_hybrid_are_exact():
    several = retriever()
    hybrid = HybridRetriever([several, DenseRetriever(WordBag())], depth=1)
    collection = collection_for(hybrid, texts=SOURCES)
    union, scores = hybrid.member_scores(collection, Query(QUERY), 1)
    for record, score in zip(collection.get(union.ids), scores[0], strict=True):
        assert score == pytest.approx(by_hand(record.text), abs=1e-5)


def test_parts_with_models_of_their_own():
    small = WordBag(8)
    several = MultiVectorRetriever(
        WordBag(), {"all": Part(whole_text), "head": Part(metadata_field("title"), 2.0, small)}
    )
    assert several.fields().vectors["head"].dimension == 8
    assert set(several.settings["parts"]) == {"all", "head"}
    records = records_of({"a": "one text", "b": "another text"})
    records[0].metadata["title"] = "close the connection"
    records[1].metadata["title"] = 7
    collection = collection_for(several, records=records)
    best = several.retrieve(collection, QUERY, 2).found[0]
    expected = (cosine(*WordBag().encode([QUERY, "one text"])) + 2 * 1.0) / 3
    assert best.chunk.id == "a" and best.score == pytest.approx(expected, abs=1e-5)


def test_a_collection_made_otherwise():
    several = retriever()
    with pytest.raises(StoreFormatError, match="needs"):
        several.retrieve(collection_for(texts=SOURCES), QUERY, 2)
    collection = collection_for(several, texts=SOURCES)
    collection.upsert(records_of(SOURCES))
    with pytest.raises(StoreFormatError, match="no part vectors 'multi-vector'"):
        several.explain(collection, QUERY, "open")


@pytest.mark.parametrize(
    "parts, options, message",
    [
        ({}, {}, "one part or more"),
        ({"a": (whole_text, -1.0)}, {}, "weights must be"),
        ({"a": (whole_text, 1.0)}, {"depth": 0}, "depth must be"),
        ({"a": (whole_text, 1.0)}, {"normalise": "max"}, "unknown normalisation"),
    ],
)
def test_settings_that_cannot_be(parts, options, message):
    with pytest.raises(ConfigError, match=message):
        MultiVectorRetriever(WordBag(), parts, **options)


def texts_of(text):
    return Record("x", text, np.ones(2))


def test_comments_and_code():
    record = texts_of(SOURCES["close"])
    assert comments(record) == "Close the connection.\nno more bytes"
    assert code(record) == "def close(self):\n    self._link.shutdown()"
    c = texts_of("#include <stdio.h>\n/* Says\n * hello. */\nint main() { return 0; } // at last\n")
    assert "hello" in comments(c) and "at last" in comments(c) and "include" not in comments(c)
    assert code(c) == "#include <stdio.h>\nint main() { return 0; }"
    assert comments(texts_of("<!-- kept --><p>http://example.org</p>")) == "kept"


def test_prose_and_fenced_code():
    page = texts_of("# How to\n\nCall it:\n\n```python\nrun(1)\n```\n\nThat is all.")
    assert code(page) == "run(1)"
    assert "run(1)" not in prose(page) and "That is all." in prose(page)
