"""Near-copies lie where they should, say the same, and leave kernels countable."""

import numpy as np
import pytest

from dartboard.datasets import (
    Passage,
    TextDataset,
    make_clustered,
    make_query_focused,
    prepare,
    with_redundancy,
)
from dartboard.datasets.near_copies import EDITS
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset
from tests.models import WordBag

TEXT = (
    "The tower is located in the old town. It was not finished because the money ran out. "
    "Many visitors often climb it during summer."
)


@pytest.fixture
def dataset(tmp_path):
    text = TextDataset(
        name="towers",
        passages=[
            Passage("a", TEXT, "Tower"),
            Passage("b", "One short sentence only."),
            Passage("c", "Word"),
        ],
        queries={"q": "Which tower?"},
        qrels={"q": {"a": 2, "b": 0}},
        facets={"q": {"1": ["a"]}},
        kernels={"q": ["a"]},
        pools={"q": ["a", "b"]},
    )
    return prepare(text, WordBag(), cache_dir=tmp_path)


@pytest.mark.parametrize("cosine", [0.97, 0.9, 0.5])
def test_noise_puts_copies_at_the_cosine_asked_for(dataset, cosine):
    redundant = with_redundancy(dataset, copies=4, cosine=cosine)
    assert len(redundant.chunks) == 15
    by_id = {chunk.id: chunk for chunk in redundant.chunks}
    for chunk in redundant.chunks:
        base = by_id[chunk.metadata["base_id"]]
        lengths = np.linalg.norm(chunk.embedding), np.linalg.norm(base.embedding)
        expected = 1 if chunk is base else cosine
        assert chunk.embedding @ base.embedding / np.prod(lengths) == pytest.approx(expected, abs=1e-5)
        assert lengths[0] == pytest.approx(lengths[1], rel=1e-5)
        assert chunk.text == base.text


def test_truth_follows_and_kernels_stay(dataset):
    redundant = with_redundancy(dataset, copies=2)
    assert redundant.name == "towers+2@0.97"
    assert redundant.ground_truth == {"q": ["a", "a~1", "a~2"]}
    known = redundant.metadata
    assert known["qrels"] == {"q": {"a": 2, "a~1": 2, "a~2": 2, "b": 0, "b~1": 0, "b~2": 0}}
    assert known["facets"] == {"q": {"1": ["a", "a~1", "a~2"]}}
    assert known["pools"] == {"q": ["a", "a~1", "a~2", "b", "b~1", "b~2"]}
    assert known["kernels"] == {"q": ["a"]}
    assert known["redundancy"] == {"copies": 2, "seed": 0, "cosine": 0.97}
    assert (redundant.queries, redundant.query_ids) == (dataset.queries, dataset.query_ids)
    assert [chunk.id for chunk in dataset.chunks] == ["a", "b", "c"]
    assert dataset.ground_truth == {"q": ["a"]}


def test_edits_change_the_text_and_are_embedded(dataset):
    model = WordBag()
    redundant = with_redundancy(dataset, copies=5, edits=list(EDITS), model=model)
    assert redundant.name == "towers+5edits"
    copies = [chunk for chunk in redundant.chunks if "copy" in chunk.metadata]
    assert [c.metadata["edit"] for c in copies[:5]] == [
        "truncate",
        "shuffle",
        "boilerplate",
        "revise",
        "truncate",
    ]
    for chunk in copies:
        base = next(one for one in dataset.chunks if one.id == chunk.metadata["base_id"])
        assert chunk.text != base.text
        title = f"{chunk.metadata['title']} " if chunk.metadata["title"] else ""
        np.testing.assert_array_equal(chunk.embedding, model.encode_documents([title + chunk.text])[0])


def test_each_edit_does_what_it_says():
    rng = np.random.default_rng(0)
    truncated = EDITS["truncate"](TEXT, rng)
    assert TEXT.startswith(truncated)
    assert 0.5 < len(truncated) / len(TEXT) < 1
    shuffled = EDITS["shuffle"](TEXT, rng)
    assert shuffled != TEXT
    assert sorted(shuffled.split()) == sorted(TEXT.split())
    assert TEXT in EDITS["boilerplate"](TEXT, rng)
    revised = EDITS["revise"](TEXT, rng)
    assert 0 < len(set(TEXT.split()) - set(revised.split())) < 12
    assert EDITS["revise"]("Xyz.", rng) == "As noted before: Xyz."
    for _ in range(50):
        assert EDITS["shuffle"]("One. Two.", rng) == "Two. One."


def test_a_seed_gives_one_result(dataset):
    def vectors(seed):
        return np.stack([chunk.embedding for chunk in with_redundancy(dataset, seed=seed).chunks])

    np.testing.assert_array_equal(vectors(1), vectors(1))
    assert not np.allclose(vectors(1), vectors(2))


def test_copies_of_near_duplicates_keep_their_base():
    made = make_query_focused()
    redundant = with_redundancy(made, copies=1)
    bases = {chunk.id: chunk.metadata["base_id"] for chunk in made.chunks}
    for chunk in redundant.chunks:
        assert chunk.metadata["base_id"] == bases[chunk.id.removesuffix("~1")]


def test_plain_data_sets_get_base_ids():
    plain = Dataset("plain", [Chunk("a", "A text", np.ones(3))], ["q"], {"q": ["a"]})
    redundant = with_redundancy(plain, copies=1)
    assert [chunk.metadata["base_id"] for chunk in redundant.chunks] == ["a", "a"]
    assert redundant.ground_truth == {"q": ["a", "a~1"]}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"copies": 0}, "copies must be >= 1"),
        ({"cosine": 1.0}, "cosine must be between 0 and 1"),
        ({"cosine": 0.9, "edits": ["revise"]}, "mutually exclusive"),
        ({"edits": ["rewrite"]}, "edits must be some of truncate, .*rewrite"),
        ({"edits": []}, "got none"),
        ({"edits": ["revise"]}, "give the model that embedded the data set"),
    ],
)
def test_what_cannot_be_made_is_refused(dataset, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        with_redundancy(dataset, **options)


def test_one_dimension_has_no_neighbours():
    plain = Dataset("plain", [Chunk("a", "A text", np.ones(1))], ["q"], {"q": ["a"]})
    with pytest.raises(ConfigError, match=r"two dimensions"):
        with_redundancy(plain)


def test_copies_of_copies_have_ids_of_their_own():
    once = with_redundancy(make_clustered(), copies=1)
    twice = with_redundancy(once, copies=1)
    ids = [chunk.id for chunk in twice.chunks]
    assert len(set(ids)) == len(ids) == 2 * len(once.chunks)
    assert {chunk.metadata["base_id"] for chunk in twice.chunks} == {
        chunk.metadata["base_id"] for chunk in once.chunks
    }
