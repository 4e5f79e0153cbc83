"""Chunks of one document, merged: its text once, in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.context.merge import merge
from dartboard.ingest import ChunkingConfig, chunk
from dartboard.ingest.readers import read_bytes
from dartboard.types import Chunk
from tests.examples import examples

PARTS = ["tea", "grows", "on", "hills.", "It", "is\n\nserved", "", "at", "five,", "Ünd", "kalt!"]
WORDS = st.lists(st.sampled_from(PARTS), min_size=1)


def chunks_of(text, *, name="tea.txt", **sizes):
    (document,) = read_bytes(text.encode(), name)
    pieces = chunk(document, ChunkingConfig(**sizes), count_tokens=lambda part: len(part.split()))
    return [Chunk(piece.id, piece.text, np.ones(2), piece.metadata) for piece in pieces]


def squeezed(text):
    return "".join(text.split())


@examples(60)
@given(
    words=WORDS,
    method=st.sampled_from(["tokens", "sentences"]),
    size=st.integers(1, 9),
    overlap=st.integers(0, 8),
    seed=st.integers(0, 9),
)
def test_all_chunks_of_a_document_are_the_document(words, method, size, overlap, seed):
    text = " ".join(words)
    if not text.strip():
        return
    chunks = chunks_of(text, method=method, size=size, overlap=min(overlap, size - 1), smallest=0)
    order = np.random.default_rng(seed).permutation(len(chunks))
    (merged,) = merge([chunks[at] for at in order])
    assert squeezed(merged.text) == squeezed(text)
    assert [order[at] for at in merged.chunks] == list(range(len(chunks)))


def test_what_is_not_adjacent_stays_apart_in_the_order_given():
    chunks = chunks_of(" ".join(f"word{n}" for n in range(40)), method="tokens", size=8, overlap=2)
    merged = merge([chunks[4], chunks[0], chunks[3]])
    assert [one.chunks for one in merged] == [(2, 0), (1,)]
    assert merged[0].text.split() == [f"word{n}" for n in range(18, 32)]


def test_the_repeated_head_of_a_class_is_dropped():
    code = "class Tea:\n" + "".join(
        f"    def step{n}(self):\n        return self.leaves + {n}\n" for n in range(6)
    )
    chunks = chunks_of(code, name="tea.py", size=12, overlap=0)
    assert len(chunks) > 2 and sum("class Tea" in one.text for one in chunks) > 1
    (merged,) = merge(chunks)
    assert merged.text.count("class Tea") == 1
    assert squeezed(merged.text) == squeezed(code)


PAGE = """# Plans

| plan | price |
|---|---|
| basic | five euros a month |
| large | nine euros a month |

```python
def price(plan):
    if plan == "basic":
        return 5

    return 9
```

1. First choose a plan
   - nested under the first
2. Then pay for it. It can be changed. At any time.
"""


@pytest.mark.parametrize("size", [4, 7, 12, 20])
@pytest.mark.parametrize("name", ["plans.md", "plans.txt"])
def test_lines_and_indentation_stay(name, size):
    (merged,) = merge(chunks_of(PAGE, name=name, size=size, overlap=0, smallest=0))
    assert merged.text == PAGE.strip()


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"source": "tea.md"},
        {"source": "tea.md", "position": 1, "start": 5, "end": 99},  # longer than its text
        {"source": "tea.md", "position": "1", "start": 0, "end": 4},
        {"source": ["tea.md"], "position": 1, "start": 0, "end": 4},
        {"source": "tea.md", "position": True, "start": 0, "end": 4},
    ],
)
def test_chunks_of_unknown_place_stay_as_they_are(metadata):
    first = Chunk("a", "tea is", np.ones(2), {"source": "tea.md", "position": 0, "start": 0, "end": 6})
    other = Chunk("b", "tea is served", np.ones(2), metadata)
    assert [one.text for one in merge([other, first])] == ["tea is served", "tea is"]


def test_offsets_that_mean_something_else_lose_no_text():
    def part(id, position, start, end, text):
        where = {"source": "talk.mp3", "position": position, "start": start, "end": end}
        return Chunk(id, text, np.ones(2), where)

    seconds = [part("a", 0, 0, 7, "Rotate the keys."), part("b", 1, 7, 12, "Both are accepted for a day.")]
    assert [one.text for one in merge(seconds)] == [one.text for one in seconds]
    versions = [part("v1", 0, 0, 10, "five euros"), part("v2", 0, 0, 10, "nine euros")]
    assert [one.text for one in merge(versions)] == ["five euros", "nine euros"]
    pages = [part("p1", 0, 0, 10, "first page"), part("p2", 1, 0, 11, "second page")]
    assert [one.text for one in merge(pages)] == ["first page", "second page"]


def test_documents_and_versions_are_not_mixed():
    def part(id, **metadata):
        return Chunk(
            id, "tea is", np.ones(2), {"source": "t", "start": 0, "end": 6, "position": 0} | metadata
        )

    versions = [part("a", document_hash="1"), part("b", document_hash="2"), part("c", row="7")]
    assert len(merge(versions)) == 3
    assert len(merge([part("a"), part("b")])) == 1
