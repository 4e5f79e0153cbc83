"""A model that gives away how its texts were batched: to every state it adds the largest of its batch."""

import numpy as np

from dartboard.embeddings.model_files import bert_uncased_tokenizer
from tests.embeddings.onnx_bytes import block, number, text, value


def sociable_model(folder, seed=0, dim=16):
    """A folder for ``onnx:``; another seed is another model."""
    table = np.random.default_rng(seed).normal(size=(30522, dim)).astype("<f4")
    nodes = [
        node("Gather", ["table", "input_ids"], "own"),
        node("ReduceMax", ["own"], "largest"),
        node("Add", ["own", "largest"], "last_hidden_state"),
    ]
    dims = b"".join(number(1, size) for size in table.shape)
    tensor = dims + number(2, 1) + text(8, "table") + block(9, table.tobytes())
    graph = [*(block(1, one) for one in nodes), text(2, "sociable"), block(5, tensor)]
    graph += [block(11, value(name, 7, ("batch", "tokens"))) for name in ("input_ids", "attention_mask")]
    graph += [block(12, value("last_hidden_state", 1, ("batch", "tokens", dim)))]
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(number(1, 8) + block(8, number(2, 17)) + block(7, b"".join(graph)))
    bert_uncased_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def node(kind, inputs, output):
    return b"".join([*(text(1, name) for name in inputs), text(2, output), text(4, kind)])
