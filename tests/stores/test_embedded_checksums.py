"""Damage inside a file: an error, or the right answer; files of the first format, which had no checksums."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.stores.embedded.checksums import bytes_checksum, text_checksum
from dartboard.stores.records import SparseVector
from dartboard.testing.samples import MANIFEST, sample_queries, sample_records

RECORDS = sample_records(60)
BY_ID = {record.id: record for record in RECORDS}
FLIPS = 200


def filled(path, tuning=None):
    with EmbeddedStore(path, tuning=tuning) as store:
        store.create("default", MANIFEST).upsert(RECORDS)
    return path.read_bytes()


def answers(path, tuning):
    """Everything that a few searches hand over, as whole records."""
    with EmbeddedStore(path, read_only=True, tuning=tuning) as store:
        collection = store.open()
        hits = [hit for query in sample_queries(2) for hit in collection.search_vector(query, 10)]
        hits += collection.search_text("broker queue snapshot", 10)
        hits += collection.search_sparse(SparseVector([1, 2, 3], [1.0, 1.0, 1.0]), 5, field="splade")
        ids = list(dict.fromkeys(hit.id for hit in hits))
        found = collection.get(ids)
        return ids, found


@pytest.mark.parametrize("tuning", [Tuning(), Tuning(files_from=0)], ids=["in memory", "derived files"])
def test_a_flipped_bit_never_changes_what_is_handed_over(tmp_path, tuning):
    whole = filled(tmp_path / "whole.dartboard", tuning)
    used = [at for at, byte in enumerate(whole) if byte]  # most of so small a file is empty
    chance = random.Random(3)
    path, refused, noticed = tmp_path / "hurt.dartboard", 0, 0
    for _ in range(FLIPS // 2):
        hurt = bytearray(whole)
        hurt[chance.choice(used)] ^= 1 << chance.randrange(8)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(hurt)
        derived = tmp_path / "whole.dartboard.derived"
        if derived.exists():
            shutil.copytree(derived, tmp_path / "hurt.dartboard.derived", dirs_exist_ok=True)
        try:
            ids, found = answers(path, tuning)
        except StoreError as error:
            refused += 1
            assert str(error).strip()
            continue
        for record in found:
            assert record.text == BY_ID[record.id].text and record.metadata == BY_ID[record.id].metadata
        noticed += len(found) < len(ids)  # whoever reads passages refuses that
    assert refused > 10 and noticed < 5


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("UPDATE contents SET text = 'X' || substr(text, 2) WHERE row = 7", "chunk .* is damaged"),
        ("UPDATE records SET metadata = '{}' WHERE row = 7", "chunk .* is damaged"),
        ("UPDATE contents SET embedding = zeroblob(96) WHERE row = 7", "embedding of chunk .* is damaged"),
        ("UPDATE contents SET embedding = 'text' WHERE row = 7", "embedding of chunk .* is damaged"),
        ("UPDATE vectors SET data = zeroblob(32) WHERE field = 'code'", "field 'code' .* is damaged"),
        ("UPDATE sparse SET weights = zeroblob(length(weights))", "field 'splade' .* is damaged"),
        ("DELETE FROM contents WHERE row = 7", "59 of 60 records"),
        ("UPDATE collections SET manifest = 'x'", "manifest is damaged"),
    ],
)
def test_a_check_of_all_finds_what_was_changed(tmp_path, change, complaint):
    path = tmp_path / "s.dartboard"
    filled(path)
    with EmbeddedStore(path, read_only=True) as store:
        assert store.check() == (60, 0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with EmbeddedStore(path, read_only=True) as store, pytest.raises(StoreFormatError, match=complaint):
        store.check()


def as_format_1(path):
    """The file as the first releases wrote it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, column in (
            ("contents", "sum"),
            ("contents", "vector_sum"),
            ("vectors", "sum"),
            ("sparse", "sum"),
            ("blobs", "sum"),
        ):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")


def test_files_without_checksums_are_read_and_written(tmp_path):
    path = tmp_path / "s.dartboard"
    filled(path)
    as_format_1(path)
    before = path.read_bytes()
    ids, found = answers(path, None)
    assert [record.id for record in found] == ids
    with EmbeddedStore(path, read_only=True) as store:
        assert store.check() == (60, 60)
        assert [r.id for batch in store.open().iterate() for r in batch] == sorted(BY_ID)
    assert path.read_bytes() == before
    with EmbeddedStore(path) as store:
        store.open().upsert(RECORDS[:5])
    with EmbeddedStore(path, read_only=True) as store:
        assert store.check() == (60, 55)


def test_single_blobs_are_checked_where_the_file_can(tmp_path):
    chosen = [record for record in RECORDS if record.blobs][:3]
    path, ids = tmp_path / "s.dartboard", [record.id for record in chosen]
    filled(path)
    stored = {record.id: record.blobs["other"] for record in chosen}
    with EmbeddedStore(path, read_only=True) as store:
        assert store.open().read_blobs([*ids, "nobody"], "other") == stored
        assert store.open().read_blobs(ids, "none") == {}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blobs SET data = zeroblob(3) WHERE name = 'other'")
    with (
        EmbeddedStore(path, read_only=True) as store,
        pytest.raises(StoreFormatError, match=r"field 'other' .* is damaged"),
    ):
        store.open().read_blobs(ids, "other")
    as_format_1(path)
    with EmbeddedStore(path, read_only=True) as store:
        assert store.open().read_blobs(ids, "other") == dict.fromkeys(ids, bytes(3))


def test_sums_depend_on_the_row_and_on_every_part():
    sums = {
        text_checksum(1, "a", "{}", "text"),
        text_checksum(2, "a", "{}", "text"),
        text_checksum(1, "b", "{}", "text"),
        text_checksum(1, "a", "{ }", "text"),
        text_checksum(1, "a", "{}", "Text"),
        bytes_checksum(1, b"a", b"bc"),
        bytes_checksum(2, b"a", b"bc"),
    }
    assert len(sums) == 7
