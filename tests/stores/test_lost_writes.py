"""Acknowledged writes that a damaged or missing log takes away are told, and nothing else is."""

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from dartboard.cli.app import main
from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores.embedded import EmbeddedStore, accept_loss
from dartboard.testing.samples import MANIFEST, sample_records

RECORDS = sample_records(50)
WRITE_AND_DIE = """
import os, signal, sys
from dartboard.stores.embedded import EmbeddedStore
from dartboard.testing.samples import MANIFEST, sample_records
records = sample_records(50)
store = EmbeddedStore(sys.argv[1])
collection = store.create("default", MANIFEST)
for start in range(0, 50, 10):
    collection.upsert(records[start : start + 10])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path):
    """A store whose writer was killed after a collection and five batches: all of them are in the log."""
    path = tmp_path / "s.dartboard"
    done = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, str(path)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return path


def log_of(path):
    return path.with_name(f"{path.name}-wal")


def frames(log):
    """Where each frame of a log begins, and how long one is (https://sqlite.org/fileformat.html#walformat)."""
    size = 24 + int.from_bytes(log[8:12])
    return range(32, len(log), size), size


def commits(log):
    """Where the last frame of each transaction begins."""
    starts, _ = frames(log)
    return [at for at in starts if int.from_bytes(log[at + 4 : at + 8])]


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def contents(path):
    """The bytes of the store's files; SQLite may make an empty log, and writes its map of the log anew."""
    files = [file for file in path.parent.iterdir() if file.suffix != ".dartboard-shm"]
    return {file.name: file.read_bytes() for file in files if file.stat().st_size}


def refused(path, lost):
    before = contents(path)
    for read_only in (True, False):
        with pytest.raises(StoreFormatError, match=rf"has lost {lost}.*doctor --accept-loss"):
            EmbeddedStore(path, read_only=read_only)
    assert contents(path) == before


def count(path):
    with EmbeddedStore(path) as store:
        return store.open().count()


def test_nothing_is_said_after_a_kill(path):
    assert count(path) == 50
    assert path.with_name(f"{path.name}.lock").read_bytes() == b"", "all is in the file now"


@pytest.mark.parametrize(("batches", "lost"), [(4, "a write"), (2, "3 writes"), (0, "5 writes")])
def test_a_flipped_bit_in_the_log(path, batches, lost):
    """The frames after the one that is damaged are whole, and SQLite drops them too."""
    log = log_of(path).read_bytes()
    _, size = frames(log)
    flip(log_of(path), commits(log)[batches] + size + 24 + 100)  # the first frame after a commit
    refused(path, lost)
    accept_loss(path)
    assert count(path) == 10 * batches
    with EmbeddedStore(path) as store:
        store.open().upsert(RECORDS)
    assert count(path) == 50


def test_a_log_that_is_cut_off(path):
    log = log_of(path).read_bytes()
    log_of(path).write_bytes(log[: commits(log)[3] + 10])
    refused(path, "3 writes")


def test_a_log_that_was_deleted(path):
    log_of(path).unlink()
    refused(path, "6 writes")
    assert accept_loss(path) == 6
    with EmbeddedStore(path) as store:
        assert store.collections() == []
    assert accept_loss(path) == 0


def test_a_log_that_was_put_back(path):
    log = log_of(path).read_bytes()
    log_of(path).unlink()
    refused(path, "6 writes")
    log_of(path).write_bytes(log)
    assert count(path) == 50


def test_a_log_without_its_file(path):
    path.unlink()
    with pytest.raises(StoreError, match=r"is gone, and its log s.dartboard-wal is still there"):
        EmbeddedStore(path)
    path.touch()
    with pytest.raises(StoreError, match=r"is empty, and its log"):
        EmbeddedStore(path)


def test_a_store_that_was_open_all_the_while_does_not_write_on(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as first:
        first.create("default", MANIFEST).upsert(RECORDS[:10])
    old = path.read_bytes()
    other = EmbeddedStore(path)
    with EmbeddedStore(path) as first:
        first.open().upsert(RECORDS[10:20])
        first.let_others_write()
        shutil.copy(f"{path}.lock", tmp_path / "noted")
    path.write_bytes(old)
    shutil.copy(tmp_path / "noted", f"{path}.lock")
    with pytest.raises(StoreFormatError, match="has lost a write"):
        other.open().upsert(RECORDS[20:])
    other.close()


def test_an_older_copy_may_replace_a_file_that_was_closed(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:10])
    shutil.copy(path, tmp_path / "backup")
    with EmbeddedStore(path) as store:
        store.open().upsert(RECORDS)
    shutil.copy(tmp_path / "backup", path)
    assert count(path) == 10


def test_another_store_in_the_place_of_one_that_was_killed(path, tmp_path):
    other = tmp_path / "other.dartboard"
    with EmbeddedStore(other) as store:
        store.create("default", MANIFEST)
    log_of(path).unlink()
    shutil.copy(other, path)
    assert count(path) == 0


def test_another_store_beside_the_log_of_one_that_was_killed(path, tmp_path):
    """SQLite would show the log's content, and move it into the file."""
    other = tmp_path / "other.dartboard"
    with EmbeddedStore(other) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:3])
    shutil.copy(other, path)
    before = contents(path)
    for work in (EmbeddedStore, accept_loss, count):
        with pytest.raises(StoreFormatError, match=r"of two stores.*Remove s.dartboard-wal and s"):
            work(path)
    assert contents(path) == before
    log_of(path).unlink()
    path.with_name(f"{path.name}-shm").unlink()
    assert count(path) == 3


@pytest.mark.parametrize("hurt", ["cut", "empty", "other", "page"])
def test_who_is_told_to_restore_a_backup_is_told_of_the_log(path, hurt):
    assert count(path) == 50
    data = path.read_bytes()
    middle = data[: len(data) // 2] + bytes(40_000) + data[len(data) // 2 + 40_000 :]
    path.write_bytes({"cut": data[:-5000], "empty": b"", "other": b"x" * 5000, "page": middle}[hurt])
    told = r"restore it from .* a backup .*remove the old log.*-wal and -shm"
    with pytest.raises(StoreFormatError, match=told):
        count(path)


@pytest.mark.parametrize("note", [b"", b"\x00" * 40, b'["a", 99]\n1\n', b"[" * 200, b'["a"]\n2563047384\n'])
def test_a_lock_file_that_says_nothing_of_use(path, note):
    """As a power cut may leave it."""
    path.with_name(f"{path.name}.lock").write_bytes(note)
    assert count(path) == 50


def test_a_note_that_is_older_than_the_file(path, tmp_path):
    """Killed, or out of power, between the commit and the note."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (path.name, f"{path.name}-wal"):
        shutil.copy(path.with_name(name), copy / name)
    noted = path.with_name(f"{path.name}.lock").read_bytes()
    with EmbeddedStore(copy / path.name) as store:
        store.open().upsert(RECORDS[:1])
    (copy / f"{path.name}.lock").write_bytes(noted)
    assert count(copy / path.name) == 50


def test_files_of_earlier_releases_begin_to_count(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:10])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE writes")
    with EmbeddedStore(path) as store:
        assert store.open().count() == 10
        store.open().upsert(RECORDS)
        assert Path(f"{path}.lock").read_bytes().startswith(b'["')
    assert count(path) == 50


def test_a_write_that_changes_nothing_is_not_counted(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:10])
        before = Path(f"{path}.lock").read_bytes()
        assert store.open().delete(["nobody"]) == 0
        assert Path(f"{path}.lock").read_bytes() == before
        store.open().configure({"a": 1})
        assert Path(f"{path}.lock").read_bytes() != before


def test_doctor_tells_and_accepts(path, capsys):
    log_of(path).unlink()
    assert main(["doctor", "--store", str(path)]) == 1
    assert "has lost 6 writes" in " ".join(capsys.readouterr().out.split())
    assert main(["search", "--store", str(path), "anything"]) != 0
    assert "doctor --accept-loss" in " ".join(capsys.readouterr().err.split())
    assert main(["doctor", "--store", str(path), "--accept-loss"]) == 0
    assert "6 acknowledged writes are given up" in " ".join(capsys.readouterr().out.split())
    assert main(["doctor", "--store", str(path), "--accept-loss"]) == 0
    assert "no acknowledged write is missing" in " ".join(capsys.readouterr().out.split())
