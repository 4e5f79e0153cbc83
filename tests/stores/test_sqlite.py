"""What the store in a file does beyond the contract: opening, readers beside writers, read-only media."""

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dartboard.errors import (
    CollectionError,
    ConfigError,
    InvalidInputError,
    StoreError,
    StoreFormatError,
    StoreLockedError,
)
from dartboard.stores import SparseVector, derived, open_store, parse_filter
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import MANIFEST, PLAIN, record, same_record, sample_queries, sample_records


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some store.dartboard"


@pytest.fixture
def saving(monkeypatch):
    """Arrays of small collections are saved too."""
    monkeypatch.setattr(derived, "SAVED_FROM", 1)


def filled(path, count=100):
    with SqliteStore(path) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(sample_records(count))
        collection.prepare()
    return path


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Opening


def test_records_survive_reopening(path):
    filled(path)
    assert not path.with_name(f"{path.name}-wal").exists()
    with open_store(str(path)) as store:
        assert store.collections() == ["default"] and store.url == str(path)
        whole = [each for batch in store.open().iterate() for each in batch]
        assert all(same_record(*pair) for pair in zip(whole, sample_records(100), strict=True))


def test_an_empty_file_becomes_a_store(path):
    path.touch()
    with SqliteStore(path) as store:
        assert store.collections() == []


def test_folders_are_made_and_a_folder_is_refused(tmp_path):
    SqliteStore(tmp_path / "a" / "b" / "c.dartboard").close()
    with pytest.raises(StoreFormatError, match="is not a file"):
        SqliteStore(tmp_path / "a")
    with pytest.raises(StoreError, match="no store can be made"):
        SqliteStore(tmp_path / "a" / "b" / "c.dartboard" / "d")
    for wrong in ("", " ", "a\x00b"):
        with pytest.raises(ConfigError, match="path"):
            SqliteStore(wrong)


def test_read_only_makes_nothing(path):
    with pytest.raises(StoreError, match="does not exist"):
        SqliteStore(path, read_only=True)
    assert not list(path.parent.iterdir())
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        SqliteStore(path, read_only=True)


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()


def newer_store(path):
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def old_store(path):
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()


def scrambled_store(path):
    filled(path)
    data = bytearray(path.read_bytes())
    data[100:16384] = os.urandom(16384 - 100)
    path.write_bytes(data)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: path.write_bytes(os.urandom(50_000)), "not a dartboard store"),
        (lambda path: path.write_text("Just some notes.\n" * 200), "not a dartboard store"),
        (lambda path: path.write_bytes(b"SQLite format 3\x00"), "not a dartboard store"),
        (foreign_database, "another program"),
        (newer_store, "newer"),
        (old_store, "older"),
        (scrambled_store, "damaged"),
    ],
)
def test_what_is_no_store_is_left_as_it_is(path, make, complaint, read_only):
    make(path)
    before = digest(path)
    with pytest.raises(StoreFormatError, match=complaint):
        SqliteStore(path, read_only=read_only)
    assert digest(path) == before
    assert {each.name for each in path.parent.iterdir()} <= {path.name, f"{path.name}.derived"}


def test_a_file_that_was_cut_off_is_damaged(path):
    filled(path, 300)
    path.write_bytes(path.read_bytes()[:-40_000])
    with pytest.raises(StoreFormatError, match="damaged"), SqliteStore(path, read_only=True) as store:
        store.check()


def test_damage_inside_is_a_clear_error(path):
    """Pages of records overwritten: reading them fails in our words, and nothing is made worse."""
    filled(path, 300)
    data = bytearray(path.read_bytes())
    half = len(data) // 2 // 16384 * 16384
    data[half:] = os.urandom(len(data) - half)
    path.write_bytes(data)
    before = digest(path)
    with SqliteStore(path, read_only=True) as store, pytest.raises(StoreFormatError, match="damaged"):
        for _ in store.open().iterate():
            pass
    assert digest(path) == before


def test_a_closed_store_says_so(path):
    store = SqliteStore(path)
    collection = store.create("default", PLAIN)
    store.close()
    for call in (store.collections, collection.count, lambda: collection.upsert([record("a")])):
        with pytest.raises(StoreError, match="was closed"):
            call()


def test_a_dropped_collection_says_so(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        store.drop("default")
        for call in (
            collection.count,
            lambda: collection.upsert([record("a")]),
            lambda: collection.delete(["a"]),
        ):
            with pytest.raises(CollectionError, match="was dropped"):
                call()


def test_text_that_is_no_unicode_is_refused(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        for name, value in (("id", "a\ud800"), ("text", "b\udfff"), ("metadata", {"k": "\ud800"})):
            wrong = record("a")
            setattr(wrong, name, value)  # spoilt after it was checked
            with pytest.raises(InvalidInputError, match="Unicode"):
                collection.upsert([record("fine"), wrong])
        assert collection.count() == 0 and collection.get(["a\ud800"]) == []


def test_a_failed_write_leaves_no_trace(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        collection.upsert([record("a", text="first")])
        with pytest.raises(InvalidInputError):
            collection.upsert([record("a", text="second"), record("b\ud800")])
        assert collection.get(["a"])[0].text == "first" and collection.count() == 1
        assert collection.search_text("first", 1)[0].id == "a"


# One writer, many readers

CHILD = """
import sys
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import PLAIN
from dartboard.testing import record
store = SqliteStore(sys.argv[1])
collection = store.open() if store.collections() else store.create("default", PLAIN)
for line in sys.stdin:
    collection.upsert([record(line.strip())])
    print("kept", flush=True)
store.close()
"""


@pytest.fixture
def writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def write(name):
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "kept\n"

    yield write
    process.stdin.close()
    process.stdout.close()
    process.wait(timeout=30)


def test_a_second_writer_waits_and_readers_go_on(path, writer):
    writer("a")
    with SqliteStore(path) as store:
        collection = store.open()
        assert collection.count() == 1
        collection.upsert([record("mine")])
        writer("b")
        assert [hit.id for hit in collection.search_vector(record("a").embedding, 5)] == ["a", "b", "mine"]
        writer("c")
        assert [hit.id for hit in collection.search_text("text", 5)] == ["a", "b", "c", "mine"]
        with SqliteStore(path, read_only=True) as reader:
            assert reader.open().count() == 4
            with pytest.raises(StoreError, match="read_only"):
                reader.open().upsert([record("d")])


def test_a_write_waits_for_another(path):
    """Both are kept, one after the other; a write that would wait too long is refused with a reason."""
    with SqliteStore(path) as first, SqliteStore(path) as second:
        first.create("default", PLAIN)
        started, let_go = threading.Event(), threading.Event()

        def hold():
            with first.writing() as connection:
                connection.execute("UPDATE collections SET revision = revision + 1")
                started.set()
                let_go.wait()

        with ThreadPoolExecutor(2) as pool:
            holding = pool.submit(hold)
            started.wait()
            waiting = pool.submit(second.open().upsert, [record("a")])
            let_go.set()
            holding.result()
            waiting.result()
        assert first.open().count() == 1
        with first.writing(), second.reading() as connection:
            connection.execute("PRAGMA busy_timeout = 1")
        with first.writing(), pytest.raises(StoreLockedError, match="another process"):
            second.open().upsert([record("b")])


def test_a_forked_child_reads_and_writes(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        collection.upsert([record("a")])
        process = os.fork()
        if process == 0:  # pragma: no cover - the child
            try:
                assert collection.count() == 1
                collection.upsert([record("b")])
                assert len(collection.search_vector(record("b").embedding, 5)) == 2
                os._exit(7)
            finally:
                os._exit(1)
        _, status = os.waitpid(process, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        collection.upsert([record("c")])
        assert [hit.id for hit in collection.search_text("text", 5)] == ["a", "b", "c"]


def test_iterating_sees_one_state(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        collection.upsert(sample_records(50, fields=False))
        batches = collection.iterate(batch_size=10)
        seen = next(batches)
        collection.delete([each.id for each in sample_records(50)[20:]])
        collection.upsert([record("zzz")])
        seen += [each for batch in batches for each in batch]
        assert [each.id for each in seen] == [each.id for each in sample_records(50)]
        assert collection.count() == 21


def test_threads_read_while_one_writes(path):
    records = sample_records(400)
    with SqliteStore(path) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(records[:100])
        wrong, done = [], threading.Event()

        def read(seed):
            try:
                while not done.is_set():
                    hits = collection.search_vector(sample_queries(1, seed=seed)[0], 20)
                    if len(hits) != 20 or len({hit.id for hit in hits}) != 20:
                        wrong.append(hits)
                    collection.search_text("broker", 5, where=parse_filter("year > 2005"))
                    collection.get([hit.id for hit in hits])
            except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
                wrong.append(error)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for start in range(100, 400, 50):
            collection.upsert(records[start : start + 50])
            collection.delete([records[start - 1].id])
        done.set()
        for thread in threads:
            thread.join()
        assert not wrong and collection.count() == 394


# Read-only media

SEARCH_AS_NOBODY = """
import os, sys
import faiss, mmap, numpy.testing, Stemmer  # before rights are given up: the interpreter may be root's alone
from dartboard.errors import StoreError
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import sample_queries
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
for read_only in (True, False):
    with SqliteStore(sys.argv[1], read_only=read_only) as store:
        collection = store.open()
        hits = collection.search_vector(sample_queries(1)[0], 3)
        words = collection.search_text("broker", 3)
        print([hit.id for hit in hits], len(words), collection.count())
        try:
            collection.delete(["chunk/00001"])
        except StoreError as error:
            print("refused")
"""


@pytest.mark.parametrize("with_derived", [True, False])
def test_read_only_media(tmp_path, with_derived, saving):
    folder = tmp_path / "medium"
    path = filled(folder / "s.dartboard", 150)
    with SqliteStore(path) as store:
        expected = [hit.id for hit in store.open().search_vector(sample_queries(1)[0], 3)]
    if not with_derived:
        shutil.rmtree(f"{path}.derived")
    _forbid_writing(folder)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o005)
    tmp_path.chmod(0o755)
    before = digest(path)
    done = subprocess.run(
        [sys.executable, "-c", SEARCH_AS_NOBODY, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count(f"{expected} 3 150") == 2
    assert done.stdout.splitlines().count("refused") == 2
    assert digest(path) == before and sorted(p.name for p in folder.iterdir()) == sorted(
        [path.name] + [f"{path.name}.derived"] * with_derived
    )


def _forbid_writing(folder):
    for part in [folder, *folder.rglob("*")]:
        part.chmod(0o555 if part.is_dir() else 0o444)


# Saved arrays


def answers(collection):
    where = parse_filter("year >= 2006")
    query = sample_queries(1, seed=4)[0]
    return [
        collection.search_vector(query, 10),
        collection.search_vector(query, 10, where=where),
        collection.search_vector(np.ones(12), 10, field="pooled"),
        collection.search_text("broker queue", 10, where=where),
        collection.search_sparse(SparseVector.of(np.arange(0, 500, 3), np.ones(167)), 10, field="splade"),
    ]


def folders(path):
    return sorted(Path(f"{path}.derived").iterdir())


def test_saved_arrays_answer_as_those_that_are_built(path, saving, monkeypatch):
    """Also after later writes, which the saved arrays do not know; they are saved again when many changed."""
    filled(path, 200)
    (saved,) = folders(path)
    with SqliteStore(path) as store:
        collection = store.open()
        collection.upsert(sample_records(230)[190:])
        collection.delete([sample_records(1)[0].id])
        collection.prepare()
        assert folders(path) == [saved]  # too few changes to save them again
    with SqliteStore(path, read_only=True) as store:
        found = answers(store.open())
    monkeypatch.setattr(derived, "_NAME", re.compile("no name is read"))
    with SqliteStore(path, read_only=True) as store:
        assert answers(store.open()) == found
    monkeypatch.undo()
    monkeypatch.setattr(derived, "SAVED_FROM", 1)
    with SqliteStore(path) as store:
        store.open().upsert([replace(each, id=f"more {each.id}") for each in sample_records(1200)])
        store.open().prepare()
        (again,) = folders(path)
        assert again != saved
        store.drop("default")
        assert folders(path) == []


def test_a_backup_does_not_take_the_arrays_of_another_history(path, saving):
    """A file that was put back and written on differs from the one whose arrays stand beside it."""
    filled(path, 50)
    backup = path.read_bytes()
    with SqliteStore(path) as store:
        store.open().delete([each.id for each in sample_records(50)])
        store.open().upsert([record(f"lost {number}") for number in range(1100)])
        store.open().prepare()
    path.write_bytes(backup)
    with SqliteStore(path) as store:
        collection = store.open()
        collection.upsert([record(f"kept {number}") for number in range(1100)])
        hits = collection.search_vector(record("x").embedding, 2000)
        assert len(hits) == 1150 and not any(hit.id.startswith("lost") for hit in hits)


def test_a_write_moves_the_arrays_on(path):
    """Codes, saved rows and words follow single writes; nothing is built anew."""
    filled(path, 300)
    with SqliteStore(path) as store:
        collection = store.open()
        before = answers(collection)
        for number in range(12):
            collection.upsert([record(f"new {number}", text=f"quite new{number} wording")])
            assert [hit.id for hit in collection.search_text(f"new{number}", 5)] == [f"new {number}"]
            assert len(collection.search_vector(record("x").embedding, 400)) == 301 + number
        assert collection.stats().details["indexes"]["embedding"]["changes"] == 12
        collection.delete([f"new {number}" for number in range(12)])
        assert answers(collection) == before


# Numbers


def test_scores_are_cosines_within_bounds(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        vectors = np.random.default_rng(0).standard_normal((50, 24)).astype(np.float32)
        collection.upsert([record(f"{at}", embedding=vector) for at, vector in enumerate(vectors)])
        for vector in vectors:
            assert 1 - 1e-6 < collection.search_vector(3 * vector, 1)[0].score <= 1
            assert -1 <= collection.search_vector(-vector, 50)[-1].score < -1 + 1e-6


def test_vectors_at_the_edges_of_float32(path):
    with SqliteStore(path) as store:
        collection = store.create("default", PLAIN)
        huge, tiny = np.full(24, 3e38, np.float32), np.full(24, 1e-40, np.float32)
        collection.upsert([record("huge", embedding=huge), record("tiny", embedding=tiny), record("plain")])
        hits = collection.search_vector(np.ones(24), 3)
        assert [hit.id for hit in hits[:2]] == ["huge", "tiny"]
        assert np.allclose([hit.score for hit in hits[:2]], 1, atol=1e-4)
