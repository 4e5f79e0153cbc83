import numpy as np
import pytest

from dartboard import select
from dartboard.errors import DartboardError, InvalidInputError
from dartboard.types import Chunk, Dataset, RetrievalResult, check_matrix, check_vector


def chunk(id_="a", vector=(1.0, 0.0)):
    return Chunk(id=id_, text=f"text of {id_}", embedding=np.array(vector))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": ""}, "Chunk ID cannot be empty"),
        ({"id": 7}, "Chunk ID cannot be empty"),
        ({"text": ""}, "Chunk text cannot be empty"),
        ({"text": " \n"}, "Chunk text cannot be empty"),
        ({"embedding": None}, "valid embedding"),
        ({"embedding": []}, "at least one number"),
        ({"embedding": [[1.0, 2.0]]}, "at least one number"),
        ({"embedding": [1.0, float("nan")]}, "NaN or infinity"),
        ({"embedding": [1.0, float("inf")]}, "NaN or infinity"),
        ({"embedding": [0.0, 0.0]}, "all zeros"),
        ({"embedding": ["a", "b"]}, "of numbers"),
    ],
)
def test_a_bad_chunk_is_refused(change, says):
    with pytest.raises(ValueError, match=says) as caught:
        Chunk(**{"id": "a", "text": "t", "embedding": [1.0, 0.0]} | change)
    assert isinstance(caught.value, DartboardError)


def test_a_chunk_keeps_float32_and_has_its_own_metadata():
    first, second = (Chunk("a", "t", np.ones(3, np.float32)), Chunk("b", "t", [1, 2, 3]))
    assert first.embedding.dtype == np.float32 and second.embedding.dtype == np.float64
    assert Chunk("c", "t", np.ones(3, np.float16)).embedding.dtype == np.float32
    first.metadata["page"] = 3
    assert second.metadata == {}


def test_wrong_dimension_is_named():
    with pytest.raises(InvalidInputError, match="has 3 dimensions where 2 are expected"):
        check_vector(np.ones(3), dim=2)
    with pytest.raises(InvalidInputError, match="have 3 dimensions where 2 are expected"):
        check_matrix(np.ones((2, 3)), dim=2)


def test_a_bad_row_of_a_matrix_is_named():
    rows = np.ones((4, 3))
    rows[2] = 0
    with pytest.raises(InvalidInputError, match="embeddings row 2 is all zeros"):
        check_matrix(rows)
    rows[2] = np.nan
    with pytest.raises(InvalidInputError, match="row 2 contains NaN"):
        check_matrix(rows)
    with pytest.raises(InvalidInputError, match="at least one row"):
        check_matrix(np.empty((0, 3)))


def test_a_matrix_at_the_edges_of_the_range_is_usable():
    rows = np.array([[1e300, 1e300], [1e-300, 0.0]])
    assert check_matrix(rows) is rows


def test_retrieval_result():
    result = RetrievalResult("q", [chunk("a"), chunk("b")], [0.5, 0.2], {})
    assert result.top_chunk.id == "a" and len(result) == 2
    assert RetrievalResult("q", [], []).top_chunk is None
    with pytest.raises(InvalidInputError, match="2 chunks with 1 scores"):
        RetrievalResult("q", [chunk("a"), chunk("b")], [0.5], {})


def test_dataset():
    data = Dataset("d", [chunk("a"), chunk("b")], ["why?", "how?"], {"q1": ["a"]}, query_ids=["q1", "q2"])
    assert len(data) == 2
    assert Dataset("d", [chunk("a")], ["why?"], {"why?": ["a"]}).query_ids == ["why?"]


def test_keys_of_the_ground_truth_name_the_queries_in_order():
    data = Dataset("d", [chunk("a"), chunk("b")], ["why?", "how?"], {"q1": ["a"], "q2": ["b"]})
    assert data.query_ids == ["q1", "q2"]


def test_unusable_kinds_of_numbers():
    for bad in (np.array([1j, 2]), np.array(["2020-01-01"], dtype="datetime64[D]"), np.array(["1", "2"])):
        with pytest.raises(InvalidInputError, match="of numbers"):
            check_vector(bad)
    with pytest.raises(InvalidInputError, match="scores must be finite"):
        RetrievalResult("q", [chunk("a")], [float("nan")])
    assert chunk("a") != chunk("a")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"queries": ["why?", " "]}, "a query is empty"),
        ({"name": ""}, "needs a name"),
        ({"query_ids": ["q1"]}, "1 query ids for 2 queries"),
        ({"query_ids": ["q1", "q1"]}, "'q1' occurs twice"),
        ({"chunks": [chunk("a"), chunk("a")]}, "chunk id 'a' occurs twice"),
        ({"ground_truth": {"q9": ["a"]}}, "unknown query 'q9'"),
        ({"ground_truth": {"q1": ["z"]}}, "unknown chunk 'z'"),
        ({"chunks": [chunk("a"), chunk("b", (1.0, 2.0, 3.0))]}, "chunk 'b' has 3 dimensions"),
    ],
)
def test_a_bad_dataset_is_refused(change, says):
    good = {
        "name": "d",
        "chunks": [chunk("a"), chunk("b")],
        "queries": ["why?", "how?"],
        "ground_truth": {"q1": ["a"]},
        "query_ids": ["q1", "q2"],
    }
    with pytest.raises(ValueError, match=says):
        Dataset(**good | change)


def test_a_matrix_of_one_row_is_one_vector():
    row = check_vector([[1.0, 2.0]], name="query", dim=2)
    assert row.shape == (2,) and row.tolist() == [1.0, 2.0]
    for several in (np.ones((2, 3)), np.ones((1, 1, 3)), np.ones((1, 0))):
        with pytest.raises(InvalidInputError, match="must be a vector"):
            check_vector(several)
    with pytest.raises(InvalidInputError, match="query has 2 dimensions where 3 are expected"):
        check_vector([[1.0, 2.0]], name="query", dim=3)


def test_select_takes_a_query_as_models_give_it_for_one_text():
    vectors = np.random.default_rng(0).normal(size=(60, 8))
    for method in ("dartboard", "mmr", "top_k"):
        expected = select(vectors, vectors[3], k=5, method=method)
        assert select(vectors, vectors[3:4], k=5, method=method).indices.tolist() == expected.indices.tolist()
    assert select(vectors, vectors[:2], k=5).question_gains.shape == (5, 2)
    with pytest.raises(InvalidInputError, match="query must be a vector"):
        select(vectors, vectors[None], k=5)
