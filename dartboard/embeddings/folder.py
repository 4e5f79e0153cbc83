"""Read a model folder in the layout that sentence-transformers and the hub use for ONNX.

::

    model.onnx or onnx/model.onnx        the graph (another file name can be chosen)
    tokenizer.json                       the tokenizer
    config.json                          hidden_size                    (optional, as are those below)
    sentence_bert_config.json            max_seq_length
    1_Pooling/config.json                mean or cls
    modules.json                         whether vectors are normalised
    config_sentence_transformers.json    prompts
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dartboard.embeddings.descriptions import (
    ModelDescription,
    Pooling,
    document_prompt,
    known_description,
)
from dartboard.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS = ("model.onnx", "onnx/model.onnx")
LAYOUT = "model.onnx or onnx/model.onnx, and tokenizer.json"

_POOLINGS: dict[str, Pooling] = {
    "mean": "mean",
    "pooling_mode_mean_tokens": "mean",
    "cls": "cls",
    "pooling_mode_cls_token": "cls",
}
_UNLIMITED = 1_000_000  # tokenizer files write "no limit" as a very large number


def find_weights(folder: Path, filename: str | None) -> Path:
    """The graph: ``filename`` where it is given, else one of the usual places."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder: give one that holds {LAYOUT}")
    for name in [filename] if filename else WEIGHTS:
        if (folder / name).is_file():
            return folder / name
    present = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.onnx"))
    raise ModelError(
        f"{folder} has no {filename or ' or '.join(WEIGHTS)}; it holds {present or 'no .onnx file'}: "
        "choose one of these as filename, or export the model to ONNX"
    )


def load_tokenizer(folder: Path) -> "Tokenizer":
    """The tokenizer in ``tokenizer.json``."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ModelError(f"{path} is missing: a model folder holds {LAYOUT}")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the tokenizers package raises bare Exception
        raise ModelError(f"{path} is not a tokenizer file: {error}") from error


def describe_folder(folder: Path, name: str, graph_dim: Callable[[], int]) -> ModelDescription:
    """What the folder's files say; where it has no prompts, what is known of a model of that name."""
    known = known_description(name)
    prompts = _read(folder, "config_sentence_transformers.json").get("prompts") or {}
    if known and not any(prompts.values()):
        prompts = {"query": known.query_prefix, "document": known.document_prefix}
    return ModelDescription(
        name=name,
        dim=_read(folder, "config.json").get("hidden_size") or graph_dim(),
        max_tokens=_max_tokens(folder),
        query_prefix=prompts.get("query", ""),
        document_prefix=document_prompt(prompts),
        normalize=_normalizes(folder),
        pooling=_pooling(folder, known),
        sigma=known.sigma if known else None,
    )


def _max_tokens(folder: Path) -> int:
    stated = (
        _read(folder, "sentence_bert_config.json").get("max_seq_length"),
        _read(folder, "tokenizer_config.json").get("model_max_length"),
        _read(folder, "config.json").get("max_position_embeddings"),
    )
    return next((int(most) for most in stated if most and most < _UNLIMITED), 512)


def _pooling(folder: Path, known: ModelDescription | None) -> Pooling:
    stated = _read(folder, "1_Pooling/config.json")
    if not stated:
        return known.pooling if known else "mean"
    modes = {name for name, on in stated.items() if name.startswith("pooling_mode_") and on}
    modes |= {str(stated["pooling_mode"])} if "pooling_mode" in stated else set()
    found = _POOLINGS.get(modes.pop()) if len(modes) == 1 else None
    if found is None or stated.get("include_prompt") is False:
        raise ModelError(
            f"{folder / '1_Pooling/config.json'} asks for a pooling other than 'mean' or 'cls' over all "
            "tokens, prompt included: load the model with SentenceTransformerModel"
        )
    return found


def _normalizes(folder: Path) -> bool:
    """As ``modules.json`` says; without one, yes."""
    modules = _read(folder, "modules.json")
    kinds = [str(module.get("type", "")).rsplit(".", maxsplit=1)[-1] for module in modules or []]
    if unknown := sorted(set(kinds) - {"Transformer", "Pooling", "Normalize"}):
        raise ModelError(
            f"{folder / 'modules.json'} has layers after pooling that an ONNX graph lacks: {unknown}"
        )
    return "Normalize" in kinds if kinds else True


def _read(folder: Path, name: str) -> Any:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from error
