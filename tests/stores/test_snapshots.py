"""Snapshots that strangers made: no name is a path, nothing swells, all or nothing is restored."""

import gzip
import json

import pytest

from dartboard.errors import DartboardError, InvalidInputError, StoreFormatError
from dartboard.stores import Manifest, Record, open_store
from dartboard.stores.snapshot_file import _LONGEST_LINE, KIND, read_snapshot_file, write_snapshot_file

RECORD = Record("a", "A passage.", [1.0, 0.0])
HOSTILE = ["../../evil", "/etc/evil", "..", ".", "C:\\\\evil", "a/../../b", "~root", "a\x00b", "", "\n"]


def snapshot(path, name="docs", records=(RECORD,), **settings):
    manifest = Manifest(model="m", dimension=2, settings=settings)
    write_snapshot_file(path, name, manifest, [list(records)])
    return path


def files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_a_snapshot_are_no_paths(tmp_path, name):
    """A collection is a row: its name, and ids and sources of its records, open and make no file."""
    inside = tmp_path / "inside"
    inside.mkdir()
    record = Record("../../id", "A passage.", [1.0, 0.0], {"source": "/etc/passwd", "path": "../../x"})
    made = snapshot(inside / "s.snapshot", name, [record])
    before = files(tmp_path)
    with open_store(str(inside / "i.dartboard")) as store:
        try:
            collection = store.restore(made)
        except DartboardError as error:
            assert "name" in str(error)
            assert store.collections() == []
        else:
            assert collection.get(["../../id"])[0].metadata["source"] == "/etc/passwd"
    after = files(tmp_path)
    assert [file for file in after if file not in before and "i.dartboard" not in file] == []


def test_a_link_in_the_place_of_a_snapshot_is_replaced_and_not_followed(tmp_path):
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    link = tmp_path / "s.snapshot"
    link.symlink_to(target)
    snapshot(link)
    assert target.read_text() == "precious"
    assert not link.is_symlink() and read_snapshot_file(link)[0] == "docs"


def packed(path, *lines):
    """A file that unpacks to these lines, and the last line that belongs to them."""
    with gzip.open(path, "wb", compresslevel=9) as stream:
        for line in lines:
            for part in line:
                stream.write(part)
        stream.write(json.dumps({"records": len(lines) - 1}).encode() + b"\n")
    return path


HEAD = {
    "kind": KIND, "format": 1, "name": "docs", "model": "m", "model_name": "", "dimension": 2,
    "vectors": {}, "sparse": [], "settings": {}, "format_version": 1,
}  # fmt: skip


@pytest.mark.parametrize("place", ["head", "record"])
def test_a_line_that_swells_is_refused_before_it_is_whole(tmp_path, place):
    parts = [b" " * 2**20] * (_LONGEST_LINE // 2**20 + 1) + [b"\n"]
    lines = [parts] if place == "head" else [[json.dumps(HEAD).encode() + b"\n"], parts]
    bomb = packed(tmp_path / "bomb.snapshot", *lines)
    assert bomb.stat().st_size < 1_000_000
    with open_store(str(tmp_path / "i.dartboard")) as store:
        with pytest.raises(StoreFormatError, match="a record of more than 64 MB"):
            store.restore(bomb)
        assert store.collections() == []


@pytest.mark.parametrize("url", ["memory://", "{}/i.dartboard"])
@pytest.mark.parametrize("at", [1, 1400])
def test_one_bad_record_restores_nothing(tmp_path, url, at):
    """Also the last of many, which is found after batches were read."""
    records = [Record(f"{number:05d}", "A passage.", [1.0, 0.0]) for number in range(1500)]
    records[at] = Record("bad", "A passage.", [1.0, 0.0, 0.0])
    made = snapshot(tmp_path / "s.snapshot", records=records)
    with open_store(url.format(tmp_path)) as store:
        store.create("other", Manifest(model="m", dimension=2))
        with pytest.raises(InvalidInputError, match="dimensions"):
            store.restore(made)
        assert store.collections() == ["other"]
        assert store.create("docs", Manifest(model="m", dimension=2)).count() == 0


def test_a_snapshot_of_an_earlier_release_is_restored(tmp_path):
    """Its last line has a hash too, which nobody needs."""
    made = snapshot(tmp_path / "s.snapshot")
    lines = gzip.decompress(made.read_bytes()).splitlines(keepends=True)
    lines[-1] = json.dumps({"records": 1, "sha256": "0" * 64}).encode() + b"\n"
    made.write_bytes(gzip.compress(b"".join(lines)))
    with open_store("memory://") as store:
        assert store.restore(made).count() == 1


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04 a zip", b"ustar", b"\x80\x04\x95 a pickle", gzip.compress(b"\x80\x04K\x01."), b""],
    ids=["zip", "tar", "pickle", "packed pickle", "nothing"],
)
def test_other_archives_are_no_snapshots(tmp_path, content):
    path = tmp_path / "s.snapshot"
    path.write_bytes(content)
    with open_store(str(tmp_path / "i.dartboard")) as store, pytest.raises(StoreFormatError):
        store.restore(path)
