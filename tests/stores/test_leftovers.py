"""What killed processes leave behind is removed by the next writer; what somebody may own stays."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dartboard.cli import doctor
from dartboard.engine import load_settings
from dartboard.stores import files
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.stores.embedded.store_file import unfinished
from dartboard.stores.snapshot_file import PART
from dartboard.testing.samples import MANIFEST, sample_records

RECORDS = sample_records(40)
EAGER = Tuning(files_from=0)
ANY = re.compile(".*")
DAY = 24 * 3600
START = """
import os, signal, sys, time
from pathlib import Path
from unittest import mock
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.testing.samples import MANIFEST, sample_records
path, moment, end = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def reached(*_, **__):
    print("reached", flush=True)
    if end == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
    raise OSError("told to end")

records = sample_records(40)
if moment == "store":
    with mock.patch("dartboard.stores.embedded.store_file._publish", reached):
        EmbeddedStore(path)
store = EmbeddedStore(path, tuning=Tuning(files_from=0))
collection = store.open()
if moment == "snapshot":
    with mock.patch("dartboard.stores.snapshot_file.os.fsync", reached):
        collection.snapshot(path.with_name("some.snapshot"))
store.let_others_write()
if moment == "draft":
    with mock.patch("dartboard.stores.embedded.vector_index.flush_to_disk", reached):
        collection.search_vector(records[0].embedding, 3)
if moment == "stray":
    with mock.patch("dartboard.stores.embedded.derived_index._vouch", reached):
        collection.search_vector(records[0].embedding, 3)
"""
MOMENTS = ("store", "snapshot", "draft", "stray")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as store:
        store.create("default", MANIFEST).upsert(RECORDS)
    return path


def names(path):
    """Everything in the store's folder that is not there after a clean end."""
    usual = {path.name, f"{path.name}.lock", f"{path.name}.derived", f"{path.name}-wal", f"{path.name}-shm"}
    beside = [each for each in path.parent.iterdir() if each.name not in usual]
    derived = path.with_name(f"{path.name}.derived")
    return sorted(each.name for each in (*beside, *(derived.iterdir() if derived.is_dir() else ())))


def begin(path, moment, end="die"):
    target = path if moment != "store" else path.with_name("new.dartboard")
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(target), moment, end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "reached\n"
    return process


def finish(process):
    process.communicate()
    return process.returncode


def write(path):
    with EmbeddedStore(path) as store:
        (store.open() if store.collections() else store.create("default", MANIFEST)).upsert(RECORDS[:1])


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_next_writer_removes_what_a_killed_process_left(path, moment):
    assert finish(begin(path, moment)) == -signal.SIGKILL
    assert names(path), "nothing was left behind to begin with"
    target = path if moment != "store" else path.with_name("new.dartboard")
    write(target)
    assert [name for name in names(path) if not name.startswith("new.dartboard")] == []
    assert [name for name in names(path) if ".new-" in name] == []


@pytest.mark.parametrize("moment", MOMENTS[:3])
def test_what_a_living_process_is_making_stays(path, moment):
    process = begin(path, moment, "wait")
    made = names(path)
    assert made
    target = path if moment != "store" else path.with_name("new.dartboard")
    write(target)
    assert set(made) <= set(names(path))
    with EmbeddedStore(target, read_only=True) as store:
        assert store.leftovers() == []
    finish(process)
    assert [name for name in names(path) if name in made] == [], "it cleans up after itself"


def test_a_snapshot_removes_what_is_left_of_others_in_its_folder(path):
    finish(begin(path, "snapshot"))
    with EmbeddedStore(path, read_only=True) as store:
        store.open().snapshot(path.with_name("other.snapshot"))
    assert names(path) == ["other.snapshot"]


def test_a_reader_removes_nothing(path):
    finish(begin(path, "draft"))
    before = names(path)
    with EmbeddedStore(path, read_only=True, tuning=EAGER) as store:
        store.open().search_vector(RECORDS[0].embedding, 3)
    assert names(path) == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_doctor_lists_what_was_left(path, moment):
    finish(begin(path, moment))
    target = path
    if moment == "store":
        target = path.with_name("new.dartboard")
        left = next(each for each in path.parent.iterdir() if unfinished(target).fullmatch(each.name))
        parked = {each: each.read_bytes() for each in path.parent.glob(f"{left.name}*")}
        write(target)  # removes it
        for each, data in parked.items():
            each.write_bytes(data)
    found = {each.what: each for each in doctor._store(load_settings({"store": str(target)}))}["leftovers"]
    assert found.state == "note" and "next write" in found.mend
    with EmbeddedStore(target, read_only=True) as store:
        listed = store.leftovers()
    assert listed and all(one.exists() and one.name in found.found for one in listed)


def test_doctor_lists_nothing_where_nothing_was_left(path):
    assert [each.what for each in doctor._store(load_settings({"store": str(path)}))] == ["store", "contents"]


# Other machines, and files of others


def old(*paths):
    for path in paths:
        os.utime(path, (time.time() - 2 * DAY,) * 2)


def left(folder, mark):
    folder.mkdir(exist_ok=True)
    part = folder / f"x.snapshot.{'0' * 12}.part"
    part.write_bytes(b"half")
    owner = Path(f"{part}.owner")
    owner.write_bytes(mark)
    return part, owner


@pytest.mark.parametrize("mark", [b"another system", b""], ids=["another system", "not yet written"])
def test_a_mark_of_another_system_has_a_day(tmp_path, mark):
    part, owner = left(tmp_path, mark)
    assert files.leftovers(tmp_path, PART, marked=True) == []
    files.remove_leftovers(tmp_path, PART, marked=True)
    assert part.exists()
    old(owner)
    assert files.leftovers(tmp_path, PART, marked=True) == [], "it is still being written"
    old(part)
    assert files.leftovers(tmp_path, PART, marked=True) == [part]
    files.remove_leftovers(tmp_path, PART, marked=True)
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_only_age_counts(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(files.fcntl, "flock", none)
    part = tmp_path / f"x.snapshot.{'0' * 12}.part"
    with files.owned(part):
        part.write_bytes(b"half")
        assert files.leftovers(tmp_path, PART, marked=True) == []
        old(part, Path(f"{part}.owner"))
        assert files.leftovers(tmp_path, PART, marked=True) == [part]
    assert list(tmp_path.iterdir()) == []


def test_parts_of_other_programs_are_not_touched(path):
    strangers = [path.with_name(name) for name in ("film.mkv.part", f"x.{'0' * 12}.part", "x.owner")]
    for file in strangers:
        file.write_bytes(b"x")
        old(file)
    write(path)
    assert all(file.exists() for file in strangers)


def test_two_claims_of_one_name(tmp_path):
    with files.owned(tmp_path / "x"), pytest.raises(FileExistsError), files.owned(tmp_path / "x"):
        raise AssertionError("owned twice")
    assert files.leftovers(tmp_path, ANY) == []
