"""A small index and small documents for the tests of all frameworks."""

import json
import threading

import numpy as np

from dartboard.engine import Engine
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag

TEXTS = {
    "a": "tea grows on hills",
    "b": "tea grows on steep hills",
    "c": "tea grows on green hills",
    "d": "tea is dried and rolled",
    "e": "coffee grows on hills too",
    "f": "coffee is roasted dark",
    "g": "black tea is oxidised",
    "h": "green tea is steamed",
    "i": "water boils at sea level",
    "j": "cups are made of clay",
}
QUERY = "how does tea grow on hills"
NOTED = {
    "rank",
    "similarity",
    "gain",
    "coverage",
    "stands_for",
    "stands_for_count",
    "bound",
    "sigma",
    "sigma_source",
    "method",
    "candidates",
    "vector_source",
    "query_model",
}


def filled(store=None, model=None, **options):
    """An engine over the texts, in memory unless a store is given."""
    engine = Engine(store or MemoryStore(), model=model or WordBag(), retriever="dense", **options)
    vectors = engine.model.encode_documents(list(TEXTS.values()))
    records = [
        Record(id, text, vector, {"source": f"{id in 'abc'}.md", "number": number, "tags": ["tea", id]})
        for number, ((id, text), vector) in enumerate(zip(TEXTS.items(), vectors, strict=True))
    ]
    engine.create().upsert(records)
    return engine


def check_notes(notes):
    """Every note is whole, plain JSON, and they add up."""
    for rank, note in enumerate(notes, start=1):
        assert set(note) >= NOTED and note["rank"] == rank
        assert json.loads(json.dumps(note, allow_nan=False)) == note
        assert note["stands_for_count"] == len(note["stands_for"]) and note["vector_source"]
    gains = [note["gain"] for note in notes]
    assert np.allclose(np.cumsum(gains), [note["coverage"] for note in notes])


class Patient(WordBag):
    """A model that waits until the event loop has done something else: it never does if it is blocked."""

    def __init__(self):
        super().__init__()
        self.free = threading.Event()

    def encode(self, texts, batch_size=32):
        assert self.free.wait(30), "the event loop was blocked"
        return super().encode(texts, batch_size)


async def while_free(patient, work):
    """What ``work`` gives, and the model is let go from the loop while it runs."""
    import asyncio

    async def let_go():
        await asyncio.sleep(0)
        patient.free.set()

    found, _ = await asyncio.gather(work, let_go())
    return found


def cloud(seed, count, dim=6):
    """Vectors around a few centres, with exact copies among them."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((3, dim))
    vectors = centres[chance.integers(3, size=count)] + 0.3 * chance.standard_normal((count, dim))
    copies = chance.integers(count, size=count // 4)
    vectors[copies] = vectors[0]
    return vectors, chance.standard_normal(dim)
