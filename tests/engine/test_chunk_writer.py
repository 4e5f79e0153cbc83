"""Batches on their way: one order of changes, little under way, and what is ready is not lost."""

import pytest

from dartboard.engine import Engine, index_paths
from dartboard.errors import DartboardError, ModelError
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag


class Slow:
    """An encoder whose lists are ready when the test says so."""

    room = 3

    def __init__(self):
        self.model = WordBag()
        self.begun = []
        self.ready = set()
        self.broken = None
        self.most = 0
        self.taken = 0

    def begin(self, texts):
        self.begun.append(texts)
        self.most = max(self.most, len(self.begun) - self.taken)
        return _List(self, len(self.begun) - 1)


class _List:
    def __init__(self, encoder, number):
        self.encoder, self.number = encoder, number

    def done(self):
        return self.number in self.encoder.ready

    def result(self):
        if self.number == self.encoder.broken:
            raise ModelError("this list cannot be encoded")
        self.encoder.taken += 1
        return self.encoder.model.encode_documents(self.encoder.begun[self.number])


@pytest.fixture
def docs(tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text(f"rule number {number}")
    return tmp_path


def run(store, docs, encoder, listen=lambda progress: None):
    engine = Engine(store, model=WordBag(), retriever="dense")
    return index_paths(engine, docs, batch_size=2, encoder=encoder, listen=listen)


def kept(store):
    return [record.text for batch in store.open().iterate() for record in batch]


def test_as_much_is_under_way_as_there_is_room_for(docs):
    encoder, store = Slow(), MemoryStore()
    assert run(store, docs, encoder).chunks == 10
    assert encoder.most == encoder.room and len(encoder.begun) == encoder.taken == 5
    alone = MemoryStore()
    run(alone, docs, None)
    assert kept(store) == kept(alone)


def test_what_is_ready_survives_an_interruption_and_the_next_run_goes_on(docs):
    encoder, store = Slow(), MemoryStore()
    encoder.ready = {2}

    def listen(progress):
        if progress.chunks == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(store, docs, encoder, listen)
    assert kept(store) == [f"rule number {number}" for number in (0, 1, 4, 5)]
    assert run(store, docs, Slow()).encoded == 6 and len(kept(store)) == 10


def test_an_error_loses_nothing_that_came_before_or_is_ready(docs):
    encoder, store = Slow(), MemoryStore()
    encoder.broken, encoder.ready = 1, {1, 2}
    with pytest.raises(DartboardError, match="this list cannot be encoded"):
        run(store, docs, encoder)
    assert kept(store) == [f"rule number {number}" for number in (0, 1, 4, 5)]


def test_old_chunks_go_only_after_the_new_ones_are_kept(docs):
    store = MemoryStore()
    run(store, docs, None)
    for number in range(10):
        (docs / f"{number}.txt").write_text(f"rule number {number} was changed")
    encoder = Slow()
    encoder.ready = {1, 2}
    encoder.broken = 0
    with pytest.raises(ModelError):
        run(store, docs, encoder)
    texts = kept(store)
    assert all(f"rule number {number}" in texts for number in range(10))
    report = run(store, docs, Slow())
    assert report.changed == 10 and sorted(kept(store)) == sorted(
        f"rule number {number} was changed" for number in range(10)
    )
