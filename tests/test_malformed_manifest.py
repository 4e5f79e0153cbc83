"""A manifest that somebody else wrote: a setting of another type is an error that names it, at every door."""

import json
import sqlite3
from contextlib import closing

import pytest

from dartboard.cli import main
from dartboard.errors import StoreFormatError
from dartboard.stores import Manifest, Record
from dartboard.stores.manifest import manifest_from_json, manifest_to_json
from dartboard.stores.memory import MemoryStore
from dartboard.stores.snapshot_file import write_snapshot_file

MALFORMED = [
    ("retrievers", "x"),
    ("retrievers", {"dense": 5}),
    ("fields", 5),
    ("fields", {"vectors": "abc"}),
    ("fields", {"vectors": [[]]}),
    ("chunking", 5),
    ("chunking", "sentences"),
    ("chunking", {"size": "256"}),
    ("chunking", {"size": 256.5}),
    ("similarity_levels", 5),
    ("similarity_levels", {"unrelated": 0.1}),
    ("similarity_levels", {"unrelated": "a", "related": 0.5}),
    ("calibration", 5),
    ("calibration", [1]),
    ("model", 5),
    ("model", ["default"]),
    ("retriever", {"dense": 1}),
    ("root", None),
    ("root", 5),
    ("lexical", 5),
    ("lexical", {"k1": "high"}),
    ("lexical", {"language": 5}),
    ("hnsw", 5),
]


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An index, and documents that have changed since."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Soup\n\nSoup is served on Fridays.\n")
    path = tmp_path / "s.dartboard"
    assert main(["index", "docs", "--store", str(path)]) == 0
    (tmp_path / "docs" / "b.md").write_text("# Tea\n\nTea is served at five.\n")
    return path


def forge(path, setting, value):
    """Change a stored setting."""
    with closing(sqlite3.connect(path)) as connection, connection:
        (manifest,) = connection.execute("SELECT manifest FROM collections").fetchone()
        stored = json.loads(manifest)
        stored["settings"][setting] = value
        connection.execute("UPDATE collections SET manifest = ?", (json.dumps(stored),))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("retrievers", "x"), ("fields", 5), ("chunking", 5), ("similarity_levels", [1]), ("calibration", "x")],
)
def test_every_command_names_the_setting(path, capsys, setting, value):
    forge(path, setting, value)
    for command in (["search", "soup"], ["index", "docs"], ["doctor"]):
        capsys.readouterr()
        assert main([*command, "--store", str(path)]) == 1
        said = capsys.readouterr()
        assert f"setting '{setting}' is damaged" in " ".join((said.out + said.err).split())


@pytest.mark.parametrize(("setting", "value"), MALFORMED)
def test_snapshots_are_checked_the_same_way(tmp_path, setting, value):
    manifest = Manifest(model="m", dimension=2, settings={setting: value})
    write_snapshot_file(tmp_path / "s", "docs", manifest, [[Record("a", "A passage.", [1.0, 0.0])]])
    with pytest.raises(StoreFormatError, match=rf"setting '{setting}' is damaged.*expected .*Index again"):
        MemoryStore().restore(tmp_path / "s")


@pytest.mark.parametrize(
    "change", [{"settings": 5}, {"settings": None}, {"model": 5}, {"model_name": []}, {"dimension": 2.5}]
)
def test_the_rest_of_a_manifest(change):
    stored = manifest_to_json(Manifest(model="m", dimension=2)) | change
    with pytest.raises(StoreFormatError, match=f"{next(iter(change))}.* is "):
        manifest_from_json(stored)


def test_unknown_settings_are_kept():
    stored = manifest_to_json(Manifest(model="m", dimension=2, settings={"of a later release": [1]}))
    assert manifest_from_json(stored).settings == {"of a later release": [1]}
