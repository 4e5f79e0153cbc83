"""ColBERT checkpoints in the usual layout, made on the spot with random weights."""

import json
import sys

import numpy as np
import pytest

from dartboard.embeddings import TaskType
from dartboard.embeddings.torch_models import ColbertModel
from dartboard.errors import MissingExtraError, ModelError
from dartboard.retrievers import ColbertRetriever
from tests.models import WordBag
from tests.retrievers.corpus import TEXTS, collection_for

QUERY = "How are tokens validated?"
PASSAGE = "Tokens are validated, with a key; and more."
META = {"query_maxlen": 16, "doc_maxlen": 40, "dim": 8, "mask_punctuation": True}


def checkpoint(folder, tiny_bert, *, seed=0, meta=META, kind="safetensors", projection=True, drop=()):
    """Turn a tiny BERT into a checkpoint: keys under ``bert.``, ``linear.weight``, ``artifact.metadata``."""
    torch = pytest.importorskip("torch")
    import shutil

    from safetensors.torch import load_file, save_file

    source = tiny_bert("BertModel", seed)
    for path in source.iterdir():
        if path.name != "model.safetensors":
            shutil.copy(path, folder)
    tensors = {f"bert.{name}": value for name, value in load_file(source / "model.safetensors").items()}
    tensors = {name: value for name, value in tensors.items() if name not in drop}
    if projection:
        torch.manual_seed(seed + 100)
        tensors["linear.weight"] = torch.randn(8, 16)
    if kind == "safetensors":
        save_file(tensors, folder / "model.safetensors")
    else:
        torch.save(tensors, folder / "pytorch_model.bin")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    if meta is not None:
        (folder / "artifact.metadata").write_text(json.dumps(meta))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_bert):
    return checkpoint(tmp_path_factory.mktemp("colbert"), tiny_bert)


@pytest.fixture(scope="module")
def model(folder):
    return ColbertModel(folder)


def by_hand(folder, ids, attended):
    """Encoder, projection and unit length, straight from the files."""
    import torch
    import transformers
    from safetensors.torch import load_file

    tensors = load_file(folder / "model.safetensors")
    encoder = transformers.BertModel(transformers.AutoConfig.from_pretrained(folder)).eval()
    own = {name.removeprefix("bert."): value for name, value in tensors.items() if name != "linear.weight"}
    encoder.load_state_dict(own)
    with torch.no_grad():
        states = encoder(torch.tensor([ids]), torch.tensor([attended])).last_hidden_state[0]
        projected = (states @ tensors["linear.weight"].T).numpy()
    return projected / np.linalg.norm(projected, axis=1, keepdims=True)


def test_a_question_is_marked_and_filled_with_masks(model, folder):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    words = tokenizer(QUERY, add_special_tokens=False)["input_ids"]
    ids = [101, tokenizer.convert_tokens_to_ids("[unused0]"), *words, 102]
    attended = [1] * len(ids) + [0] * (16 - len(ids))
    ids += [103] * (16 - len(ids))
    (found,) = model.token_vectors(QUERY, task=TaskType.RETRIEVAL_QUERY)
    assert found.shape == (16, 8)
    np.testing.assert_allclose(found, by_hand(folder, ids, attended), atol=1e-5)
    (spelled,) = model.tokens([QUERY], task=TaskType.RETRIEVAL_QUERY)
    assert spelled[:3] == ["[CLS]", "[Q]", "how"] and spelled[-1] == "[MASK]" and len(spelled) == 16


def test_a_passage_is_marked_and_leaves_punctuation_out(model, folder):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    words = tokenizer(PASSAGE, add_special_tokens=False)["input_ids"]
    ids = [101, tokenizer.convert_tokens_to_ids("[unused1]"), *words, 102]
    marks = set(tokenizer.convert_tokens_to_ids([",", ";", "."]))
    kept = [at for at, id in enumerate(ids) if id not in marks]
    (found,) = model.token_vectors([PASSAGE])
    np.testing.assert_allclose(found, by_hand(folder, ids, [1] * len(ids))[kept], atol=1e-5)
    (spelled,) = model.tokens([PASSAGE])
    assert spelled[1] == "[D]" and "," not in spelled and len(spelled) == len(found)
    together = model.token_vectors([PASSAGE, "short", "word " * 300], batch_size=3)
    np.testing.assert_allclose(together[0], found, atol=1e-5)
    assert len(together[2]) == 40 and model.token_dim == 8


def test_settings_of_the_checkpoint(tmp_path, tiny_bert, model):
    folder = checkpoint(
        tmp_path, tiny_bert, meta=META | {"attend_to_mask_tokens": True, "mask_punctuation": False}
    )
    other = ColbertModel(folder)
    assert "," in other.tokens([PASSAGE])[0]
    plain, attending = (m.token_vectors(QUERY, task=TaskType.RETRIEVAL_QUERY)[0] for m in (model, other))
    assert np.abs(plain - attending).max() > 1e-4
    assert other.fingerprint != model.fingerprint


def test_both_kinds_of_files_are_one_checkpoint(tmp_path, tiny_bert, model, folder):
    pickled = ColbertModel(checkpoint(tmp_path, tiny_bert, kind="bin"))
    np.testing.assert_array_equal(pickled.token_vectors([PASSAGE])[0], model.token_vectors([PASSAGE])[0])
    assert pickled.fingerprint.split(":")[1] == ColbertModel(folder).fingerprint.split(":")[1]


def test_no_metadata_takes_the_papers(tmp_path, tiny_bert):
    loaded = ColbertModel(checkpoint(tmp_path, tiny_bert, meta=None))
    assert len(loaded.token_vectors(QUERY, task=TaskType.RETRIEVAL_QUERY)[0]) == 32
    assert len(loaded.token_vectors(["word " * 300])[0]) == 64  # the encoder reads no more


def test_retrieval_end_to_end(model):
    retriever = ColbertRetriever(model, model=WordBag(), bits=8)
    assert retriever.triage == "fde" and retriever.token_dim == 8
    collection = collection_for(retriever)
    found = retriever.retrieve(collection, QUERY, len(TEXTS)).found
    asked = model.token_vectors(QUERY, task=TaskType.RETRIEVAL_QUERY)[0]
    for candidate in found:
        there = model.token_vectors([candidate.chunk.text])[0]
        naive = sum(max(float(a @ b) for b in there) for a in asked)
        assert candidate.score == pytest.approx(naive, abs=0.1)
    told = retriever.explain(collection, QUERY, "jwt")
    assert [match["query"] for match in told["matches"]][:2] == ["[CLS]", "[Q]"]


def test_what_is_no_checkpoint(tmp_path, tiny_bert, monkeypatch):
    def made(name, **options):
        (tmp_path / name).mkdir()
        return checkpoint(tmp_path / name, tiny_bert, **options)

    plain = made("plain")
    config = json.loads((plain / "config.json").read_text())
    (plain / "config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
    with pytest.raises(ModelError, match="HF_ColBERT"):  # it would get a random projection
        ColbertModel(plain)
    with pytest.raises(ModelError):
        ColbertModel(made("unprojected", projection=False))
    with pytest.raises(ModelError):
        ColbertModel(made("list", meta=[1]))
    folder = made("broken")
    (folder / "artifact.metadata").write_text("{")
    with pytest.raises(ModelError):
        ColbertModel(folder)
    (folder / "artifact.metadata").unlink()
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError):
        ColbertModel(folder)
    with pytest.raises(ModelError, match="folder"):
        ColbertModel(tmp_path / "nowhere")
    (folder / "config.json").unlink()
    with pytest.raises(ModelError):
        ColbertModel(folder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[torch\]'"):
        ColbertModel(made("fine"))


def test_a_checkpoint_in_parts_is_refused(tmp_path, tiny_bert):
    """The missing tensors would be random, and a marker that is no token would be spelled in pieces."""

    def made(name, **options):
        (tmp_path / name).mkdir()
        return checkpoint(tmp_path / name, tiny_bert, **options)

    word = "embeddings.word_embeddings.weight"
    for kind in ("safetensors", "bin"):
        with pytest.raises(ModelError, match=word) as caught:
            ColbertModel(made(kind, kind=kind, drop=(f"bert.{word}",)))
        assert caught.value.field == "model"
    ColbertModel(made("pooler", drop=("bert.pooler.dense.weight", "bert.pooler.dense.bias")))  # not used
    unmarked = made("unmarked")
    vocabulary = unmarked / "tokenizer.json"
    vocabulary.write_text(vocabulary.read_text().replace("[unused1]", "other"))
    for folder in (unmarked, made("named", meta=META | {"doc_token_id": "[P]"})):
        with pytest.raises(ModelError, match="tokenizer") as caught:
            ColbertModel(folder)
        assert caught.value.field == "model"


def test_a_pickle_that_carries_code_is_refused(tmp_path, tiny_bert):
    torch = pytest.importorskip("torch")
    folder = checkpoint(tmp_path, tiny_bert)
    (folder / "model.safetensors").unlink()

    class Evil:
        def __reduce__(self):
            return (print, ("never",))

    torch.save({"linear.weight": Evil()}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError):
        ColbertModel(folder)
