"""Trouble below the store, told in its own words."""

import errno
import os
import sqlite3
from contextlib import closing

import pytest

from dartboard.errors import StoreError, StoreFormatError, StoreLockedError
from dartboard.stores.embedded import EmbeddedStore, Tuning, store_file, writer_lock
from dartboard.stores.embedded.connections import connect, translated
from dartboard.stores.embedded.derived_index import DamagedFileError
from dartboard.stores.embedded.vector_search import VectorMatrix, write_vectors
from dartboard.testing.samples import PLAIN, sample_queries, sample_records
from dartboard.testing.stores import record

EAGER = Tuning(files_from=0, approximate_from=50)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.dartboard"


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_CORRUPT, StoreFormatError, "damaged"),
        (sqlite3.SQLITE_NOTADB, StoreFormatError, "damaged"),
        (sqlite3.SQLITE_FULL, StoreError, "disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, StoreError, "disk is full"),
        (sqlite3.SQLITE_BUSY, StoreLockedError, "is being written"),
        (sqlite3.SQLITE_READONLY, StoreError, "read_only=True"),
        (sqlite3.SQLITE_ERROR, StoreError, "no such table"),
    ],
)
def test_every_error_of_sqlite_is_told(path, code, kind, words):
    error = sqlite3.OperationalError("no such table")
    error.sqlite_errorcode = code
    told = translated(error, path)
    assert type(told) is kind and words in str(told) and str(path) in str(told)


def test_another_program_that_writes_to_the_file(path, monkeypatch):
    """Somebody who ignores our lock holds SQLite's own."""
    monkeypatch.setattr("dartboard.stores.embedded.connections._BUSY_SECONDS", 0.05)
    with EmbeddedStore(path) as store:
        collection = store.create("default", PLAIN)
    with EmbeddedStore(path) as store, closing(connect(path, "rw")) as other:
        collection = store.open()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match="is being written"):
            collection.upsert([record("a")])
        other.execute("ROLLBACK")
        collection.upsert([record("a")])
        assert collection.count() == 1


def test_no_lock_file_can_be_made(path, monkeypatch):
    with EmbeddedStore(path) as store:
        store.create("default", PLAIN)
    monkeypatch.setattr(writer_lock.os, "open", _refuse)
    with EmbeddedStore(path) as store, pytest.raises(StoreError, match="no lock file can be made"):
        store.open().upsert([record("a")])


def _refuse(*_args, **_options):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_store_that_appears_meanwhile_is_left(path):
    with EmbeddedStore(path) as store:
        store.create("default", PLAIN)
    store_file._create(path.with_name("other"))
    store_file._publish(path.with_name("other"), path.with_name("third"))
    with pytest.raises(FileExistsError):
        store_file._publish(path.with_name("other"), path)
    with EmbeddedStore(path) as store:
        assert store.collections() == ["default"]


def test_where_files_cannot_have_two_names(path, monkeypatch):
    monkeypatch.setattr(store_file.os, "link", _refuse)
    with EmbeddedStore(path) as store:
        store.create("default", PLAIN)
    assert [each.name for each in path.parent.iterdir() if ".new-" in each.name] == []


def test_a_damaged_manifest(path):
    with EmbeddedStore(path) as store:
        store.create("default", PLAIN)
    for text in ("{", "[]", '{"format_version": 99}'):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE collections SET manifest = ?", (text,))
        with EmbeddedStore(path) as store, pytest.raises(StoreFormatError, match=r"manifest|newer"):
            store.open().search_vector(sample_queries(1)[0], 1)


def test_a_vector_of_the_wrong_length_in_the_file(path):
    with EmbeddedStore(path) as store:
        store.create("default", PLAIN).upsert([record("a"), record("b")])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE contents SET embedding = x'0000' WHERE row = 1")
    with EmbeddedStore(path) as store:
        with pytest.raises(StoreFormatError, match="damaged"):
            store.open().search_vector(sample_queries(1)[0], 1)
        with pytest.raises(StoreFormatError, match="damaged"):
            store.open().get(["a", "b"])


@pytest.mark.parametrize("stamp", ["{", "{}", '{"format": 99}'])
def test_a_stamp_that_cannot_be_read(path, stamp):
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.create("default", PLAIN).upsert(sample_records(80, fields=False))
        expected = store.open().search_vector(sample_queries(1)[0], 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE derived SET stamp = ?", (stamp,))
    with EmbeddedStore(path, tuning=EAGER) as store:
        assert store.open().search_vector(sample_queries(1)[0], 5) == expected
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("""UPDATE derived SET stamp = replace(stamp, '"count"', '"number"')""")
    with EmbeddedStore(path, tuning=EAGER) as store:
        assert store.open().search_vector(sample_queries(1)[0], 5) == expected


def test_a_stamp_that_names_a_strange_folder(path):
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.create("default", PLAIN).upsert(sample_records(80, fields=False))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE derived SET folder = '../../etc'")
    with EmbeddedStore(path, tuning=EAGER) as store:
        assert len(store.open().search_vector(sample_queries(1)[0], 5)) == 5


def test_a_matrix_harmed_while_it_is_open(path):
    """Blocks are checked when they are first touched; what is found then is built again."""
    with EmbeddedStore(path, tuning=Tuning(files_from=0)) as store:
        store.create("default", PLAIN).upsert(sample_records(80, fields=False))
    with EmbeddedStore(path, tuning=Tuning(files_from=0, tail_share=0)) as store:
        collection = store.open()
        expected = collection.search_vector(sample_queries(1)[0], 5)
        (matrix,) = path.parent.rglob("vectors.f32")
    data = bytearray(matrix.read_bytes())
    data[40 * 24 * 4] ^= 0x40
    matrix.write_bytes(data)
    with EmbeddedStore(path, tuning=Tuning(files_from=0)) as store:
        assert store.open().search_vector(sample_queries(1)[0], 5) == expected
        store.open().prepare()


def test_checksums_that_do_not_fit(tmp_path):
    queries = sample_queries(20)[:, :4]
    checksums = write_vectors(tmp_path / "m", 4, [queries[:3], queries[3:]])
    rows = VectorMatrix.from_file(tmp_path / "m", (20, 4), checksums)
    assert rows.shape == (20, 4) and (rows.whole() == queries).all()
    with pytest.raises(DamagedFileError, match="checksums"):
        VectorMatrix.from_file(tmp_path / "m", (20, 4), checksums[:1])
    with pytest.raises(DamagedFileError, match="bytes"):
        VectorMatrix.from_file(tmp_path / "m", (21, 4), checksums)
    with pytest.raises(DamagedFileError):
        VectorMatrix.from_file(tmp_path / "nothing", (20, 4), checksums)
