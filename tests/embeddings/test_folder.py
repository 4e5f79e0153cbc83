"""Model folders in the usual layout, and the hub that is not always there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dartboard.embeddings import ModelDescription, OnnxModel
from dartboard.embeddings.model_files import MINILM_GRAPH, verified_path
from dartboard.errors import ModelError


def put(folder: Path, name: str, content: object) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def test_the_usual_folder_equals_the_bundled_model(model, float_folder, tmp_path):
    folder = tmp_path / "all-MiniLM-L6-v2"
    shutil.copytree(float_folder, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").symlink_to(verified_path(MINILM_GRAPH))
    loaded = OnnxModel.from_folder(folder, threads=1)
    assert loaded.description == model.description
    assert np.array_equal(loaded.encode("hello world"), model.encode("hello world"))


def test_bare_folder_asks_the_graph(tiny_onnx):
    loaded = OnnxModel.from_folder(tiny_onnx(inputs=("input_ids",)))
    assert (loaded.embedding_dim, loaded.max_tokens, loaded.sigma) == (8, 512, None)
    assert loaded.description.normalize and loaded.description.pooling == "mean"
    tokens = loaded.token_vectors("hello world")[0]
    assert tokens.shape == (2, 8)


def test_pooling_and_prompts_come_from_the_files(tiny_onnx):
    folder = tiny_onnx(output="token_embeddings", place="onnx/model.onnx")
    put(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": True})
    put(folder, "modules.json", [{"type": "sentence_transformers.models.Transformer"}])
    put(folder, "config_sentence_transformers.json", {"prompts": {"query": "q: ", "passage": "p: "}})
    put(folder, "tokenizer_config.json", {"model_max_length": 10**30})
    put(folder, "config.json", {"hidden_size": 8, "max_position_embeddings": 40})
    loaded = OnnxModel.from_folder(folder)
    description = loaded.description
    assert (description.query_prefix, description.document_prefix) == ("q: ", "p: ")
    assert (description.pooling, description.normalize, description.max_tokens) == ("cls", False, 40)
    assert np.array_equal(loaded.encode("one"), loaded.encode("another"))  # [CLS] alone, from a table


@pytest.mark.parametrize("stated", [{"pooling_mode": "mean"}, {"pooling_mode_mean_tokens": True}])
def test_both_spellings_of_mean(tiny_onnx, stated):
    folder = tiny_onnx()
    put(folder, "1_Pooling/config.json", stated)
    assert OnnxModel.from_folder(folder).description.pooling == "mean"


def test_a_known_name_fills_in_prefixes(tiny_onnx, tmp_path):
    folder = Path(shutil.copytree(tiny_onnx(), tmp_path / "E5-small-v2"))
    description = OnnxModel.from_folder(folder).description
    assert (description.query_prefix, description.document_prefix) == ("query: ", "passage: ")


def test_filename_chooses_a_variant_and_changes_the_fingerprint(tiny_onnx):
    folder = tiny_onnx()
    plain = OnnxModel.from_folder(folder)
    shutil.copy(folder / "model.onnx", folder / "model_quantized.onnx")
    same = OnnxModel.from_folder(folder, filename="model_quantized.onnx")
    assert same.fingerprint == plain.fingerprint
    (folder / "model_quantized.onnx_data").write_bytes(b"tensors")
    beside = OnnxModel.from_folder(folder, filename="model_quantized.onnx")
    assert beside.fingerprint != plain.fingerprint
    other = ModelDescription(name=folder.name, dim=8, document_prefix="d: ")
    assert OnnxModel.from_folder(folder, description=other).fingerprint != plain.fingerprint
    with pytest.raises(ModelError, match=r"no gone.onnx; it holds \['model.onnx', 'model_quantized.onnx'\]"):
        OnnxModel.from_folder(folder, filename="gone.onnx")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "other than 'mean' or 'cls'"),
        (
            "1_Pooling/config.json",
            '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}',
            "other",
        ),
        (
            "1_Pooling/config.json",
            '{"pooling_mode": "mean", "include_prompt": false}',
            "including the prompt",
        ),
        ("modules.json", '[{"type": "models.Dense"}]', "Dense"),
        ("config.json", "{", "not valid JSON"),
        ("config.json", '{"hidden_size": 9}', "has vectors of 8 dimensions, its description says 9"),
        ("tokenizer.json", "{}", "not a tokenizer file"),
        ("model.onnx", "nonsense", "onnxruntime can open"),
    ],
)
def test_files_that_cannot_be_used_are_named(tiny_onnx, name, content, message):
    folder = tiny_onnx()
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match=message):
        OnnxModel.from_folder(folder)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ({"inputs": ("input_ids", "past_key_values")}, "needs inputs"),
        ({"rank": 2, "inputs": ("input_ids",)}, "no output"),
    ],
)
def test_graphs_that_are_no_encoders(tiny_onnx, graph, message):
    with pytest.raises(ModelError, match=message):
        OnnxModel.from_folder(tiny_onnx(**graph))


def test_missing_pieces_are_named(tiny_onnx, tmp_path):
    with pytest.raises(ModelError, match="not a folder"):
        OnnxModel.from_folder(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"no \.onnx file"):
        OnnxModel.from_folder(tmp_path)
    folder = tiny_onnx()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json is missing"):
        OnnxModel.from_folder(folder)


def run_with_hub(code: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """The hub's address is read when its client is imported: a process of its own for each."""
    env = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    env |= {"NO_PROXY": "127.0.0.1", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def test_a_hub_out_of_reach_says_what_to_do(tmp_path):
    code = "from dartboard.embeddings import OnnxModel; OnnxModel.from_hub('someone/some-model')"
    done = run_with_hub(code, "http://127.0.0.1:9", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert "ModelError: model 'someone/some-model' could not be fetched from the hub" in last
    assert "OnnxModel.from_folder on a folder that holds model.onnx" in last


def test_a_model_from_a_hub(tiny_onnx, serve, tmp_path):
    """A hub of one repository, over HTTP, read through the real client."""
    folder = tiny_onnx()
    put(folder, "config_sentence_transformers.json", {"prompts": {"query": "q: "}})
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    commit = "0123456789abcdef0123456789abcdef01234567"

    def answer(request):
        path = request.path.split("?")[0]
        if path.startswith("/api/models/"):
            names = [{"rfilename": name} for name in files] + [{"rfilename": "pytorch_model.bin"}]
            tree = [{"type": "file", "path": name, "size": len(files[name]), "oid": "0"} for name in files]
            info = tree if "/tree/" in path else {"id": "me/tiny", "sha": commit, "siblings": names}
            return 200, json.dumps(info).encode(), {"content-type": "application/json"}
        content = files[path.split(f"/resolve/{commit}/")[1]]
        return 200, content, {"etag": f'"{len(content)}"', "x-repo-commit": commit}

    server = serve(answer)
    code = (
        "from dartboard.embeddings import OnnxModel; m = OnnxModel.from_hub('me/tiny', revision='main');"
        "print(m.encode_query('hello').shape, m.description.name, m.description.query_prefix)"
    )
    done = run_with_hub(code, server.url, tmp_path)
    assert done.stdout.strip() == "(8,) tiny q:", done.stderr[-2000:]
    assert not any("pytorch_model" in request.path for request in server.requests)
