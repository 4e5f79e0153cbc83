"""One state of a collection for several calls, whoever writes meanwhile."""

import numpy as np
import pytest

from dartboard.errors import StoreError
from dartboard.stores import Manifest, Record, open_store, parse_filter
from dartboard.stores.base import Collection
from dartboard.stores.memory import MemoryStore
from dartboard.stores.states import on_one_state

RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((40, 8)).astype(np.float32)


def records(word="old", count=40):
    return [Record(f"r{n:02d}", f"{word} passage {n}", VECTORS[n], {"n": n}) for n in range(count)]


@pytest.fixture(params=["small", "with files"])
def collection(request, tmp_path):
    from dartboard.stores.embedded.store import EmbeddedStore
    from dartboard.stores.embedded.tuning import Tuning

    tuning = Tuning(files_from=1000 if request.param == "small" else 1)
    with EmbeddedStore(tmp_path / "a.dartboard", tuning=tuning) as store:
        made = store.create("default", Manifest(model="m", dimension=8))
        made.upsert(records())
        yield made


def test_all_answers_belong_to_one_state(collection):
    def work(held):
        assert isinstance(held, Collection)
        first = held.search_text("old", 40)
        collection.upsert(records("new", 20))
        collection.delete(["r39"])
        assert held.search_text("old", 40) == first and not held.search_text("new", 40)
        assert {record.text.split()[0] for record in held.get([hit.id for hit in first])} == {"old"}
        assert held.count() == 40 and held.count(parse_filter("n = 39")) == 1
        assert len(held.search_vector(VECTORS[39], 40)) == 40
        assert sum(map(len, held.iterate(batch_size=7))) == 40
        return held

    held = collection.on_one_state(work)
    assert collection.count() == 39 and len(collection.search_text("new", 40)) == 20
    for change in (
        lambda: held.upsert(records()),
        lambda: held.delete(["r01"]),
        lambda: held.configure({}),
        held.stats,
    ):
        with pytest.raises(StoreError, match="held still"):
            change()


def test_the_work_begins_anew_where_another_search_went_on_to_a_newer_state(collection):
    seen = []

    def work(held):
        seen.append(held.count())
        if len(seen) < 3:
            collection.upsert([Record(f"more{len(seen)}", "more", VECTORS[0])])
            collection.search_vector(VECTORS[0], 3)
        return len(held.search_vector(VECTORS[0], 100))

    assert collection.on_one_state(work) == 42
    assert seen == [40, 41, 42]


def test_it_ends_however_often_others_go_on(collection):
    seen = []

    def work(held):
        seen.append(held.count())
        collection.upsert([Record(f"more{len(seen)}", "more", VECTORS[0])])
        collection.search_vector(VECTORS[0], 3)
        collection.search_text("more", 3)
        return len(held.search_vector(VECTORS[0], 100)), len(held.search_text("more", 100))

    assert collection.on_one_state(work) == (44, 4)
    assert seen == [40, 41, 42, 43, 44]
    assert collection.count() == 45 and len(collection.search_text("more", 100)) == 5


def test_directions_are_the_unit_vectors_of_what_exists(collection):
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    ids, found = collection.directions(["r07", "nobody", "r00", "r39"])
    assert ids == ["r07", "r00", "r39"]
    np.testing.assert_allclose(found, units[[7, 0, 39]], atol=1e-6)
    collection.upsert([Record("r00", "replaced", VECTORS[1]), Record("new", "new", VECTORS[2])])
    collection.delete(["r07"])
    ids, found = collection.directions(["new", "r07", "r39", "r00"])
    assert ids == ["new", "r39", "r00"]
    np.testing.assert_allclose(found, units[[2, 39, 1]], atol=1e-6)
    ids, found = collection.directions([])
    assert ids == [] and len(found) == 0


def test_damage_found_by_directions_is_mended(tmp_path):
    from dartboard.stores.embedded.store import EmbeddedStore
    from dartboard.stores.embedded.tuning import Tuning

    path = tmp_path / "a.dartboard"
    with EmbeddedStore(path, tuning=Tuning(files_from=1)) as store:
        store.create("default", Manifest(model="m", dimension=8)).upsert(records())
    (matrix,) = path.with_name(f"{path.name}.derived").rglob("vectors.f32")
    data = bytearray(matrix.read_bytes())
    data[5] ^= 255
    matrix.write_bytes(data)
    with EmbeddedStore(path, tuning=Tuning(files_from=1)) as store:
        _, found = store.open("default").directions(["r00"])
        np.testing.assert_allclose(found[0], VECTORS[0] / np.linalg.norm(VECTORS[0]), atol=1e-6)


def test_a_store_that_cannot_hold_a_state_answers_as_it_comes():
    made = MemoryStore().create("default", Manifest(model="m", dimension=8))
    assert on_one_state(made, lambda held: held) is made


def test_a_store_that_can_hands_out_another(tmp_path):
    with open_store(str(tmp_path / "a.dartboard")) as store:
        made = store.create("default", Manifest(model="m", dimension=8))
        assert on_one_state(made, lambda held: held is not made and held.name == made.name)
        assert on_one_state(made, lambda held: on_one_state(held, lambda inner: inner is held))
