"""``dartboard doctor`` on stores: what is damaged, what cannot be written, what only a program can open."""

from importlib.metadata import metadata

import pytest

from dartboard.cli import doctor
from dartboard.embeddings import default_model
from dartboard.engine import Engine, load_settings
from dartboard.retrievers import MultiVectorRetriever, Part
from dartboard.retrievers.multi_vector import whole_text
from dartboard.stores import Record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "d.dartboard"


def filled(path, **options):
    model = default_model()
    with Engine.open(str(path), model=model, **options) as engine:
        record = Record("a", "Keys are rotated monthly.", model.encode_documents(["keys"])[0])
        engine.create().upsert(engine.retriever.index([record]))


def findings(path):
    found = doctor._store(load_settings({"store": str(path)}))
    return {finding.what: finding for finding in found}


def test_a_sound_store(path):
    filled(path)
    found = findings(path)
    assert [finding.state for finding in found.values()] == ["ok", "ok"]
    assert "has 1 chunk;" in found["store"].found
    assert found["contents"].found == "all of the file is sound, 1 chunk in all collections"


def test_a_damaged_file_is_found(path):
    filled(path)
    data = bytearray(path.read_bytes())
    data[5 * 16384 : 6 * 16384] = bytes(16384)  # a page of a table
    path.write_bytes(data)
    found = findings(path)["contents"]
    assert found.state == "wrong" and "damaged" in found.found and "snapshot" in found.mend


def test_a_retriever_that_only_a_program_can_make_is_no_damage(path):
    model = default_model()
    filled(path, retriever=MultiVectorRetriever(model, {"whole": Part(whole_text)}, normalise="minmax"))
    found = findings(path)
    assert [finding.state for finding in found.values()] == ["ok", "ok"]
    assert "its model fits; to search" in found["store"].found and "retriever=" in found["store"].found


def test_a_file_that_can_only_be_read(path, monkeypatch):
    filled(path)
    monkeypatch.setattr(doctor, "_no_appending", lambda path: "Permission denied")
    states = [(f.what, f.state) for f in doctor._store(load_settings({"store": str(path)}))]
    assert states == [("store", "wrong"), ("store", "ok"), ("contents", "ok")]


def test_trying_to_append_changes_nothing(path):
    filled(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert doctor._no_appending(path) == ""
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert doctor._no_appending(path.parent) == "Is a directory"


def test_every_extra_for_users_is_looked_at():
    found = {finding.what.removeprefix("extra ") for finding in doctor._installation()}
    declared = set(metadata("dartboard").get_all("Provides-Extra"))
    assert declared - {"site", "bench", "peers", "dev"} == found - {"dartboard"}
