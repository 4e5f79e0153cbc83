"""The pipeline: clean, split, embed, keep; and go on after a kill."""

import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dartboard.datasets import Passage, PassageStream, TextDataset, load_beir, prepare, prepare_on_disk
from dartboard.errors import ConfigError, DatasetError
from dartboard.file_lock import file_lock
from dartboard.ingest import clean
from tests.datasets.folders import beir_folder
from tests.embeddings.hashing_model import HashingModel
from tests.models import WordBag
from tests.waiting import wait_until


def tiny(texts=("A first text.", "A second text."), **more):
    passages = [Passage(f"p{i}", text) for i, text in enumerate(texts)]
    return TextDataset(
        **{"name": "tiny", "passages": passages, "queries": {"q": "Which?"}, "qrels": {"q": {"p0": 1}}} | more
    )


def encoded(model):
    return [text for batch in model.batches for text in batch]


def test_a_folder_becomes_a_data_set(tmp_path):
    model = HashingModel()
    heard = []
    folder = beir_folder(tmp_path)
    dataset = prepare(
        load_beir(folder), model, cache_dir=tmp_path / "cache", progress=lambda *told: heard.append(told)
    )
    assert dataset.name == "tiny"
    assert (dataset.query_ids, dataset.queries) == (["q1", "q2"], ["First?", "Second?"])
    assert dataset.ground_truth == {"q1": ["d0", "d1"], "q2": ["d2"]}
    assert dataset.metadata["qrels"] == {"q1": {"d0": 1, "d1": 2}, "q2": {"d2": 1, "d3": 0}}
    assert dataset.metadata["type"] == "real"
    assert dataset.metadata["answers"] == {"q1": ["one", "1", "uno"]}
    first = dataset.chunks[0]
    assert (first.id, first.text) == ("d0", "Text number 0.")
    assert first.metadata == {"title": "Title 0", "base_id": "d0"}
    np.testing.assert_array_equal(first.embedding, model.encode_documents(["Title 0 Text number 0."])[0])
    np.testing.assert_array_equal(
        dataset.metadata["query_embeddings"], model.encode_queries(["First?", "Second?"])
    )
    assert heard[-1] == ("Embedding queries", 2, 2)
    assert ("Embedding passages", 10, 10) in heard
    manifest = json.loads((Path(dataset.metadata["prepared"]) / "manifest.json").read_text())
    assert (manifest["format"], manifest["pieces"]) == (2, 10)
    assert manifest["model"] == {"name": "hashing", "fingerprint": "hashing:0", "dim": 8}


def test_nothing_is_embedded_twice(tmp_path):
    text = load_beir(beir_folder(tmp_path))
    once = prepare(text, HashingModel(), cache_dir=tmp_path / "cache")
    model = HashingModel()
    again = prepare(text, model, cache_dir=tmp_path / "cache")
    assert model.batches == []
    assert [chunk.embedding.tobytes() for chunk in once.chunks] == [
        c.embedding.tobytes() for c in again.chunks
    ]


def test_another_model_or_another_text_has_its_own_vectors(tmp_path):
    prepare(tiny(), HashingModel(), cache_dir=tmp_path)
    other = HashingModel(seed=1)
    prepare(tiny(), other, cache_dir=tmp_path)
    assert len(encoded(other)) == 3
    changed = HashingModel()
    dataset = prepare(tiny(("A first text.", "Changed.")), changed, cache_dir=tmp_path)
    assert "Changed." in encoded(changed)
    assert dataset.chunks[1].text == "Changed."


def test_the_vectors_stay_in_the_file(tmp_path):
    prepared = prepare_on_disk(tiny(), HashingModel(), cache_dir=tmp_path)
    assert (prepared.folder / "passages.f32").stat().st_size == 2 * 8 * 4
    assert not prepared.vectors.flags.owndata
    assert not prepared.vectors.flags.writeable
    assert isinstance(prepared.vectors.base, np.memmap)
    assert [chunk.id for chunk in prepared.chunks()] == ["p0", "p1"]


def test_long_passages_are_split_and_truth_follows(tmp_path):
    text = tiny(
        ("One two three. Four five six. Seven eight nine ten.", "Short."),
        facets={"q": {"1": ["p0"]}},
        kernels={"q": ["p0"]},
        pools={"q": ["p0", "p1"]},
    )
    dataset = prepare(text, HashingModel(), cache_dir=tmp_path, max_words=6)
    assert [(c.id, c.text) for c in dataset.chunks] == [
        ("p0", "One two three. Four five six."),
        ("p0#2", "Seven eight nine ten."),
        ("p1", "Short."),
    ]
    assert [chunk.metadata["base_id"] for chunk in dataset.chunks] == ["p0", "p0", "p1"]
    assert dataset.ground_truth == {"q": ["p0", "p0#2"]}
    assert dataset.metadata["facets"] == {"q": {"1": ["p0", "p0#2"]}}
    assert dataset.metadata["kernels"] == {"q": ["p0"]}
    assert dataset.metadata["pools"] == {"q": ["p0", "p0#2", "p1"]}


def test_what_the_corpus_lacks_is_left_out_and_listed(tmp_path, caplog):
    text = TextDataset(
        name="sample",
        passages=[Passage("p0", "Text."), Passage("empty", " \u200b "), Passage("t", "", "Only a title")],
        queries={"q": "Which?", "lost": "Where?", "open": "Nothing is relevant to this?"},
        qrels={"q": {"p0": 1, "gone": 1}, "lost": {"empty": 2}, "open": {"p0": 0}},
        facets={"q": {"1": ["p0"], "2": ["gone"]}},
        kernels={"q": ["p0", "gone"]},
        answers={"lost": ["x"]},
    )
    with caplog.at_level(logging.WARNING):
        dataset = prepare(text, HashingModel(), cache_dir=tmp_path)
    assert [(c.id, c.text) for c in dataset.chunks] == [("p0", "Text."), ("t", "Only a title")]
    assert dataset.query_ids == ["q", "open"]
    assert dataset.ground_truth == {"q": ["p0"], "open": []}
    assert dataset.metadata["unreachable"] == {"q": ["gone"]}
    assert dataset.metadata["facets"] == {"q": {"1": ["p0"]}}
    assert (dataset.metadata["kernels"], dataset.metadata["answers"]) == ({}, {})
    assert "1 passages have neither text nor title" in caplog.text
    assert "1 of 3 queries have no relevant passage in the corpus" in caplog.text


def test_what_cannot_be_prepared(tmp_path):
    with pytest.raises(DatasetError, match=r"passage id 'p' occurs twice"):
        prepare(tiny(passages=[Passage("p", "a"), Passage("p", "b")]), HashingModel(), cache_dir=tmp_path)
    with pytest.raises(DatasetError, match=r"'tiny' has no passage with text"):
        prepare(tiny(()), HashingModel(), cache_dir=tmp_path)
    with pytest.raises(ConfigError, match=r"max_words must be >= 1"):
        prepare(tiny(), HashingModel(), cache_dir=tmp_path, max_words=0)
    with pytest.raises(DatasetError, match=r"qrels name query 'x'"):
        tiny(qrels={"x": {}})


def test_cleaning_keeps_what_is_seen():
    assert clean(" a\u00a0 \tb\t\u200b\ufeffd\x00 e\u0301 \ufffd ") == "a b d é"
    assert clean(" one  two \r\n\r\n\n\nthree\r") == "one two\n\nthree"
    code = "class A:\n    def f(self):\n\treturn 1"
    assert clean(f"\n{code}  \n") == code
    assert clean("    def f(self):\n        return 1") == "    def f(self):\n        return 1"
    assert clean("x < y && z[0] != “5 €” — ½") == "x < y && z[0] != “5 €” — ½"
    family = "\U0001f468\u200d\U0001f469"
    assert clean(family) == family
    assert clean("") == ""


def test_a_corpus_may_be_larger_than_memory(tmp_path):
    class Small(WordBag):
        def encode(self, texts, batch_size=32):
            return np.ones((len(texts), self.embedding_dim), np.float32)

    def read():
        return (Passage(f"p{i}", f"{i} " + "word " * 200) for i in range(3000))

    text = TextDataset(
        name="large", passages=PassageStream(read), queries={"q": "Which?"}, qrels={"q": {"p7": 1}}
    )
    tracemalloc.start()
    prepared = prepare_on_disk(text, Small(), cache_dir=tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert prepared.vectors.shape == (3000, 32)
    assert (prepared.folder / "pieces.jsonl").stat().st_size > 3_000_000
    assert peak < 1_500_000


def test_splitting_loses_no_word(tmp_path):
    text = 'He said "Stop." Then he left! Why? A very long sentence without any end at all'
    for most in (1, 2, 3, 5, 100):
        made = prepare(tiny([text]), HashingModel(), cache_dir=tmp_path, max_words=most)
        pieces = [chunk.text for chunk in made.chunks]
        assert " ".join(pieces).split() == text.split()
        assert max(len(piece.split()) for piece in pieces) <= most or most == 100
        assert most != 3 or pieces[0] == 'He said "Stop."'


def test_rows_that_were_not_counted_are_encoded_again(tmp_path):
    model = HashingModel()
    folder = prepare_on_disk(tiny(["One", "Two", "Three"]), model, cache_dir=tmp_path, batch_size=1).folder
    whole = (folder / "passages.f32").read_bytes()
    (folder / "passages.count").write_text("1")
    with (folder / "passages.f32").open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(b"zzzzzzzz")
    again = HashingModel()
    prepare_on_disk(tiny(["One", "Two", "Three"]), again, cache_dir=tmp_path)
    assert sorted(encoded(again)) == ["Three", "Two"] and (folder / "passages.f32").read_bytes() == whole
    with (folder / "passages.f32").open("ab") as stream:
        stream.write(b"torn")
    last = HashingModel()
    prepare_on_disk(tiny(["One", "Two", "Three"]), last, cache_dir=tmp_path)
    assert len(encoded(last)) == 3 and (folder / "passages.f32").read_bytes() == whole


def test_a_refused_data_set_leaves_nothing_behind(tmp_path):
    for texts in ([" "], []):
        with pytest.raises(DatasetError):
            prepare_on_disk(tiny(texts), HashingModel(), cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_that_nobody_reads(tmp_path):
    """The pieces, the vectors of passages and queries, and what they were made with; no index."""
    folder = prepare_on_disk(tiny(["One", "Two"]), HashingModel(), cache_dir=tmp_path).folder
    names = {re.sub(r"-[0-9a-f]{16}", "", one.name) for one in folder.iterdir()}
    assert names == {
        "manifest.json",
        "passages.count",
        "passages.f32",
        "pieces.jsonl",
        "queries.count",
        "queries.f32",
    }
    for made in (prepare, prepare_on_disk):
        assert "index" not in inspect.signature(made).parameters


def test_one_process_at_a_time(tmp_path, caplog):
    entered = threading.Event()

    def enter():
        with file_lock(tmp_path / "lock"):
            entered.set()

    with caplog.at_level(logging.WARNING), file_lock(tmp_path / "lock"):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.1)  # timing: nothing may happen meanwhile
    thread.join(timeout=60)
    assert entered.is_set()
    assert "waiting for another process" in caplog.text


def test_the_default_model_and_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    dataset = prepare(tiny())
    assert Path(dataset.metadata["prepared"]).parent == tmp_path / "datasets"
    assert dataset.chunks[0].embedding.shape == (384,)


KILLED = """
import sys
from pathlib import Path
from dartboard.datasets import load_beir, prepare
from tests.embeddings.hashing_model import HashingModel

class Telling(HashingModel):
    def _encode_batch(self, texts, task):
        with open(sys.argv[3], "a") as log:
            log.writelines(text + "\\n" for text in texts)
            self.told = getattr(self, "told", 0) + len(texts)
        if self.told > int(sys.argv[4]):
            sys.stdin.read()
        return super()._encode_batch(texts, task)

prepare(load_beir(sys.argv[1]), Telling(), cache_dir=sys.argv[2], batch_size=2)
"""


def start(folder, cache, log, most=10_000):
    """A process that waits for input after so many texts."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(folder), str(cache), str(log), str(most)],
        env=environment,
        stdin=subprocess.PIPE,
    )


def kept_rows(cache):
    """What the counter says: a kill may fall between a batch and its count, and then the batch is lost."""
    return sum(int(path.read_text()) for path in cache.glob("*/passages.count"))


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    folder = beir_folder(tmp_path, docs=400)
    cache, log, later = tmp_path / "cache", tmp_path / "log", tmp_path / "later"
    with start(folder, cache, log, most=200) as process:
        wait_until(lambda: kept_rows(cache) >= 80 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    kept = kept_rows(cache)
    assert 80 <= kept < 400
    with start(folder, cache, later) as process:
        assert process.wait(timeout=60) == 0
    embedded_first = log.read_text().splitlines()[:kept]
    embedded_later = later.read_text().splitlines()
    assert not set(embedded_first) & set(embedded_later)
    assert len(embedded_later) == 400 - kept + 2  # and the two queries
    resumed = prepare(load_beir(folder), HashingModel(), cache_dir=cache)
    whole = prepare(load_beir(folder), HashingModel(), cache_dir=tmp_path / "other", batch_size=2)
    assert [c.embedding.tobytes() for c in resumed.chunks] == [c.embedding.tobytes() for c in whole.chunks]
    np.testing.assert_array_equal(resumed.metadata["query_embeddings"], whole.metadata["query_embeddings"])
    assert [c.text for c in resumed.chunks] == [c.text for c in whole.chunks]
    assert resumed.ground_truth == whole.ground_truth
