"""What a store refuses at its door."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.stores import Manifest, Record, SparseVector, VectorField
from dartboard.stores.checks import check_query_vector


def record(**changes):
    return Record(**({"id": "a", "text": "some text", "embedding": [1.0, 0.0]} | changes))


def test_a_record_is_float32_and_a_chunk():
    made = record(
        metadata={"year": 2020, "tags": ["x", 1, None], "deep": {"a": [True]}}, vectors={"v": [1, 2]}
    )
    assert made.embedding.dtype == made.vectors["v"].dtype == np.float32
    assert made.chunk.id == "a" and made.chunk.metadata["year"] == 2020


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": ""}, "ID cannot be empty"),
        ({"text": "nul \x00"}, "U\\+0000"),
        ({"text": "half \ud800"}, "not valid Unicode"),
        ({"metadata": {"a": ["\udfff"]}}, "not valid Unicode"),
        ({"metadata": {"\x00": 1}}, "U\\+0000"),
        ({"embedding": [np.nan, 1]}, "NaN"),
        ({"embedding": np.array([1e60, 1.0])}, "embedding of chunk 'a' does not fit into float32"),
        ({"embedding": np.array([1e-60, 0.0])}, "embedding of chunk 'a' does not fit into float32"),
        ({"vectors": {"v": [1e39, 1.0]}}, "vector 'v' of chunk 'a' does not fit into float32"),
        ({"vectors": {"v": [0.0, 0.0]}}, "vector 'v' of chunk 'a' is all zeros"),
        ({"metadata": {"a": float("inf")}}, "finite"),
        ({"metadata": {"a": 2**60}}, "within"),
        ({"metadata": {"": 1}}, "non-empty"),
        ({"metadata": {"a": {1, 2}}}, "set is not JSON"),
        ({"metadata": {"a": "\x00"}}, "U\\+0000"),
        ({"metadata": [1]}, "must be a dict"),
        ({"blobs": {"b": "text"}}, "blob 'b' must be bytes, got str"),
        ({"sparse": {"s": {1: 2}}}, "sparse vector 's' must be SparseVector, got dict"),
    ],
)
def test_bad_records(changes, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        record(**changes)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-310, 1e-60, 1e60, 1e307])
def test_a_query_of_any_magnitude_is_a_direction(scale):
    manifest = Manifest(model="m", dimension=2)
    asked, _ = check_query_vector(manifest, np.array([3.0, 4.0]) * scale, None)
    np.testing.assert_allclose(asked, [0.6, 0.8], rtol=1e-6)


def test_deep_metadata():
    value: dict = {}
    for _ in range(20):
        value = {"a": value}
    with pytest.raises(InvalidInputError, match="16 deep"):
        record(metadata=value)


@pytest.mark.parametrize(
    ("terms", "weights"),
    [([1, 2], [1.0]), ([2, 1], [1, 1]), ([1, 1], [1, 1]), ([-1], [1]), ([1], [0]), ([1], [np.nan])],
)
def test_bad_sparse_vectors(terms, weights):
    with pytest.raises(InvalidInputError, match="sparse vector"):
        SparseVector(np.array(terms), np.array(weights))


def test_manifest_checks_records():
    manifest = Manifest(model="m", dimension=2, vectors={"code": VectorField(dimension=3)}, sparse=("s",))
    manifest.check([record(vectors={"code": [1, 2, 3]}, sparse={"s": SparseVector([1], [1.0])})])
    for wrong in (
        record(embedding=[1.0]),
        record(vectors={"prose": [1, 2, 3]}),
        record(vectors={"code": [1, 2]}),
        record(sparse={"t": SparseVector([1], [1.0])}),
    ):
        with pytest.raises(InvalidInputError, match="chunk 'a'"):
            manifest.check([wrong])


def test_bad_manifests():
    with pytest.raises(ConfigError, match="dimension"):
        Manifest(model="m", dimension=0)
    with pytest.raises(ConfigError, match="dimension"):
        VectorField(dimension=0)
    with pytest.raises(ConfigError, match="metric"):
        VectorField(dimension=2, metric="euclid")
