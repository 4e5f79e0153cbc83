"""Damage to any file of a store: the same answers, a rebuild, or an error of dartboard's; nothing else.

``DARTBOARD_DEEP_CASES`` sets how often each kind of store is damaged; ``make test-deep`` asks for many.
"""

import gzip
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from dartboard.errors import DartboardError, StoreError, StoreFormatError
from dartboard.stores import parse_filter
from dartboard.stores.embedded import EmbeddedStore, Tuning, checksums
from dartboard.stores.manifest import manifest_to_json
from dartboard.testing.samples import MANIFEST
from tests.stores.damage import (
    EAGER,
    KINDS,
    READING,
    RECORDS,
    STORED,
    contents_of,
    damage,
    listed,
    wrong_answers,
)

pytestmark = pytest.mark.no_cover  # the same reading, again and again

CASES = int(os.environ.get("DARTBOARD_DEEP_CASES", "40")) // 4
FILL = """
import os, signal, sys
from dartboard.stores.embedded import EmbeddedStore
from dartboard.testing.samples import MANIFEST
from tests.stores.damage import EAGER, STORED
store = EmbeddedStore(sys.argv[1], tuning=EAGER)
collection = store.create("default", MANIFEST)
collection.upsert(STORED[:350])
collection.prepare()
if sys.argv[2] == "killed":  # part of it in the file, part in the log
    store._connections._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
collection.upsert(STORED[340:])
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
store.close()
"""


@pytest.fixture(scope="module", params=["closed", "killed"])
def whole(request, tmp_path_factory):
    """A store whose writer closed it, or was killed; and what its doors answer."""
    folder = tmp_path_factory.mktemp(request.param)
    path = folder / "s.dartboard"
    command = [sys.executable, "-c", FILL, str(path), request.param]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == (-signal.SIGKILL if request.param == "killed" else 0), done.stderr
    shutil.copytree(folder, folder / "copy")
    with EmbeddedStore(folder / "copy" / path.name, tuning=EAGER) as store:
        right = {name: door(store.open()) for name, door in READING.items()}
    assert right["list"] == contents_of(frozenset(record.id for record in STORED))
    shutil.rmtree(folder / "copy")
    return folder, right


def files_of(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size)


def test_damaged_files_of_a_store(whole, tmp_path, caplog, capsys):
    """A store that is gone altogether is made anew by whoever writes: that is no damage."""
    caplog.set_level("CRITICAL")
    source, right = whole
    outcomes = {"same": 0, "refused": 0}
    for seed in range(CASES):
        folder, aside = tmp_path / "files", tmp_path / "aside"
        shutil.copytree(source, folder)
        aside.mkdir()
        chance = random.Random(seed)
        path = folder / "s.dartboard"
        if seed % 2:
            hurt = damage([path], chance, [kind for kind in KINDS if kind != "gone"])
        else:
            hurt = damage([file for file in files_of(folder) if file != path], chance)
        wrong, refused = wrong_answers(path, aside, right)
        assert wrong == [], (seed, hurt)
        outcomes["refused" if refused else "same"] += 1
        shutil.rmtree(folder)
        shutil.rmtree(aside)
    assert min(outcomes.values()) > 0
    with capsys.disabled():
        print(f"\n{source.name}: {CASES} damaged, {outcomes}")


def test_a_sound_store_answers_at_every_door(whole, tmp_path):
    source, right = whole
    shutil.copytree(source, tmp_path / "files")
    (tmp_path / "aside").mkdir()
    assert wrong_answers(tmp_path / "files" / "s.dartboard", tmp_path / "aside", right) == ([], [])


def test_damaged_snapshots(tmp_path, capsys):
    path, snapshot = tmp_path / "s.dartboard", tmp_path / "snapshot"
    with EmbeddedStore(path) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:50])
        store.open().snapshot(snapshot)
        right, sound = listed(store.open()), snapshot.read_bytes()
    outcomes = {"same": 0, "refused": 0}
    with EmbeddedStore(tmp_path / "other.dartboard") as store:
        for seed in range(5 * CASES):
            snapshot.write_bytes(sound)
            hurt = damage([snapshot], random.Random(seed))
            try:
                assert listed(store.restore(snapshot, "again")) == right, (seed, hurt)
            except DartboardError as error:
                assert str(error)
                outcomes["refused"] += 1
            else:
                outcomes["same"] += 1
                store.drop("again")
            assert store.collections() == []
    assert outcomes["refused"] > CASES
    with capsys.disabled():
        print(f"\nsnapshots: {5 * CASES} damaged, {outcomes}")


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a"},
        {"id": "a", "text": "x", "embedding": 3, "metadata": {}},
        {"id": "a", "text": "x", "embedding": "abc", "metadata": {}},
    ],
)
def test_a_snapshot_that_somebody_else_sealed(tmp_path, record):
    head = {"kind": "dartboard snapshot", "format": 1, "name": "x", **manifest_to_json(MANIFEST)}
    lines = [json.dumps(line).encode() + b"\n" for line in (head, record)]
    seal = {"records": 1, "sha256": hashlib.sha256(b"".join(lines)).hexdigest()}
    (tmp_path / "snapshot").write_bytes(gzip.compress(b"".join(lines) + json.dumps(seal).encode()))
    with EmbeddedStore(tmp_path / "s.dartboard") as store:
        with pytest.raises(StoreFormatError, match="holds no records of ours"):
            store.restore(tmp_path / "snapshot")
        assert store.collections() == []


# One kind of damage each


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path, tuning=Tuning(files_from=0)) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:60])
    return path


def changed(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_a_row_that_the_index_does_not_know(path):
    """It was an IndexError, or the vector of another record."""
    changed(path, "UPDATE records SET row = 100000 WHERE row = 7")
    store = EmbeddedStore(path, read_only=True, tuning=Tuning(files_from=0))
    with store, pytest.raises(StoreFormatError, match=r"damaged.*dartboard doctor"):
        store.open().unit_vectors([RECORDS[6].id])


@pytest.mark.parametrize("page", range(2, 16))
def test_a_zeroed_page_is_said_at_once(path, page):
    data = bytearray(path.read_bytes())
    at = 16384 * (page - 1)
    assert data[at : at + 16384] != bytes(16384)
    data[at : at + 16384] = bytes(16384)
    path.write_bytes(data)
    store = EmbeddedStore(path, read_only=True)
    with store, pytest.raises(StoreFormatError, match=r"damaged.*restore"):
        store.open()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE collections SET records = records + 1",
        "UPDATE collections SET revision = 'x'",
        "UPDATE collections SET floor = floor + 1",
        "UPDATE collections SET manifest = replace(manifest, '\"model\"', '\"model\" ')",
    ],
)
def test_what_is_said_of_a_collection_has_a_checksum(path, statement):
    changed(path, statement)
    with EmbeddedStore(path) as store:
        for work in (
            lambda: store.open().count(),
            lambda: store.open().upsert(RECORDS[:1]),
            lambda: store.create("other", MANIFEST),
            store.check,
        ):
            with pytest.raises(StoreFormatError, match="manifest is damaged"):
                work()


def test_an_index_that_claims_to_be_newer_is_built_again(path):
    with EmbeddedStore(path, tuning=Tuning(files_from=10**6)) as store:
        store.open().upsert([RECORDS[60]])
        store.open().delete([RECORDS[0].id])
    changed(path, "UPDATE derived SET revision = 3")
    with EmbeddedStore(path, read_only=True, tuning=Tuning(files_from=0)) as store:
        found = store.open().search_vector(RECORDS[60].embedding, 60)
        assert found[0].id == RECORDS[60].id and RECORDS[0].id not in [hit.id for hit in found]


def test_a_filter_does_not_choose_by_damaged_metadata(path):
    changed(path, "UPDATE records SET metadata = replace(metadata, '\"lang\"', '\"long\"') WHERE row = 7")
    where = parse_filter("lang exists")
    with EmbeddedStore(path) as store:
        for work in (
            lambda: store.open().search_text("broker", 5, where=where),
            lambda: store.open().count(where),
            lambda: store.open().delete(where=where),
        ):
            with pytest.raises(StoreFormatError, match=r"chunk .* is damaged"):
                work()


def test_a_damaged_text_does_not_hold_the_state_of_its_reader(path):
    """A statement that failed halfway kept its connection at an old state."""
    changed(path, "UPDATE contents SET text = CAST(x'ff41' AS TEXT) WHERE row = 7")
    shutil.rmtree(f"{path}.derived")
    with EmbeddedStore(path, tuning=Tuning(files_from=10**6)) as store:
        collection = store.open()
        with pytest.raises(StoreFormatError) as kept:
            collection.search_text("broker", 5)
        collection.upsert([RECORDS[61]])
        assert collection.count() == 61 and kept.value


def test_other_errors_stay_what_they_are(path):
    with EmbeddedStore(path) as store, pytest.raises(KeyError, match="mine"), store.open().read_snapshot():
        {}["mine"]
    changed(path, "UPDATE contents SET embedding = zeroblob(96) WHERE row = 7")
    damage = pytest.raises(StoreFormatError, match=r"embedding .* is damaged")
    with EmbeddedStore(path) as store, damage, store.open().read_snapshot():
        {}["mine"]


def test_an_emptied_file_is_no_new_store(path):
    path.write_bytes(b"")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="is empty"):
            EmbeddedStore(path, read_only=read_only)
    path.unlink()
    with EmbeddedStore(path) as store:
        assert store.collections() == []


def test_an_older_file_gets_checksums_of_its_collections(path):
    changed(path, "ALTER TABLE collections DROP COLUMN sum")
    changed(path, "PRAGMA user_version = 2")
    with EmbeddedStore(path) as store:
        assert store.open().count() == 60
        store.open().upsert([RECORDS[61]])
    changed(path, "UPDATE collections SET records = 1")
    with EmbeddedStore(path) as store, pytest.raises(StoreFormatError, match="damaged"):
        store.open().count()


@pytest.mark.parametrize("page", [3, 6, 9, 12])
def test_a_large_file_is_checked_when_all_of_it_is_read(path, tmp_path, monkeypatch, page):
    monkeypatch.setattr(checksums, "SMALL_BYTES", 0)
    data = bytearray(path.read_bytes())
    data[16384 * (page - 1) : 16384 * page] = bytes(16384)
    path.write_bytes(data)
    shutil.rmtree(f"{path}.derived")
    with EmbeddedStore(path, read_only=True) as store:
        for work in (
            lambda: listed(store.open()),
            lambda: store.open().search_vector(RECORDS[0].embedding, 3),
            lambda: store.open().search_text("broker", 3),
            lambda: store.open().snapshot(tmp_path / "snapshot"),
        ):
            with pytest.raises(StoreFormatError, match="damaged"):
                work()
    assert not (tmp_path / "snapshot").exists()
