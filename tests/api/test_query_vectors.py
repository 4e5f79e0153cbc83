"""Many threads, one encoder: what is batched, what is remembered, and what happens when it goes wrong."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from dartboard.api.query_vectors import MOST_TOGETHER, SharedQueryModel
from dartboard.deadline import deadline
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.by_name import default_model
from dartboard.embeddings.descriptions import TaskType
from dartboard.errors import DeadlineError, EndpointError, InvalidInputError, ModelError
from tests.waiting import PATIENCE, wait_until

QUESTIONS = [
    f"why does step {number} of the {word} fail?" for number in range(6) for word in ("build", "test")
]


class Counts:
    """The metrics' two methods, kept as lists."""

    def __init__(self):
        self.hits, self.batches = [], []

    def cache(self, hit):
        self.hits.append(hit)

    def batch(self, size):
        self.batches.append(size)


class Letters(EmbeddingModel):
    """A small real model: counts of letters. A gate holds it, as a slow model would be held by its work."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.calls = []

    embedding_dim = 26

    def encode(self, texts, batch_size=32):
        self.calls.append(list(texts))
        self.entered.release()
        assert self.gate.wait(60)
        if "poison" in texts:
            raise ModelError("the model choked on one text")
        if "elsewhere" in texts:
            raise EndpointError("the endpoint refused")
        return np.array([[1 + text.count(chr(97 + at)) for at in range(26)] for text in texts], np.float32)

    def letters(self):
        return 26


@pytest.fixture
def letters():
    return Letters()


@pytest.fixture
def model(letters):
    made = SharedQueryModel(letters, metrics=Counts())
    yield made
    letters.gate.set()
    made.close()


def ask_while_busy(model, letters, texts, pool):
    """Answers to ``texts`` that were all waiting while the encoder was busy with another question."""
    letters.gate.clear()
    first = pool.submit(model.encode_query, "first")
    wait_until(lambda: letters.calls[-1:] == [["first"]])
    asked = [pool.submit(model.encode_query, text) for text in texts]
    wait_until(lambda: model._waiting.qsize() == len(texts))
    letters.gate.set()
    first.result(60)
    return asked


def test_questions_that_meet_are_encoded_together(model, letters):
    with ThreadPoolExecutor(8) as pool:
        asked = ask_while_busy(model, letters, ["aa", "bb", "cc"], pool)
        answers = [one.result(60) for one in asked]
    assert letters.calls == [["first"], ["aa", "bb", "cc"]]
    assert model._metrics.batches == [1, 3]
    for text, answer in zip(["aa", "bb", "cc"], answers, strict=True):
        np.testing.assert_array_equal(answer, letters.encode([text])[0])


def test_tasks_are_not_mixed(letters):
    class Noting(Letters):
        def encode_task(self, texts, task, **options):
            self.tasks = [*getattr(self, "tasks", []), task]
            return super().encode_task(texts, task, **options)

    noting = Noting()
    with ThreadPoolExecutor(4) as pool, closing(SharedQueryModel(noting)) as model:
        noting.gate.clear()
        pool.submit(model.encode_query, "first")
        assert noting.entered.acquire(timeout=60)
        two = [pool.submit(model.encode_query, "same", task=task) for task in (*TaskType,)[:3]]
        wait_until(lambda: model._waiting.qsize() == 3)
        noting.gate.set()
        for one in two:
            one.result(60)
    assert sorted(noting.tasks[1:]) == sorted(TaskType)


def test_old_questions_are_forgotten_first(letters):
    with closing(SharedQueryModel(letters, cached=2)) as model:
        for text in ("a", "b", "a", "c", "a", "b"):
            model.encode_query(text)
        assert letters.calls == [["a"], ["b"], ["c"], ["b"]]


def test_nothing_is_kept_when_told_so(letters):
    with closing(SharedQueryModel(letters, cached=0)) as model:
        model.encode_query("a")
        model.encode_query("a")
    assert letters.calls == [["a"], ["a"]]


def test_vectors_cannot_be_spoilt(model):
    vector = model.encode_query("a")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 7
    assert vector.base is None, "a row must not keep its batch alive"


def test_many_questions_in_one_call(model, letters):
    model.encode_query("b")
    heard = []
    found = model.encode_queries(["a", "b", "a", "c"], progress=heard.append)
    np.testing.assert_array_equal(found, letters.encode(["a", "b", "a", "c"]))
    assert letters.calls[:2] == [["b"], ["a", "c"]]
    assert heard == [4]
    assert model._metrics.hits == [False, False, True, False, False]
    assert model.encode_queries([]).shape == (0, 26)
    model.encode_query("c")
    assert len(letters.calls) == 3


def test_waiting_ends_with_the_deadline(model, letters):
    letters.gate.clear()
    with pytest.raises(DeadlineError), deadline(0.05):  # timing: has to run out
        model.encode_query("slow")
    letters.gate.set()
    assert model.encode_query("slow").shape == (26,)


def test_what_nobody_waits_for_is_not_encoded(model, letters):
    with ThreadPoolExecutor(2) as pool:
        letters.gate.clear()
        first = pool.submit(model.encode_query, "first")
        assert letters.entered.acquire(timeout=60)
        with pytest.raises(DeadlineError), deadline(0.05):  # timing: has to run out
            model.encode_query("abandoned")
        letters.gate.set()
        first.result(60)
        model.encode_query("next")
    assert letters.calls == [["first"], ["next"]]


def test_everything_else_passes_through(model, letters):
    assert model.letters() == 26
    assert model.fingerprint == letters.fingerprint
    assert model.name == "Letters"
    assert model.sigma is None
    np.testing.assert_array_equal(model.encode(["a"]), letters.encode(["a"]))
    np.testing.assert_array_equal(model.encode_documents(["a"]), letters.encode(["a"]))
    assert not hasattr(model, "token_vectors")
    with pytest.raises(AttributeError, match="_secret"):
        _ = model._secret


def test_the_default_model_gives_the_same_bits_in_any_batch():
    plain = default_model()
    alone = [plain.encode_query(question) for question in QUESTIONS]
    with (
        ThreadPoolExecutor(8) as pool,
        closing(SharedQueryModel(plain, metrics=(counts := Counts()))) as model,
    ):
        assert model.fingerprint == plain.fingerprint
        assert model.count_tokens(["one two"]) == plain.count_tokens(["one two"])
        together = list(pool.map(model.encode_query, QUESTIONS * 3))
        many = model.encode_queries(QUESTIONS[::-1])
    assert max(counts.batches) > 1
    for at, vector in enumerate(together):
        assert vector.tobytes() == alone[at % len(QUESTIONS)].tobytes()
    np.testing.assert_array_equal(many, alone[::-1])


def test_a_batch_has_a_limit(model, letters):
    texts = [f"text {number}" for number in range(MOST_TOGETHER + 3)]
    with ThreadPoolExecutor(len(texts) + 1) as pool:
        for one in ask_while_busy(model, letters, texts, pool):
            one.result(PATIENCE)
    assert [len(call) for call in letters.calls] == [1, MOST_TOGETHER, 3]


def test_an_error_reaches_everybody_who_waited(model, letters):
    with ThreadPoolExecutor(8) as pool:
        asked = ask_while_busy(model, letters, ["elsewhere", "other"], pool)
        assert [type(one.exception(PATIENCE)) for one in asked] == [EndpointError] * 2
    assert model.encode_query("fine").shape == (26,)


def test_waiting_ends_when_nobody_wants_the_answer(model, letters):
    letters.gate.clear()
    gone = threading.Event()
    gone.set()
    with deadline(3600, cancelled=gone), pytest.raises(DeadlineError):
        model.encode_query("slow")


def test_closing_does_not_wait_for_a_model_that_never_answers(model, letters):
    letters.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(model.encode_query, "slow")
        wait_until(lambda: letters.calls)
        model.close()
        assert not asked.done()
        letters.gate.set()
        assert asked.result(PATIENCE).shape == (26,)


def test_closing_ends_the_thread_and_refuses(letters):
    model = SharedQueryModel(letters)
    known = model.encode_query("a")
    model.close()
    model.close()
    assert model.encode_query("a") is known
    with pytest.raises(ModelError):
        model.encode_query("b")
    for text in ("", "\ud800", 5, ["a"]):
        with pytest.raises(InvalidInputError):
            model.encode_query(text)
