"""What somebody put beside an index: links are not written through, pipes are not waited for."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from dartboard.errors import StoreError
from dartboard.stores.embedded import EmbeddedStore, Tuning, accept_loss
from dartboard.stores.files import leftovers
from dartboard.stores.snapshot_file import PART
from dartboard.testing.samples import MANIFEST, sample_records

RECORDS = sample_records(20)
EAGER = Tuning(files_from=0)
PRECIOUS = "precious\n" * 1000
OPEN_AND_SEARCH = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from dartboard.cli import main
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.testing.samples import sample_records
path, *commands = sys.argv[1:]
def search():
    try:
        with EmbeddedStore(path, read_only=True, tuning=Tuning(files_from=0)) as store:
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
def path(tmp_path):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.create("default", MANIFEST).upsert(RECORDS[:10])
    return path


@pytest.fixture
def precious(tmp_path):
    file = tmp_path / "precious.txt"
    file.write_text(PRECIOUS)
    return file


def lock_of(path):
    return path.with_name(f"{path.name}.lock")


def write(path):
    with EmbeddedStore(path, tuning=EAGER) as store:
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


def test_a_lock_that_is_a_link_is_not_written_through(path, precious):
    lock_of(path).unlink()
    lock_of(path).symlink_to(precious)
    for work in (write, accept_loss):
        with pytest.raises(StoreError, match=r"s\.dartboard\.lock is a symbolic link.*Remove it"):
            work(path)
    assert precious.read_text() == PRECIOUS
    lock_of(path).unlink()
    write(path)


def test_a_lock_that_is_a_link_to_nothing_makes_no_file(path, tmp_path):
    lock_of(path).unlink()
    lock_of(path).symlink_to(tmp_path / "new")
    with pytest.raises(StoreError, match="symbolic link"):
        write(path)
    assert not (tmp_path / "new").exists()


def test_a_link_that_comes_while_a_store_is_open(path, precious):
    with EmbeddedStore(path) as store:
        lock_of(path).unlink()
        lock_of(path).symlink_to(precious)
        with pytest.raises(StoreError, match="symbolic link"):
            store.open().upsert(RECORDS[10:])
    assert precious.read_text() == PRECIOUS


@pytest.mark.parametrize("content", [PRECIOUS, "x", '["a", 1]\n12\nand more', "\x00" * 500])
def test_a_lock_file_that_holds_something_else_is_not_written_over(path, tmp_path, content):
    """As a hard link to another file does."""
    (tmp_path / "other").write_text(content)
    lock_of(path).unlink()
    os.link(tmp_path / "other", lock_of(path))
    with pytest.raises(StoreError, match=r"holds other data.*Move it away"):
        write(path)
    assert (tmp_path / "other").read_text() == content
    with EmbeddedStore(path, read_only=True) as store:
        assert store.open().count() == 10


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, b'["0123456789abcdef", 1]\n4\n77\n'])
def test_a_note_that_a_kill_or_a_power_cut_left_is_written_over(path, content):
    lock_of(path).write_bytes(content)
    write(path)
    assert lock_of(path).read_bytes() == b""


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_links_in_the_place_of_files_of_sqlite_are_not_written_through(path, precious, suffix):
    path.with_name(path.name + suffix).symlink_to(precious)
    for work in (write, accept_loss):
        with pytest.raises(StoreError, match=rf"s\.dartboard{suffix} is a symbolic link.*Remove it"):
            work(path)
    assert precious.read_text() == PRECIOUS


def test_a_link_in_the_place_of_derived_files_is_not_followed(path, tmp_path, caplog):
    theirs = tmp_path / "theirs"
    index = theirs / "1-bm-0123456789abcdef"
    index.mkdir(parents=True)
    shutil.rmtree(f"{path}.derived")
    path.with_name(f"{path.name}.derived").symlink_to(theirs)
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.open().upsert(RECORDS[10:])
        assert store.open().search_vector(RECORDS[0].embedding, 1)
        assert store.leftovers() == []
    assert list(theirs.iterdir()) == [index]
    assert "it is a symbolic link; remove it" in caplog.text


@pytest.mark.parametrize("suffix", [".lock", "-wal", "-shm", "-journal", ""])
def test_a_pipe_is_refused_and_nobody_waits_for_it(path, suffix):
    place = path.with_name(path.name + suffix)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    for code, said in run(path, "search", "stats", "doctor"):
        assert code == 1
        assert ("is not a file" if not suffix else f"s.dartboard{suffix} is a named pipe") in said


@pytest.mark.parametrize("suffix", [".lock", "-wal", "-shm", "-journal"])
def test_a_folder_is_refused(path, suffix):
    path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.with_name(path.name + suffix).mkdir()
    with pytest.raises(StoreError, match=rf"s\.dartboard{suffix} is a folder.*Remove it"):
        EmbeddedStore(path)


def test_pipes_among_derived_files_are_not_waited_for(path):
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.open().search_text("queue", 3)
    files = [file for file in path.with_name(f"{path.name}.derived").rglob("*") if file.is_file()]
    assert len(files) > 4
    for file in files:
        file.unlink()
        os.mkfifo(file)
    assert run(path, "search")[0][0] == 0


def test_a_pipe_among_the_arrays_of_an_index_is_not_waited_for(tmp_path):
    """Also where its manifest says that it has no bytes."""
    code = """
import json, os, sys, zlib
from pathlib import Path
from dartboard.errors import StoreFormatError
from dartboard.lexical.bm25 import BM25Index
folder = Path(sys.argv[1])
BM25Index.build(["a queue", "a cache"]).save(folder)
body = json.loads((folder / "index.json").read_text())
body.pop("crc32")
for entry in body["files"].values():
    entry["bytes"] = 0
    (folder / entry["file"]).unlink()
    os.mkfifo(folder / entry["file"])
sum = zlib.crc32(json.dumps(body, sort_keys=True).encode())
(folder / "index.json").write_text(json.dumps({**body, "crc32": sum}))
try:
    BM25Index.load(folder)
except StoreFormatError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "index")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "is not a regular file" in done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_marks_of_leftovers_that_are_no_files_are_left_alone(path, tmp_path, precious, kind):
    part = tmp_path / "a.aaaaaaaaaaaa.part"
    mark = part.with_name(f"{part.name}.owner")
    part.write_text("theirs")
    os.utime(part, (0, 0))
    if kind == "pipe":
        os.mkfifo(mark)
    elif kind == "link":
        mark.symlink_to(precious)
    else:
        mark.mkdir()
    ((_, said),) = run(path, "doctor")
    assert "Traceback" not in said and part.name not in said
    write(path)
    assert part.read_text() == "theirs" and mark.is_symlink() == (kind == "link")
    assert precious.read_text() == PRECIOUS


def test_the_age_of_a_link_is_its_own(tmp_path):
    """What it leads to may be a whole disk, and is not walked."""
    (tmp_path / "old").mkdir()
    os.utime(tmp_path / "old", (0, 0))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.aaaaaaaaaaaa.part").symlink_to(tmp_path / "old")
    assert leftovers(folder, PART) == []
