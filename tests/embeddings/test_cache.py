"""The cache: right vectors, whatever happens to its file or to the processes that use it."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dartboard.embeddings import BatchModel, CachedModel, EmbeddingModel, ModelDescription, TaskType
from dartboard.embeddings.cache import default_cache_path
from dartboard.errors import ConfigError, InvalidInputError, StoreError

from .hashing_model import HashingModel


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "sub" / "vectors.sqlite"


@pytest.fixture
def open_cache(path):
    """``open_cache(model)`` opens the same file again; all are closed with the test."""
    opened: list[CachedModel] = []

    def make(model: EmbeddingModel | None = None) -> CachedModel:
        opened.append(CachedModel(model or HashingModel(), path))
        return opened[-1]

    yield make
    for cached in opened:
        cached.close()


def test_known_texts_are_not_encoded_again(open_cache):
    cached = open_cache()
    seen: list[int] = []
    first = cached.encode(["a", "bb", "a", "ccc"], 2, progress=seen.append)
    assert cached.model.batches == [["ccc", "bb"], ["a"]]
    assert seen == [0, 2, 4]
    assert np.array_equal(first, HashingModel().encode(["a", "bb", "a", "ccc"]))
    again = open_cache()
    assert np.array_equal(again.encode(["ccc", "new", "a"]), HashingModel().encode(["ccc", "new", "a"]))
    assert again.model.batches == [["new"]]
    assert again.encode([]).shape == (0, 8)


def test_tasks_and_fingerprints_are_kept_apart(open_cache):
    cached = open_cache()
    query, document = cached.encode_query("a"), cached.encode_documents(["a"])[0]
    assert not np.array_equal(query, document)
    assert np.array_equal(cached.encode_query("a"), query)
    other = open_cache(HashingModel(seed=1))
    assert not np.array_equal(other.encode_query("a"), query)
    assert cached.fingerprint == HashingModel().fingerprint != other.fingerprint


def test_texts_are_checked_before_anything_else(open_cache):
    with pytest.raises(InvalidInputError, match="text 1"):
        open_cache().encode(["fine", " "])
    with pytest.raises(ConfigError, match="batch_size"):
        open_cache().encode(["fine"], 0)


def test_what_the_model_can_do_is_passed_through(open_cache, model):
    cached = open_cache(model)
    assert cached.count_tokens(["hello"]) == [3]
    assert cached.token_vectors("hello")[0].shape == (1, 384)
    assert (cached.name, cached.sigma, cached.max_tokens) == (model.name, 0.09, 256)
    assert not hasattr(open_cache(), "token_vectors")
    assert not hasattr(cached, "nonsense")


def test_real_vectors_come_back_bit_by_bit(open_cache, model, varied_texts):
    first = open_cache(model).encode(varied_texts)
    second = open_cache(model).encode(varied_texts)
    assert first.tobytes() == second.tobytes() == model.encode(varied_texts).tobytes()


class FailingModel(BatchModel):
    """Fails at the third batch, as Ctrl-C would."""

    description = ModelDescription(name="failing", dim=2)
    fingerprint = "failing"
    batches = 0

    def _encode_batch(self, texts, task):
        self.batches += 1
        if self.batches == 3:
            raise KeyboardInterrupt
        return np.ones((len(texts), 2))


def test_an_interruption_loses_one_batch(open_cache):
    texts = [f"text {index}" for index in range(10)]
    with pytest.raises(KeyboardInterrupt):
        open_cache(FailingModel()).encode(texts, 2)
    with open_cache(FailingModel()) as resumed, pytest.raises(KeyboardInterrupt):
        resumed.encode(texts, 2)
    connection = sqlite3.connect(resumed.path)
    assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (8,)
    connection.close()


@pytest.mark.parametrize("damage", ["header", "middle", "noise"])
def test_a_damaged_file_is_an_error_that_says_to_delete_it(open_cache, path, damage):
    texts = [f"text {index}" for index in range(2000)]
    cached = open_cache()
    cached.encode(texts)
    cached.close()
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:16] = b"not a database!!"
    elif damage == "middle":
        content[4096:-4096] = os.urandom(len(content) - 8192)
    else:
        content = bytearray(os.urandom(5000))
    path.write_bytes(content)
    with pytest.raises(StoreError, match="delete"):
        open_cache().encode(texts)


def test_paths_that_are_not_a_cache(tmp_path):
    with pytest.raises(ConfigError, match="no vector cache"):
        CachedModel(HashingModel(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="no vector cache"):
        CachedModel(HashingModel(), tmp_path / "file" / "below")
    for name, statement, message in [
        ("other", "CREATE TABLE orders (id)", "delete"),
    ]:
        connection = sqlite3.connect(tmp_path / name)
        connection.execute(statement)
        connection.commit()
        connection.close()
        with pytest.raises(ConfigError, match=message):
            CachedModel(HashingModel(), tmp_path / name)


def test_default_place(monkeypatch, tmp_path):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    assert default_cache_path() == tmp_path / "vectors-2.sqlite"
    monkeypatch.delenv("DARTBOARD_CACHE")
    assert default_cache_path().name == "vectors-2.sqlite" and "dartboard" in str(default_cache_path())


WORKER = """
import sys
from tests.embeddings.hashing_model import HashingModel
from dartboard.embeddings import CachedModel
path, first, last, size, pause = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
texts = [f"text {index}" for index in range(first, last)]
model = CachedModel(HashingModel(pause=pause), path)
model.encode(texts, size, progress=lambda done: print(done, flush=True))
"""


def start_worker(path: Path, first: int, last: int, size: int, pause: float = 0.0) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WORKER, str(path), str(first), str(last), str(size), str(pause)]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_write_at_once(open_cache, path):
    path.parent.mkdir()
    workers = [start_worker(path, first, first + 600, 3) for first in (0, 0, 300)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
    cached = open_cache()
    texts = [f"text {index}" for index in range(900)]
    assert np.array_equal(cached.encode(texts), HashingModel().encode(texts))
    assert cached.model.batches == []


def test_a_killed_process_leaves_a_sound_file(open_cache, path):
    path.parent.mkdir()
    worker = start_worker(path, 0, 5000, 2, 0.001)
    assert worker.stdout is not None
    done = 0
    while done < 100:
        done = int(worker.stdout.readline())
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    cached = open_cache()
    texts = [f"text {index}" for index in range(5000)]
    assert np.array_equal(cached.encode(texts), HashingModel().encode(texts))
    encoded = sum(map(len, cached.model.batches))
    assert 0 < encoded <= 5000 - 100
    assert cached.encode_task(["text 1"], TaskType.RETRIEVAL_DOCUMENT).shape == (1, 8)
