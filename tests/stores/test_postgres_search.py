"""Searches: what is exact, what an index answers, ties, languages, limits, and many writers."""

import threading

import numpy as np
import psycopg
import pytest

from dartboard.errors import InvalidInputError, StoreUnavailableError
from dartboard.stores import parse_filter
from dartboard.stores.manifest import Manifest, VectorField
from dartboard.stores.memory import MemoryStore
from dartboard.stores.postgres import PostgresStore, rows
from dartboard.stores.records import Record, SparseVector
from dartboard.testing import BEYOND, same_hits, sample_queries, sample_records
from tests.stores.postgres_server import fresh

DIMENSION = 24
SMALL = {"hnsw": {"above": 500}}


@pytest.fixture
def store():
    with PostgresStore(fresh()) as store:
        yield store


@pytest.fixture(scope="module")
def indexed():
    """A store with a collection of 1500 records that has an index for each of its vectors."""
    with PostgresStore(fresh()) as store:
        manifest = Manifest(
            model="m",
            dimension=DIMENSION,
            vectors={"code": VectorField(dimension=8), "pooled": VectorField(dimension=12, metric="dot")},
            sparse=("splade",),
            settings=SMALL,
        )
        collection = store.create("c", manifest)
        collection.upsert(sample_records(1500))
        collection.build_index()
        yield store


def same_ids(left, right):
    return [hit.id for hit in left] == [hit.id for hit in right]


# Exact and approximate


def scans(store):
    """How often PostgreSQL has used the index of the embeddings."""
    with store._connections.reading() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    with store._connections.reading() as connection:
        query = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelid = 'c1_embedding_hnsw'::regclass"
        return connection.execute(query).fetchone()[0]


def test_exact_search_leaves_the_index_out(indexed):
    collection = indexed.open("c")
    query = sample_queries(1)[0]
    before = scans(indexed)
    collection.search_vector(query, 10, exact=True)
    collection.search_vector(query, 10, exact=True, where=parse_filter("year > 2003"))
    assert scans(indexed) == before
    with store_setting(indexed, "enable_seqscan"):
        collection.search_vector(query, 10)
    assert scans(indexed) > before


def test_the_index_finds_what_exact_search_finds(indexed):
    collection = indexed.open("c")
    found = expected = 0
    for where in (None, parse_filter("lang = 'en'"), parse_filter("year > 2017 and draft = true")):
        for query in sample_queries(15, seed=4):
            got = collection.search_vector(query, 100, where=where)
            wanted = collection.search_vector(query, 100, where=where, exact=True)
            assert len(got) == len(wanted)
            assert got == sorted(got, key=lambda hit: (-hit.score, hit.id))
            found += len({hit.id for hit in got} & {hit.id for hit in wanted})
            expected += len(wanted)
    assert found / expected >= 0.99
    details = collection.stats().details
    assert details["index"] == "hnsw" and details["indexes"] == ["embedding", "code", "pooled"]


def test_rare_matches_are_all_found(indexed):
    """The search is pushed to the index, which gives up before it meets them; yet they are found."""
    collection = indexed.open("c")
    where = parse_filter("source = 'folder/file-3.md' and rating > 4.9 or year in [2003.5]")
    matching = collection.count(where)
    assert 0 < matching < 20
    for pushed in ("enable_seqscan", "enable_bitmapscan"):
        with store_setting(indexed, pushed):
            hits = collection.search_vector(sample_queries(1)[0], 50, where=where)
        assert len(hits) == matching
        assert same_ids(hits, collection.search_vector(sample_queries(1)[0], 50, where=where, exact=True))


class store_setting:
    """A setting that is off in every transaction that reads."""

    def __init__(self, store, name):
        self.connections, self.name = store._connections, name

    def __enter__(self):
        before = self.connections._prepare

        def prepare(connection):
            before(connection)
            connection.execute(f"SET {self.name} = off")
            connection.execute("SET hnsw.max_scan_tuples = 1")

        self.connections._prepare = prepare
        self.renew_pool()

    def __exit__(self, *_):
        del self.connections._prepare
        self.renew_pool()

    def renew_pool(self):
        self.connections._pool.drain()


def test_more_hits_than_the_index_can_give(indexed):
    collection = indexed.open("c")
    hits = collection.search_vector(sample_queries(1)[0], 1400)
    assert same_ids(hits, collection.search_vector(sample_queries(1)[0], 1400, exact=True))


def test_copies_at_the_end_of_the_list_come_by_id(store):
    """Forty copies of one passage, of which the index meets any sixteen and more."""
    collection = store.create("c", Manifest(model="m", dimension=DIMENSION, settings=SMALL))
    others = sample_records(600, fields=False)
    copies = [Record(f"copy/{at:02d}", "the same", np.eye(DIMENSION)[0]) for at in range(40)]
    collection.upsert([*others, *copies[::-1]])
    collection.build_index()
    hits = collection.search_vector(np.eye(DIMENSION)[0], 5)
    assert [hit.id for hit in hits] == [f"copy/0{at}" for at in range(5)]


def test_a_search_builds_no_index_and_an_index_follows_writes(store):
    collection = store.create("c", Manifest(model="m", dimension=DIMENSION, settings=SMALL))
    records = sample_records(900, fields=False)
    collection.upsert(records[:700])
    assert collection.search_vector(records[650].embedding, 1)[0].id == records[650].id
    assert collection.stats().details["index"] == "exact"
    collection.prepare()
    assert collection.stats().details["index"] == "hnsw"
    collection.upsert(records[700:])
    collection.delete([records[0].id])
    for each in records[1::90]:
        assert collection.search_vector(each.embedding, 1)[0].id == each.id
    assert collection.search_vector(records[0].embedding, 1)[0].id != records[0].id


def test_prepare_builds_what_pays():
    url = fresh()
    with PostgresStore(url) as store:
        small = store.create("small", Manifest(model="m", dimension=DIMENSION))
        large = store.create("large", Manifest(model="m", dimension=DIMENSION, settings=SMALL))
        for collection in (small, large):
            collection.upsert(sample_records(600, fields=False))
            collection.prepare()
        assert small.stats().details["index"] == "exact"
        assert large.stats().details["index"] == "hnsw"
        with store._connections.reading() as connection:
            (known,) = connection.execute(
                "SELECT reltuples FROM pg_class WHERE oid = 'c2_records'::regclass"
            ).fetchone()
        assert known == 600
    with PostgresStore(url, read_only=True) as store:
        store.open("small").prepare()


def test_other_options_build_anew(store):
    collection = store.create("c", Manifest(model="m", dimension=DIMENSION))
    collection.upsert(sample_records(300, fields=False))
    collection.build_index()
    collection.configure({"hnsw": {"m": 8, "ef_construction": 40}})
    collection.build_index()
    with store._connections.reading() as connection:
        (definition,) = connection.execute("SELECT pg_get_indexdef('c1_embedding_hnsw'::regclass)").fetchone()
    assert "m='8'" in definition and "ef_construction='40'" in definition


def test_long_vectors_are_indexed_at_half_precision(store):
    chance = np.random.default_rng(0)
    matrix = (chance.standard_normal((300, 16)) @ chance.standard_normal((16, 2100))) * 1e6
    collection = store.create("c", Manifest(model="m", dimension=2100, settings={"hnsw": {"above": 100}}))
    collection.upsert([Record(f"{at:03d}", "text", row) for at, row in enumerate(matrix)])
    assert collection.search_vector(matrix[7], 1)[0].id == "007"
    collection.prepare()
    assert collection.stats().details["index"] == "hnsw"
    for query in matrix[::60]:
        hits = collection.search_vector(query, 5)
        exact = collection.search_vector(query, 5, exact=True)
        assert same_ids(hits, exact) and hits[0].score == pytest.approx(1, abs=1e-5)


# Words


def test_any_word_will_do(store):
    collection = store.create("c", Manifest(model="m", dimension=2))
    texts = {
        "a": "The broker's offsets are committed",
        "b": "user_id isn't in HTTPServer; see https://example.com/?a=1&b=2",
        "c": "back\\slash and 'quotes' | & ! <-> :*",
        "d": "offset offset offset broker",
    }
    collection.upsert([Record(id, text, np.ones(2)) for id, text in texts.items()])

    def found(query):
        return {hit.id for hit in collection.search_text(query, 10)}

    assert found("offset of brokers") == {"a", "d"}
    assert found("commit zebra") == {"a"}
    assert found("example.com/?a=1&b=2") == {"b"}
    assert found("'quotes' back\\slash") == {"c"}
    assert found("well-known user-id user_id") == {"b"}
    for nothing in ("", "?!", "the of", "'", "\\", ":*", "\x00", "zebra"):
        assert found(nothing) == set()
    assert collection.search_text("offset", 1)[0].id == "d"


def test_scores_are_those_of_bm25(store):
    """Where each text holds each of its words once, PostgreSQL's lengths are BM25's."""
    chance = np.random.default_rng(0)
    words = [f"{first}{second}o" for first in "bdfgklmn" for second in "aeiu"]
    records = [
        Record(f"{at:03d}", " ".join(chance.permutation(words)[: chance.integers(3, 12)]), np.ones(2))
        for at in range(200)
    ]
    for lexical in ({}, {"k1": 0.6, "b": 0.3}):
        manifest = Manifest(model="m", dimension=2, settings={"lexical": {**lexical, "stem": False}})
        collection, truth = store.create(f"c{len(lexical)}", manifest), MemoryStore().create("c", manifest)
        collection.upsert(records)
        truth.upsert(records)
        for query in ("bao", "bao diu feo", "bao bao diu", "bao unheard"):
            expected = truth.search_text(query, 50 + BEYOND)
            assert same_hits(collection.search_text(query, 50), expected, 1e-5, k=50)
        best = collection.search_text("bao bao diu", 1)[0]
        ours, theirs = (each.explain_text("bao unheard diu diu", best.id) for each in (collection, truth))
        for mine, other in zip(ours, theirs, strict=True):
            assert {**mine, "idf": 0, "score": 0} == {**other, "idf": 0, "score": 0}
            assert mine["score"] == pytest.approx(other["score"], rel=1e-5)
            assert mine["idf"] == pytest.approx(other["idf"], rel=1e-9)
        assert collection.explain_text("bao", "nobody") == []


def test_languages(store):
    collection = store.create("c", Manifest(model="m", dimension=2))
    collection.upsert([Record("a", "The running houses and die Häuser", np.ones(2))])

    def finds(query):
        return bool(collection.search_text(query, 1))

    assert finds("house") and finds("runs") and not finds("Haus") and not finds("the") and finds("die")
    collection.configure({"lexical": {"language": "german"}})
    assert finds("Haus") and not finds("die") and finds("the")
    collection.configure({"lexical": {"stem": False, "stop_words": False}})
    assert finds("the") and finds("houses") and not finds("house")
    collection.configure({"lexical": {"stem": False}})
    assert not finds("the") and finds("houses") and not finds("house")
    collection.configure({"lexical": {"stop_words": False}})
    assert finds("the") and finds("house")
    collection.configure({"lexical": {"language": "arabic", "stem": False}})
    assert finds("houses")
    other = store.open("c")
    collection.configure({"lexical": {"stop_words": False}})
    assert other.search_text("the house", 1), "another process follows"


def test_long_texts(store):
    collection = store.create("c", Manifest(model="m", dimension=2))
    words = " ".join(f"w{at}" for at in range(200_000))
    collection.upsert([Record("long", words, np.ones(2)), Record("word", "x" * 5000, np.ones(2))])
    assert collection.get(["long"])[0].text == words
    assert collection.search_text("w77", 1)[0].id == "long"


# Limits


def test_what_the_database_cannot_hold_is_refused(store):
    """By PostgreSQL and pgvector; nothing of the batch is kept."""
    collection = store.create("c", Manifest(model="m", dimension=2, sparse=("s",)))
    good = Record("good", "text", np.ones(2))
    many = SparseVector.of(np.arange(16_001), np.ones(16_001))
    incompressible = "".join(chr(0x4E00 + at * 7919 % 20000) for at in range(3000))
    for bad in (
        Record("a", "t", np.ones(2), sparse={"s": many}),
        Record("a", "t", np.ones(2), sparse={"s": SparseVector.of([1_000_000_000], [1.0])}),
        Record(incompressible, "t", np.ones(2)),
    ):
        with pytest.raises(InvalidInputError):
            collection.upsert([good, bad])
    assert collection.count() == 0
    with pytest.raises(InvalidInputError):
        collection.search_sparse(many, 3, field="s")
    with pytest.raises(InvalidInputError):
        collection.get(["a\x00"])
    assert collection.search_sparse(SparseVector.of([], []), 3, field="s") == []


# Many writers


def test_many_writers_on_the_same_records(store):
    """Overlapping batches in any order from five threads: nobody waits in a circle, and nothing is torn."""
    collection = store.create("c", Manifest(model="m", dimension=2))
    failures = []

    def write(mine):
        chance = np.random.default_rng(mine)
        try:
            for _ in range(6):
                collection.upsert(
                    [
                        Record(f"{at:02d}", f"by {mine}", np.ones(2), {"by": mine}, blobs={"b": b"x"})
                        for at in chance.permutation(40)[:25]
                    ]
                )
                collection.delete([f"{at:02d}" for at in chance.permutation(40)[:5]])
        except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=(mine,)) for mine in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    (found,) = collection.iterate()
    assert len(found) == collection.count()
    assert all(each.text == f"by {each.metadata['by']}" and each.blobs == {"b": b"x"} for each in found)


def test_a_batch_that_meets_the_same_new_ids_waits_and_goes_again(store):
    collection = store.create("c", Manifest(model="m", dimension=2))
    done = []
    with store._connections.writing() as connection:
        connection.execute("INSERT INTO c1_records VALUES ('a', 'first', '{}', '[1,1]')")
        thread = threading.Thread(
            target=lambda: done.append(collection.upsert([Record("a", "second", np.ones(2))]))
        )
        thread.start()
        thread.join(0.3)  # timing: nothing may happen meanwhile
        assert thread.is_alive() and not done
    thread.join(60)
    assert done == [None] and collection.get(["a"])[0].text == "second"


def test_pages_hold_no_connection():
    with PostgresStore(fresh(pool_size=1)) as store:
        collection = store.create("c", Manifest(model="m", dimension=2))
        collection.upsert([Record(f"{at:02d}", "text", np.ones(2)) for at in range(20)])
        seen = []
        for batch in collection.iterate(batch_size=5):
            seen += [each.id for each in batch]
            collection.delete([f"{int(seen[-1]) + 1:02d}"])
        assert seen == [f"{at:02d}" for at in (*range(5), *range(6, 11), *range(12, 17), *range(18, 20))]


def test_a_snapshot_is_of_one_moment(store, tmp_path, monkeypatch):
    monkeypatch.setattr("dartboard.stores.postgres.collection._PAGE", 5)
    collection = store.create("c", Manifest(model="m", dimension=2))
    collection.upsert([Record(f"{at:02d}", "text", np.ones(2)) for at in range(20)])
    before = rows.read_all

    def disturbed(*given):
        for batch in before(*given):
            yield batch
            collection.delete(["19"])
            collection.upsert([Record("99", "new", np.ones(2))])

    monkeypatch.setattr(rows, "read_all", disturbed)
    collection.snapshot(tmp_path / "s")
    restored = MemoryStore().restore(tmp_path / "s")
    assert [each.id for batch in restored.iterate() for each in batch] == [f"{at:02d}" for at in range(20)]
    assert collection.count() == 20 and not collection.get(["19"])


def test_a_restore_that_fails_leaves_nothing(store, tmp_path):
    memory = MemoryStore().create("c", Manifest(model="m", dimension=2, sparse=("s",)))
    far = SparseVector.of([1_000_000_000], [1.0])
    memory.upsert([Record("a", "text", np.ones(2)), Record("b", "text", np.ones(2), sparse={"s": far})])
    memory.snapshot(tmp_path / "s")
    with pytest.raises(InvalidInputError):
        store.restore(tmp_path / "s")
    assert store.collections() == []


def test_a_lost_connection_undoes_the_batch(store, monkeypatch):
    collection = store.create("c", Manifest(model="m", dimension=2))
    collection.upsert([Record("a", "old", np.ones(2))])
    before = rows.to_row

    def cut(record, table):
        if record.id == "b":
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return before(record, table)

    monkeypatch.setattr(rows, "to_row", cut)
    with pytest.raises(StoreUnavailableError, match="closed"):
        collection.upsert([Record("a", "new", np.ones(2)), Record("b", "new", np.ones(2))])
    assert collection.count() == 1 and collection.get(["a"])[0].text == "old"
