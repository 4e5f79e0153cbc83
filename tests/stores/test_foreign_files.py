"""What a stranger made or put beside an index: refused, and neither run, followed nor waited for."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores import derived
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import MANIFEST, record, sample_queries, sample_records

RECORDS = sample_records(20)
PRECIOUS = "precious\n" * 1000
OPEN_AND_SEARCH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from dartboard.cli import main
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import sample_records
path, *commands = sys.argv[1:]
def search():
    try:
        with SqliteStore(path, read_only=True) as store:
            found = store.open()
            found.search_vector(sample_records(20)[0].embedding, 3)
            found.search_text("queue", 3)
            return 0
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
        return 1
def run(command):
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        code = search() if command == "search" else main([command, "--store", path])
    return code, " ".join(said.getvalue().split())
print(json.dumps([run(command) for command in commands]))
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(derived, "SAVED_FROM", 1)
    path = tmp_path / "s.dartboard"
    with SqliteStore(path) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(RECORDS[:10])
        collection.prepare()
    return path


@pytest.fixture
def precious(tmp_path):
    file = tmp_path / "precious.txt"
    file.write_text(PRECIOUS)
    return file


def write(path):
    with SqliteStore(path) as store:
        store.open().upsert(RECORDS[10:])


def run(path, *commands):
    """Exit code and words of each, in a process of their own: one that hangs is ended, and the test fails."""
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_SEARCH, str(path), *commands],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)


def saved(path):
    return sorted(file for file in Path(f"{path}.derived").rglob("*") if file.is_file())


# The tables

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, x, x, x, x FROM n"
CHANGES = {
    "endless view": ["DROP TABLE collections", f"CREATE VIEW collections AS {ENDLESS}"],
    "view that is not used": ["CREATE VIEW more AS SELECT 1"],
    "trigger": ["CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END"],
    "trigger named as one of SQLite's": [
        "CREATE TRIGGER sqliteXz AFTER INSERT ON records BEGIN DELETE FROM records; END"
    ],
    "virtual table": ["CREATE VIRTUAL TABLE more USING fts5(words)"],
    "column": ["ALTER TABLE records ADD COLUMN more TEXT"],
    "index": ["CREATE INDEX more ON records (id)"],
    "missing index": ["DROP INDEX records_source"],
}


@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES)
def test_a_file_with_other_tables_is_refused_before_it_is_read(path, statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    before = path.read_bytes()
    for code, said in run(path, "search", "stats"):
        assert code == 1 and "other tables" in said
    for read_only in (True, False):
        with pytest.raises(StoreFormatError):
            SqliteStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_our_own_file_passes_after_a_vacuum(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
        connection.execute("ANALYZE")
        connection.execute("DROP TABLE sqlite_stat1")
    write(path)
    with SqliteStore(path) as store:
        assert store.open().count() == 20 and store.check() == 20


@pytest.mark.parametrize("embedding", [b"", b"\x00" * 7, np.full(24, np.nan, "<f4").tobytes(), "text"])
def test_vectors_that_cannot_be_ours_are_refused(path, embedding):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE contents SET embedding = ? WHERE row = 3", (embedding,))
        connection.execute("UPDATE collections SET derived = '../../../tmp'")
    with SqliteStore(path, read_only=True) as store, pytest.raises(StoreFormatError, match="damaged"):
        store.open().search_vector(RECORDS[0].embedding, 3)


# Saved arrays


def array_of(data, dtype=None):
    stream = io.BytesIO()
    np.save(stream, np.asarray(data, dtype))
    return stream.getvalue()


def sparse_search(collection, query):
    return collection.search_sparse(query, 20, field="splade")


FORGED = {
    "empty": lambda file: b"",
    "cut": lambda file: file.read_bytes()[:-9],
    "header only": lambda file: file.read_bytes()[:128],
    "noise": lambda file: os.urandom(5000),
    "other type": lambda file: array_of([["text"] * 3] * 3),
    "longer": lambda file: array_of(np.concatenate([np.load(file)] * 2)),
    "below": lambda file: array_of(np.load(file) - np.load(file).dtype.type(2**30)),
    "far above": lambda file: array_of(np.load(file) + np.load(file).dtype.type(100)),
    "reversed": lambda file: array_of(np.load(file)[::-1]),
    "pickle": lambda file: array_of(np.array([{"a": 1}] * 3, object)),
    "huge": lambda file: file.read_bytes()[:128].replace(b"(", b"(9999999999, ", 1) + bytes(64),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_arrays_do_no_harm(path, forge):
    """Arrays of the right types and ranges may answer wrongly, or are refused; nothing crashes."""
    whole = {file: file.read_bytes() for file in saved(path)}
    assert len(whole) > 15
    for file, data in whole.items():
        try:
            forged = forge(file)
        except (OverflowError, ValueError):
            continue
        file.write_bytes(forged)
        with SqliteStore(path, read_only=True) as store:
            collection = store.open()
            for ask, *given in (
                (collection.search_vector, sample_queries(1)[0], 20),
                (collection.search_text, "queue broker message", 20),
                (sparse_search, collection, RECORDS[1].sparse["splade"]),
                (collection.unit_vectors, [each.id for each in RECORDS]),
            ):
                try:
                    assert len(ask(*given)) <= 20
                except StoreFormatError as error:
                    assert ".derived" in str(error)
            assert len(collection.get([each.id for each in RECORDS])) == 10
        file.write_bytes(data)


def test_no_faiss_file_is_read_or_written(path):
    """An index.faiss beside the arrays, such as one whose lists are on disk, means nothing."""
    assert {file.suffix for file in saved(path)} == {".npy"}
    (folder,) = Path(f"{path}.derived").iterdir()
    (folder / "index.faiss").write_bytes(b"IwFl" + os.urandom(469))
    assert run(path, "search")[0][0] == 0


def test_pipes_among_saved_arrays_are_not_waited_for(path):
    for file in saved(path):
        file.unlink()
        os.mkfifo(file)
    assert run(path, "search")[0][0] == 0


def test_a_link_in_the_place_of_saved_arrays_is_not_followed(path, tmp_path):
    folder = Path(f"{path}.derived")
    theirs = tmp_path / "theirs"
    shutil.move(folder, theirs)
    (theirs / ("a" * 32)).mkdir()
    folder.symlink_to(theirs)
    before = sorted(theirs.rglob("*"))
    with SqliteStore(path) as store:
        store.open().upsert([record(f"new {number}") for number in range(1500)])
        store.open().prepare()
        store.drop("default")
    assert sorted(theirs.rglob("*")) == before


# Files of SQLite


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_links_in_the_place_of_files_of_sqlite_are_not_written_through(path, precious, suffix):
    path.with_name(path.name + suffix).symlink_to(precious)
    with pytest.raises(StoreError, match=f"{suffix} is a symbolic link"):
        write(path)
    assert precious.read_text() == PRECIOUS


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", ""])
def test_a_pipe_is_refused_and_nobody_waits_for_it(path, suffix):
    place = path.with_name(path.name + suffix)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    for code, said in run(path, "search", "stats", "doctor"):
        assert code == 1
        assert ("is not a file" if not suffix else f"s.dartboard{suffix} is a named pipe") in said


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_folder_is_refused(path, suffix):
    path.with_name(path.name + suffix).mkdir()
    with pytest.raises(StoreError, match=f"{suffix} is a folder"):
        SqliteStore(path)
