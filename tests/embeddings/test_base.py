"""The interface: the specification's subclass works, inputs and outputs are checked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.deadline import deadline
from dartboard.embeddings import BatchModel, EmbeddingModel, ModelDescription, TaskType
from dartboard.embeddings.texts import batches_by_length
from dartboard.errors import ConfigError, InvalidInputError, ModelError


class SpecModel(EmbeddingModel):
    """Written as in the specification: nothing of tasks, prefixes or progress."""

    def __init__(self, seed: int = 0):
        self.seed = seed

    def encode(self, texts, batch_size=32):
        if isinstance(texts, str):
            texts = [texts]
        rng = np.random.default_rng(self.seed)
        table = rng.normal(size=(128, 20))
        return np.array([table[[ord(c) % 128 for c in text]].sum(axis=0) for text in texts])

    @property
    def embedding_dim(self):
        return 20


class LengthModel(BatchModel):
    """Answers a text's length, its first letter and its task; remembers its batches."""

    def __init__(self, answer=None, dim=3):
        self.batches = []
        self.answer = answer
        self.dim = dim

    @property
    def description(self):
        return ModelDescription(name="length", dim=self.dim, sigma=0.2)

    def _encode_batch(self, texts, task):
        self.batches.append(list(texts))
        if self.answer is not None:
            return self.answer(len(texts))
        return np.array([[len(text), ord(text[0]), list(TaskType).index(task)] for text in texts], float)


def test_specification_subclass_serves_every_door():
    model = SpecModel()
    assert model.encode_query("a question").shape == (20,)
    assert model.encode_documents(["one", "two"]).dtype == np.float32
    assert model.encode_queries([]).shape == (0, 20)
    assert model.sigma is None and model.name == "SpecModel"
    seen: list[int] = []
    model.encode_documents(["one", "two"], progress=seen.append)
    assert seen == [2]


def test_default_fingerprint_follows_the_weights():
    assert SpecModel().fingerprint == SpecModel().fingerprint
    assert SpecModel(seed=1).fingerprint != SpecModel().fingerprint


def test_rows_keep_their_order_and_progress_counts_up():
    model = LengthModel()
    texts = ["bb", "a", "dddd", "ccc"]
    seen: list[int] = []
    vectors = model.encode(texts, 3, progress=seen.append)
    assert vectors[:, 0].tolist() == [2, 1, 4, 3]
    assert model.batches == [["dddd", "ccc", "bb"], ["a"]]
    assert seen == [3, 4]
    assert model.encode("lone").shape == (1, 3)
    assert model.sigma == 0.2


def test_task_reaches_the_model():
    model = LengthModel()
    assert model.encode_query("q")[2] == 0
    assert model.encode_query("q", task=TaskType.CODE_RETRIEVAL_QUERY)[2] == 2
    assert model.encode_documents(["d"])[0, 2] == 1


@pytest.mark.parametrize("model", [SpecModel(), LengthModel()])
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", ""], "text 1 is empty"),
        (["fine", "fine", " \n\t"], "text 2 is empty"),
        ([3], "text 0 is not a string: got int"),
        (["fine", None], "text 1 is not a string: got NoneType"),
        (b"bytes", "text 0 is not a string: got int"),
        (["bad \ud800"], "text 0 contains a lone surrogate"),
        (7, "expected a text or a list of texts, got int"),
    ],
)
def test_unusable_texts_are_named(model, texts, message):
    with pytest.raises(InvalidInputError, match=message):
        model.encode_documents(texts)


def test_a_query_is_one_string():
    with pytest.raises(InvalidInputError, match="encode_queries"):
        SpecModel().encode_query(["a", "b"])


@pytest.mark.parametrize("model", [SpecModel(), LengthModel()])
def test_batch_size_is_positive(model):
    with pytest.raises(ConfigError, match="batch_size"):
        model.encode_documents(["a"], batch_size=0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.full((n, 3), np.nan), "NaN or infinity"),
        (lambda n: np.full((n, 3), np.inf), "NaN or infinity"),
        (lambda n: np.zeros((n, 3)), "all zeros"),
        (lambda n: np.ones((n, 4)), "shape"),
        (lambda n: np.ones((n + 1, 3)), "shape"),
        (lambda n: np.ones(3), "shape"),
        (lambda n: np.full((n, 3), 1e300), "NaN or infinity"),
        (lambda n: [[1, 2], [3]], "unusable vectors"),
        (lambda n: [["a", "b", "c"]] * n, "unusable vectors"),
    ],
)
def test_unusable_answers_are_the_models_fault(answer, message):
    with pytest.raises(ModelError, match=message):
        LengthModel(answer).encode(["a", "b"])


def test_prefixes_by_task():
    plain = ModelDescription(name="m", dim=2, query_prefix="q: ", document_prefix="d: ")
    assert [plain.prefix(task) for task in TaskType] == ["q: ", "d: ", "q: "]
    code = ModelDescription(name="m", dim=2, query_prefix="q: ", code_query_prefix="c: ")
    assert code.prefix(TaskType.CODE_RETRIEVAL_QUERY) == "c: "


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"dim": 0}, {"max_tokens": 2}, {"pooling": "max"}, {"sigma": -1.0}, {"sigma": 0.0}],
)
def test_description_refuses(wrong):
    with pytest.raises(ConfigError):
        ModelDescription(**{"name": "m", "dim": 2} | wrong)


@given(st.lists(st.text(min_size=1)), st.integers(1, 9))
def test_batches_cover_every_text_once(texts, size):
    batches = list(batches_by_length(texts, size))
    assert sorted(index for batch in batches for index in batch) == list(range(len(texts)))
    assert all(len(batch) <= size for batch in batches)


def test_long_texts_go_in_small_steps_where_somebody_waits():
    texts = ["word " * 200] * 40 + ["word"] * 40
    assert [len(step) for step in batches_by_length(texts, 32)] == [32, 32, 16]
    with deadline(60):
        steps = list(batches_by_length(texts, 32))
        assert [len(step) for step in steps] == [4] * 10 + [32, 8]
        assert [len(step) for step in batches_by_length(texts[:3], 2)] == [2, 1]
        assert list(batches_by_length([], 2)) == []
    assert [row for step in steps for row in step] == list(range(80))


def test_an_unknown_task_is_refused_by_name():
    with pytest.raises(ConfigError, match="unknown task 'nonsense': choose one of RETRIEVAL_QUERY"):
        SpecModel().encode_task(["a"], "nonsense")


def test_models_that_differ_anywhere_have_other_fingerprints():
    class Shifted(SpecModel):
        def encode(self, texts, batch_size=32):
            vectors = np.array(super().encode(texts, batch_size))
            vectors[:, -1] += 1.0
            return vectors

    Shifted.__qualname__, Shifted.__module__ = SpecModel.__qualname__, SpecModel.__module__
    assert Shifted().fingerprint != SpecModel().fingerprint
