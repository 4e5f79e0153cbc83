"""A small index and small documents for the tests of all frameworks."""

import json
import threading

import numpy as np

from tests import tea
from tests.models import WordBag

NOTED = {
    "rank",
    "score",
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
    "relevance",
    "vector_source",
    "query_model",
}

UNUSABLE = [
    ([1.0], "'d2'.* has 1 dimensions where that of document 'd0' has 6"),
    ([float("nan")] * 6, "'d2'.* NaN"),
    ([float("inf")] * 6, "'d2'.* infinity"),
    ([0.0] * 6, "'d2'.* zeros"),
    ([], "'d2'.* at least one number"),
]
"""Vectors that the document d2 cannot have beside those of :func:`cloud`, and what is said of them."""


def filled(store=None, **options):
    """An engine over the sentences on tea whose scores are cosines."""
    return tea.filled(store, **{"retriever": "dense"} | options)


def check_notes(notes):
    """Every note is whole, plain JSON, and they add up."""
    for rank, note in enumerate(notes, start=1):
        assert set(note) >= NOTED and note["rank"] == rank
        assert json.loads(json.dumps(note, allow_nan=False)) == note
        assert note["score"] == note["similarity"]
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
