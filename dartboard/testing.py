"""Contract tests that third-party stores can inherit; needs pytest.

::

    from dartboard.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore(tmp_path) as store:  # open, and without collections
                yield store

Results are compared with :class:`~dartboard.stores.memory.MemoryStore`, which is exact; records, filters and
queries come from seeds.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dartboard.errors import CollectionError, ConfigError, InvalidInputError, StoreError, StoreFormatError
from dartboard.stores import (
    Collection,
    Filter,
    Manifest,
    Record,
    SparseVector,
    Store,
    VectorField,
    parse_filter,
)
from dartboard.stores.filters import Among, And, Not, Or
from dartboard.stores.memory import MemoryStore
from dartboard.types import FloatArray, Hit

__all__ = ["StoreContract"]

DIMENSION = 24
MANIFEST = Manifest(
    model="sample-model",
    model_name="sample",
    dimension=DIMENSION,
    vectors={"code": VectorField(dimension=8), "pooled": VectorField(dimension=12, metric="dot")},
    sparse=("splade",),
    settings={"chunking": {"size": 256}},
)
PLAIN = Manifest(model="sample-model", model_name="sample", dimension=DIMENSION)
_TOPICS = """broker queue message consumer offset partition leader replica commit token session refresh cache
index vector query filter schema table column backup restore snapshot cluster node shard metric alert"""
WORDS = tuple(_TOPICS.split())
LANGUAGES = ("en", "de", "fr", "日本")
FILTERS = (
    "",
    "year >= 2015",
    "year < 2005 or lang = 'de'",
    "lang in ['en', '日本'] and not draft = true",
    "tags = 'red' and year > 2003.5",
    "not rating exists",
    "rating >= 2.5 and rating < 4",
    "`odd \"name.with\\signs'` = 'x'",
    "not (lang = 'en' or tags in ['blue', 7])",
    "draft = false and lang > 'e'",
    "year in [2001, 2002.0, '2003']",
    "lang = 'none of them'",
)


def sample_records(count: int, *, seed: int = 0, fields: bool = True) -> list[Record]:
    """Records around a few centres, with metadata of every type; two in three have further fields."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((12, DIMENSION))
    return [_record(number, centres, chance, fields) for number in range(count)]


def own_word(number: int) -> str:
    """A word that occurs in one record only and that no stemmer changes."""
    return "zq" + "".join("bcdfghjklm"[int(digit)] for digit in str(number))


def sample_queries(count: int, *, seed: int = 1) -> FloatArray:
    """Query vectors, ``(count, DIMENSION)`` float32, of any length."""
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def _record(number: int, centres: FloatArray, chance: np.random.Generator, fields: bool) -> Record:
    embedding = centres[number % len(centres)] + 0.5 * chance.standard_normal(DIMENSION)
    metadata = {
        "year": int(2000 + chance.integers(20)),
        "lang": LANGUAGES[int(chance.integers(len(LANGUAGES)))],
        "draft": bool(chance.integers(2)),
        "tags": [["red"], ["red", "blue"], [], [7, True]][int(chance.integers(4))],
        "source": f"folder/file-{number % 7}.md",
        "nested": {"kept": [1, {"as": "it is"}]},
    }
    if number % 3:
        metadata["rating"] = round(float(chance.uniform(1, 5)), 2)
    if number % 5 == 0:
        metadata["odd \"name.with\\signs'"] = "x"
    text = " ".join(chance.choice(WORDS, size=12)) + f" {own_word(number)}"
    further = fields and number % 3 != 0
    terms = np.sort(chance.choice(500, size=6, replace=False))
    return Record(
        f"chunk/{number:05d}",
        text,
        embedding,
        metadata,
        vectors={"code": chance.standard_normal(8), "pooled": 3 * chance.standard_normal(12)}
        if further
        else {},
        sparse={"splade": SparseVector.of(terms, chance.uniform(0.1, 2, 6))} if further else {},
        blobs={"colbert": chance.bytes(40), "other": b"\x00\xff"} if further else {},
    )


SCORE_TOLERANCE = 2e-4
"""Scores may differ by rounding; ids may swap only within it."""

BEYOND = 10
"""How many more hits the reference returns, to know the scores beyond the last."""


def record(id: str, **changes: Any) -> Record:
    """A small record of the sample collection."""
    given = {"text": f"text of {id}", "embedding": np.eye(DIMENSION)[0], "metadata": {}} | changes
    return Record(id, **given)


def same_record(left: Record, right: Record, *, whole: bool = True) -> bool:
    """Equality of everything that a store keeps; without ``whole``, further fields are ignored."""
    equal = (left.id, left.text, left.metadata) == (right.id, right.text, right.metadata)
    equal = equal and np.array_equal(left.embedding, right.embedding)
    if not whole or not equal:
        return equal
    arrays = [
        {**each.vectors}
        | {f"{name} terms": sparse.terms for name, sparse in each.sparse.items()}
        | {f"{name} weights": sparse.weights for name, sparse in each.sparse.items()}
        for each in (left, right)
    ]
    same_names = arrays[0].keys() == arrays[1].keys()
    same_arrays = same_names and all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])
    return same_arrays and dict(left.blobs) == dict(right.blobs)


def same_hits(
    found: list[Hit], expected: list[Hit], tolerance: float = SCORE_TOLERANCE, *, k: int | None = None
) -> bool:
    """Equal scores and ids by rank; ids may swap only if their scores are equal up to rounding.

    With ``k``, ``expected`` may be longer (by :data:`BEYOND` hits), because the last hits found may have
    swapped with those beyond.
    """
    wanted = expected[:k]
    if len(found) != len(wanted) or len({hit.id for hit in found}) < len(found):
        return False
    close = tolerance * max(1.0, max((abs(hit.score) for hit in expected), default=0.0))
    for got, due in zip(found, wanted, strict=True):
        if not abs(got.score - due.score) <= close:
            return False
        if got.id != due.id and not any(
            hit.id == got.id and abs(hit.score - due.score) <= close for hit in expected
        ):
            return False
    return True


class StoreContract:
    """Inherit from this class and define a ``store`` fixture."""

    approximate_records = 3000
    """How many records the test of approximate search loads."""

    lexical_is_bm25 = True
    """Whether ``search_text`` returns dartboard's BM25 scores, or a server's own."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        """An open store without collections."""
        raise NotImplementedError("give a store fixture")

    @pytest.fixture
    def collection(self, store: Store) -> Collection:
        """An empty collection with every kind of field."""
        return store.create("sample", MANIFEST)

    @pytest.fixture
    def filled(self, collection: Collection) -> Collection:
        """A collection of 300 records."""
        collection.upsert(sample_records(300))
        return collection

    @pytest.fixture
    def truth(self) -> Collection:
        """The same records in memory."""
        collection = MemoryStore().create("sample", MANIFEST)
        collection.upsert(sample_records(300))
        return collection

    # Collections

    def test_collections_come_and_go(self, store: Store) -> None:
        assert store.collections() == []
        store.create("b", PLAIN)
        store.create("a name, with signs'\"", MANIFEST)
        assert store.collections() == ["a name, with signs'\"", "b"]
        assert store.open("a name, with signs'\"").manifest == MANIFEST
        with pytest.raises(CollectionError, match="exists already"):
            store.create("b", PLAIN)
        store.drop("b")
        assert store.collections() == ["a name, with signs'\""]
        with pytest.raises(CollectionError, match="no collection 'b'"):
            store.open("b")
        with pytest.raises(CollectionError, match="no collection"):
            store.drop("b")

    @pytest.mark.parametrize("name", ["", "  ", "x" * 201, "line\nbreak"])
    def test_bad_names(self, store: Store, name: str) -> None:
        with pytest.raises(ConfigError, match="name"):
            store.create(name, PLAIN)

    def test_collections_are_apart(self, store: Store) -> None:
        first, second = store.create("first", PLAIN), store.create("second", PLAIN)
        first.upsert([record("a")])
        assert (first.count(), second.count()) == (1, 0)
        store.drop("first")
        assert store.open("second").count() == 0
        assert store.create("first", PLAIN).count() == 0

    def test_settings_are_kept(self, store: Store, collection: Collection) -> None:
        other = store.open("sample")
        collection.configure({"calibration": {"sigma": 0.09}})
        assert collection.manifest.settings == {**MANIFEST.settings, "calibration": {"sigma": 0.09}}
        other.configure({"retriever": "dense", "chunking": None})
        kept = {"calibration": {"sigma": 0.09}, "retriever": "dense"}
        assert other.manifest.settings == kept, "a setting that another has changed is kept"
        assert store.open("sample").manifest.settings == kept
        assert store.open("sample").manifest.vectors == MANIFEST.vectors

    # Records

    def test_records_come_back_as_they_went_in(self, collection: Collection) -> None:
        records = sample_records(50)
        collection.upsert(records[:20])
        collection.upsert(records[20:])
        assert collection.count() == 50
        asked = [records[7].id, "nobody", records[3].id]
        found = collection.get(asked)
        assert [hit.id for hit in found] == [records[7].id, records[3].id]
        assert same_record(found[0], records[7], whole=False)
        with_blobs = collection.get([records[7].id], blobs=["colbert", "nothing"])
        assert dict(with_blobs[0].blobs) == {"colbert": records[7].blobs["colbert"]}
        whole = [found for batch in collection.iterate(batch_size=7) for found in batch]
        assert [found.id for found in whole] == sorted(each.id for each in records)
        by_id = {each.id: each for each in records}
        assert all(same_record(found, by_id[found.id]) for found in whole)

    def test_parts_of_records(self, filled: Collection) -> None:
        records = {each.id: each for each in sample_records(300)}
        asked = [*list(records)[:4], "nobody"]
        ids, vectors = filled.unit_vectors(asked)
        assert ids == asked[:4]
        lengths = np.linalg.norm([records[id].embedding for id in ids], axis=1)
        expected = np.stack([records[id].embedding for id in ids]) / lengths[:, None]
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        held = {id: records[id].blobs["colbert"] for id in ids if "colbert" in records[id].blobs}
        assert filled.read_blobs(asked, "colbert") == held and filled.read_blobs(asked, "nothing") == {}
        where = parse_filter("lang = 'en'")
        found = list(filled.iterate_metadata(where=where))
        by_id = sorted(records.values(), key=lambda each: each.id)
        assert found == [each.metadata for each in by_id if each.metadata["lang"] == "en"]
        with filled.read_snapshot() as view:
            assert view.count() == 300 and len(view.search_text(WORDS[0], 5)) == 5

    def test_records_by_place(self, collection: Collection) -> None:
        sources = ("a'b.md", "c.md")
        collection.upsert(
            [
                record(f"{source}-{at}", metadata={"source": source, "position": at, "odd": at % 2 == 1})
                for source in sources
                for at in range(4)
            ]
        )
        collection.upsert([record("list", metadata={"source": ["c.md"], "position": 1}), record("none")])
        places = [("c.md", 1), ("c.md", 2), ("a'b.md", 3), ("a'b.md", 9)]
        found = {each.id for each in collection.read_places(places)}
        assert found == {"c.md-1", "c.md-2", "a'b.md-3"}
        odd = collection.read_places(places, parse_filter("odd = true"))
        assert {each.id for each in odd} == {"c.md-1", "a'b.md-3"}
        assert collection.read_places([]) == []

    def test_odd_texts_and_ids_survive(self, collection: Collection) -> None:
        odd = [
            record("a'b\"c\\d/é日本 🙂", text="naïve 'quotes' \"and\" \\ back\nlines\ttabs 🙂"),
            record("x" * 500, text="long id"),
            record("%_like", text="; drop table records; --", metadata={"k'\"\\": ["日本", 1.5, None, True]}),
            record(" leading", text=" leading and trailing "),
        ]
        collection.upsert(odd)
        found = collection.get([each.id for each in odd])
        assert [each.id for each in found] == [each.id for each in odd]
        assert all(same_record(*pair) for pair in zip(found, odd, strict=True))

    def test_upsert_replaces_the_whole_record(self, collection: Collection) -> None:
        collection.upsert(sample_records(5))
        old = sample_records(5)[1]
        new = record(old.id, text="quite new wording", metadata={"only": 1})
        collection.upsert([new])
        assert collection.count() == 5
        (found,) = (each for batch in collection.iterate() for each in batch if each.id == old.id)
        assert same_record(found, new)
        assert old.id not in [
            hit.id for hit in collection.search_sparse(old.sparse["splade"], 5, field="splade")
        ]
        assert [hit.id for hit in collection.search_text("quite new wording", 3)] == [old.id]
        assert collection.search_vector(new.embedding, 1)[0].id == old.id

    def test_the_last_of_equal_ids_wins(self, collection: Collection) -> None:
        collection.upsert([])
        collection.upsert([record("a", text="first"), record("b"), record("a", text="last")])
        assert collection.count() == 2 and collection.get(["a"])[0].text == "last"

    def test_upsert_is_all_or_none(self, filled: Collection) -> None:
        wrong = record("wrong", embedding=np.ones(DIMENSION + 1))
        with pytest.raises(InvalidInputError, match="dimensions"):
            filled.upsert([record("right"), wrong])
        with pytest.raises(InvalidInputError, match="vector 'unknown'"):
            filled.upsert([record("right", vectors={"unknown": [1.0]})])
        assert filled.count() == 300 and not filled.get(["right"])

    def test_delete(self, filled: Collection) -> None:
        records = sample_records(300)
        assert filled.delete([records[0].id, records[1].id, "nobody"]) == 2
        assert filled.count() == 298
        where = parse_filter("lang = 'de'")
        doomed = {each.id for each in records[2:] if each.metadata["lang"] == "de"}
        assert filled.delete(where=where) == len(doomed)
        left = {found.id for batch in filled.iterate() for found in batch}
        assert left == {each.id for each in records[2:]} - doomed
        assert records[0].id not in {hit.id for hit in filled.search_vector(records[0].embedding, 300)}
        assert not filled.search_text(own_word(0), 5)
        assert filled.delete([]) == 0
        with pytest.raises(InvalidInputError, match="one of the two"):
            filled.delete()
        with pytest.raises(InvalidInputError, match="one of the two"):
            filled.delete(["a"], where=where)

    @pytest.mark.parametrize("text", FILTERS[1:])
    def test_filters(self, filled: Collection, text: str) -> None:
        where = parse_filter(text)
        expected = sorted(each.id for each in sample_records(300) if where.matches(each.metadata))
        assert filled.count(where) == len(expected)
        assert [found.id for batch in filled.iterate(where=where) for found in batch] == expected

    def test_filters_on_ids(self, filled: Collection, truth: Collection) -> None:
        records = sample_records(300)
        wanted = Among((records[3].id, records[7].id, 'no "such" id', "nor 'this'", records[3].id))
        filters: list[Filter] = [
            wanted,
            Among(()),
            Not(wanted),
            Not(Among(())),
            Or((wanted, parse_filter("lang = 'de'"))),
            And((Not(wanted), parse_filter("year >= 2010"))),
            Among((*(f"{each.id} {'x' * 100}" for each in records * 10), records[5].id)),
        ]
        for where in filters:
            expected = sorted(each.id for each in records if where.matches(each.metadata, each.id))
            assert filled.count(where) == len(expected)
            assert [found.id for batch in filled.iterate(where=where) for found in batch] == expected
            for query in sample_queries(3):
                found = filled.search_vector(query, 400, where=where, exact=True)
                assert same_hits(found, truth.search_vector(query, 400, where=where))
            assert {hit.id for hit in filled.search_text(" ".join(WORDS), 400, where=where)} <= set(expected)

    # Search

    def test_same_answers_as_in_memory(self, filled: Collection, truth: Collection) -> None:
        filters = [parse_filter(text) if text else None for text in FILTERS]
        for number, query in enumerate(sample_queries(200)):
            where = filters[number % len(filters)]
            k = (1, 10, 400)[number % 3]
            found = filled.search_vector(query, k, where=where, exact=True)
            expected = truth.search_vector(query, k + BEYOND, where=where)
            assert same_hits(found, expected, k=k), (number, FILTERS[number % len(filters)])

    def test_further_vectors(self, filled: Collection, truth: Collection) -> None:
        chance = np.random.default_rng(5)
        where = parse_filter("year >= 2010")
        for field, dimension in (("code", 8), ("pooled", 12)):
            for condition in (None, where):
                query = chance.standard_normal(dimension)
                found = filled.search_vector(query, 20, field=field, where=condition, exact=True)
                expected = truth.search_vector(query, 20 + BEYOND, field=field, where=condition)
                assert same_hits(found, expected, k=20)

    def test_sparse_vectors(self, filled: Collection, truth: Collection) -> None:
        chance = np.random.default_rng(6)
        for where in (None, parse_filter("draft = true")):
            terms = np.sort(chance.choice(500, 40, replace=False))
            query = SparseVector.of(terms, chance.uniform(0.1, 2, 40))
            found = filled.search_sparse(query, 15, field="splade", where=where)
            expected = truth.search_sparse(query, 15 + BEYOND, field="splade", where=where)
            assert expected and same_hits(found, expected, k=15)
        nothing = SparseVector.of(np.array([499_999]), np.array([1.0]))
        assert filled.search_sparse(nothing, 5, field="splade") == []

    def test_text(self, filled: Collection, truth: Collection) -> None:
        where = parse_filter("lang = 'en'")
        matching = {each.id for each in sample_records(300) if each.metadata["lang"] == "en"}
        for query in ("broker queue", own_word(17), "snapshot of the clusters"):
            for condition in (None, where):
                found = filled.search_text(query, 300, where=condition)
                expected = truth.search_text(query, 300, where=condition)
                assert {hit.id for hit in found} == {hit.id for hit in expected}
                assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
                assert all(hit.score > 0 for hit in found)
                if condition:
                    assert {hit.id for hit in found} <= matching
                if self.lexical_is_bm25:
                    assert same_hits(found, expected)
        assert filled.search_text(own_word(17), 5)[0].id == "chunk/00017"
        for nothing in ("", "  ", "?!", "zebra", "the"):
            assert filled.search_text(nothing, 5) == []
        for hostile in ("' or 1=1 --", 'a"b(c)d:*&|!', "\\", "NOT AND OR", "queue* AND (", "🙂"):
            filled.search_text(hostile, 5)

    def test_equal_scores_come_by_id(self, collection: Collection) -> None:
        collection.upsert([record(name) for name in ("c", "a", "d", "b")])
        assert [hit.id for hit in collection.search_vector(np.eye(DIMENSION)[0], 4, exact=True)] == list(
            "abcd"
        )
        assert [hit.id for hit in collection.search_vector(np.eye(DIMENSION)[0], 2, exact=True)] == list("ab")

    def test_empty_collections_answer(self, collection: Collection) -> None:
        assert collection.search_vector(sample_queries(1)[0], 5) == []
        assert collection.search_text("broker", 5) == []
        assert collection.search_sparse(SparseVector.of([1], [1.0]), 5, field="splade") == []
        assert list(collection.iterate()) == [] and collection.get(["a"]) == []

    def test_bad_searches(self, filled: Collection) -> None:
        query = sample_queries(1)[0]
        with pytest.raises(ConfigError, match="k"):
            filled.search_vector(query, 0)
        with pytest.raises(ConfigError, match="k"):
            filled.search_text("broker", 0)
        for bad in (query[:-1], np.full(DIMENSION, np.nan), np.zeros(DIMENSION)):
            with pytest.raises(InvalidInputError):
                filled.search_vector(bad, 5)
        with pytest.raises(InvalidInputError, match="unknown"):
            filled.search_vector(query, 5, field="unknown")
        with pytest.raises(InvalidInputError, match="unknown"):
            filled.search_sparse(SparseVector.of([1], [1.0]), 5, field="unknown")

    def test_searches_follow_writes(self, collection: Collection) -> None:
        records = sample_records(60)
        for start in range(0, 60, 20):
            collection.upsert(records[start : start + 20])
            for each in records[: start + 20 : 7]:
                assert collection.search_vector(each.embedding, 1)[0].id == each.id
                assert collection.search_text(own_word(int(each.id[-5:])), 1)[0].id == each.id
        collection.delete([records[0].id])
        assert collection.search_vector(records[0].embedding, 1)[0].id != records[0].id
        collection.prepare()
        assert collection.search_vector(records[1].embedding, 1)[0].id == records[1].id

    def test_recall_of_approximate_search(self, store: Store) -> None:
        records = sample_records(self.approximate_records, fields=False)
        collection, truth = store.create("large", PLAIN), MemoryStore().create("large", PLAIN)
        for start in range(0, len(records), 1000):
            collection.upsert(records[start : start + 1000])
        truth.upsert(records)
        where = parse_filter("lang = 'en'")
        for condition in (None, where):
            found = expected = 0
            for query in sample_queries(20, seed=3):
                wanted = {hit.id for hit in truth.search_vector(query, 100, where=condition)}
                got = {hit.id for hit in collection.search_vector(query, 100, where=condition)}
                assert len(got) == len(wanted)
                found, expected = found + len(got & wanted), expected + len(wanted)
            assert found / expected >= 0.99

    # Whole collections

    def test_snapshot_and_restore(self, store: Store, filled: Collection, tmp_path: Path) -> None:
        path = tmp_path / "sample.snapshot"
        filled.snapshot(path)
        restored = store.restore(path, "again")
        assert restored.manifest == MANIFEST and restored.name == "again"
        stats = restored.stats()
        assert (stats.name, stats.records) == ("again", 300) and stats.bytes > 0
        pairs = zip(filled.iterate(), restored.iterate(), strict=True)
        assert all(same_record(a, b) for left, right in pairs for a, b in zip(left, right, strict=True))
        elsewhere = MemoryStore().restore(path)
        assert elsewhere.name == "sample" and elsewhere.count() == 300
        with pytest.raises(CollectionError, match="exists already"):
            store.restore(path)
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(StoreFormatError):
            store.restore(path, "damaged")
        assert store.collections() == ["again", "sample"]
        with pytest.raises(StoreError, match="no snapshot"):
            store.restore(tmp_path / "nowhere", "damaged")

    def test_many_threads(self, filled: Collection, truth: Collection) -> None:
        queries = sample_queries(24, seed=9)
        wrong: list[object] = []

        def work(mine: int) -> None:
            try:
                for query in queries[mine::4]:
                    expected = truth.search_vector(query, 10 + BEYOND)
                    if not same_hits(filled.search_vector(query, 10, exact=True), expected, k=10):
                        wrong.append(mine)
                    filled.search_text(" ".join(WORDS[mine : mine + 2]), 5)
            except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
