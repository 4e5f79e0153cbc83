"""ColBERT checkpoints in the usual layout (Khattab & Zaharia, 2020): one vector per token.

::

    config.json                              the encoder: BERT or similar
    model.safetensors or pytorch_model.bin   its weights, and linear.weight, the projection (dim, hidden)
    artifact.metadata                        query_maxlen, doc_maxlen, markers, mask_punctuation … (optional)
    tokenizer.json                           the tokenizer

A query becomes ``[CLS] [Q] words [SEP]`` and is padded with ``[MASK]`` to ``query_maxlen``; the masks become
vectors too (query augmentation). A passage becomes ``[CLS] [D] words [SEP]``, without vectors for
punctuation. Every vector is projected and scaled to unit length. Needs the extra ``torch``.
"""

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.model_files import torch_fingerprint
from dartboard.embeddings.texts import batches_by_length, check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import MissingExtraError, ModelError
from dartboard.utils import unit_rows

LAYOUT = "config.json, tokenizer.json, and model.safetensors or pytorch_model.bin with linear.weight"
PROJECTION = "linear.weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColbertConfig:
    """How a checkpoint encodes texts: the names and defaults of its ``artifact.metadata``."""

    query_maxlen: int = 32
    doc_maxlen: int = 220
    query_token_id: str = "[unused0]"  # noqa: S105
    doc_token_id: str = "[unused1]"  # noqa: S105
    attend_to_mask_tokens: bool = False
    mask_punctuation: bool = True


class ColbertModel:
    """Unit token vectors from a ColBERT checkpoint in a local folder."""

    def __init__(self, path: str | Path, *, device: str = "cpu") -> None:
        folder = Path(path)
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingExtraError("transformers", "torch", "ColbertModel") from error
        if not folder.is_dir():
            raise ModelError(f"{folder} is not a folder: give one that holds {LAYOUT}")
        self.config = _read_config(folder)
        self._name = folder.resolve().name
        self._torch, self._device = torch, device
        weights = _load_weights(folder)
        try:
            encoder_config = transformers.AutoConfig.from_pretrained(str(folder), local_files_only=True)
            encoder = transformers.AutoModel.from_config(encoder_config)
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            raise ModelError(f"{folder} is no ColBERT checkpoint: {error}. It holds {LAYOUT}") from error
        self._projection = _fill(encoder, weights, folder).to(device)
        self._encoder = encoder.eval().to(device)
        longest = int(getattr(encoder_config, "max_position_embeddings", 512))
        self._longest = {
            True: min(self.config.query_maxlen, longest),
            False: min(self.config.doc_maxlen, longest),
        }
        self._markers = {
            True: self._id_of(self.config.query_token_id),
            False: self._id_of(self.config.doc_token_id),
        }
        self._skipped = self._punctuation() if self.config.mask_punctuation else frozenset()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._name

    @property
    def token_dim(self) -> int:
        """Dimension of the token vectors."""
        return int(self._projection.shape[0])

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of all weights, the vocabulary and the settings."""
        config = sorted(asdict(self.config).items())
        vocabulary = sorted(self._tokenizer.get_vocab().items())
        tensors = {**self._encoder.state_dict(), PROJECTION: self._projection}
        return torch_fingerprint(self.name, config, vocabulary, tensors=tensors)

    def token_vectors(
        self,
        texts: str | Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_DOCUMENT,
        batch_size: int = 32,
    ) -> list[Vectors]:
        """``(t_i, dim)`` float32 for each text; for a query, t_i is always ``query_maxlen``."""
        listed = check_texts(texts)
        asked = TaskType(task) is not TaskType.RETRIEVAL_DOCUMENT
        found: dict[int, Vectors] = {}
        for rows in batches_by_length(listed, batch_size):
            ids = [self._ids(listed[row], asked) for row in rows]
            for row, own, states in zip(rows, ids, self._states(ids, asked), strict=True):
                found[row] = unit_rows(states[self._kept(own, asked)])
        return [found[row] for row in range(len(listed))]

    def tokens(
        self, texts: str | Sequence[str], *, task: TaskType = TaskType.RETRIEVAL_DOCUMENT
    ) -> list[list[str]]:
        """The tokens of :meth:`token_vectors`, in its order."""
        asked = TaskType(task) is not TaskType.RETRIEVAL_DOCUMENT
        spelled = {self._markers[asked]: "[Q]" if asked else "[D]"}
        rows = []
        for text in check_texts(texts):
            ids = self._ids(text, asked)
            kept = [ids[at] for at in self._kept(ids, asked)]
            rows.append([spelled.get(id) or str(self._tokenizer.convert_ids_to_tokens(id)) for id in kept])
        return rows

    def _ids(self, text: str, asked: bool) -> list[int]:
        most = self._longest[asked]
        words = self._tokenizer(text, add_special_tokens=False, truncation=True, max_length=most - 3)
        tokenizer = self._tokenizer
        ids = [tokenizer.cls_token_id, self._markers[asked], *words["input_ids"], tokenizer.sep_token_id]
        return ids + [tokenizer.mask_token_id] * (most - len(ids)) if asked else ids

    def _kept(self, ids: list[int], asked: bool) -> list[int]:
        return [at for at, id in enumerate(ids) if asked or id not in self._skipped]

    def _states(self, rows: list[list[int]], asked: bool) -> Vectors:
        torch, width = self._torch, max(map(len, rows))
        padding = self._tokenizer.pad_token_id
        ids = torch.tensor([row + [padding] * (width - len(row)) for row in rows], device=self._device)
        unseen = [padding]
        if asked and not self.config.attend_to_mask_tokens:
            unseen.append(self._tokenizer.mask_token_id)
        attended = (~torch.isin(ids, torch.tensor(unseen, device=self._device))).long()
        with torch.inference_mode():
            states = self._encoder(input_ids=ids, attention_mask=attended).last_hidden_state
            projected = states.float() @ self._projection.T
        vectors: Vectors = np.asarray(projected.cpu().numpy(), dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise ModelError(f"ColBERT model {self.name!r} returned vectors that are not finite numbers")
        return vectors

    def _id_of(self, token: str) -> int:
        id = self._tokenizer.convert_tokens_to_ids(token)
        if id is None or id == self._tokenizer.unk_token_id:
            raise ModelError(
                f"the tokenizer of {self.name!r} has no token {token!r}: say in artifact.metadata which "
                "tokens mark questions and passages (query_token_id, doc_token_id)"
            )
        return int(id)

    def _punctuation(self) -> frozenset[int]:
        return frozenset(
            self._tokenizer(symbol, add_special_tokens=False)["input_ids"][0] for symbol in string.punctuation
        )


def _read_config(folder: Path) -> ColbertConfig:
    path = folder / "artifact.metadata"
    if not path.is_file():
        return ColbertConfig()
    try:
        stated = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(stated, Mapping):
        raise ModelError(f"{path} must hold an object of settings")
    known = {name: stated[name] for name in ColbertConfig.__slots__ if stated.get(name) is not None}
    for name, default in asdict(ColbertConfig()).items():
        if type(known.get(name, default)) is not type(default):
            raise ModelError(f"{path}: {name} must be of the kind of {default!r}, got {known[name]!r}")
    config = ColbertConfig(**known)
    if min(config.query_maxlen, config.doc_maxlen) < 4:
        raise ModelError(
            f"{path}: query_maxlen and doc_maxlen must be >= 4 (three special tokens and a word)"
        )
    return config


def _load_weights(folder: Path) -> dict[str, Any]:
    """The tensors by name; a PyTorch file is read with ``weights_only``, so that it cannot run code."""
    import torch
    from safetensors.torch import load_file

    try:
        if (folder / "model.safetensors").is_file():
            return dict(load_file(folder / "model.safetensors"))
        if (folder / "pytorch_model.bin").is_file():
            return dict(torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True))
    except Exception as error:  # both packages raise many unrelated types
        raise ModelError(f"the weights in {folder} cannot be read: {error}") from error
    raise ModelError(f"{folder} has no weights: it should hold {LAYOUT}")


def _fill(encoder: Any, weights: dict[str, Any], folder: Path) -> Any:
    """Load the weights into the encoder; returns the projection, ``(dim, hidden)``."""
    projection = weights.pop(PROJECTION, None)
    if projection is None:
        raise ModelError(f"{folder} has no {PROJECTION}: it is an encoder, not a ColBERT checkpoint")
    prefix = f"{encoder.base_model_prefix}."
    own = {name.removeprefix(prefix): tensor for name, tensor in weights.items()}
    try:
        outcome = encoder.load_state_dict(own, strict=False)
    except RuntimeError as error:
        raise ModelError(f"the weights in {folder} do not fit its config.json: {error}") from error
    lacking = [name for name in outcome.missing_keys if not name.startswith("pooler.")]
    if lacking:
        raise ModelError(f"the weights in {folder} lack {len(lacking)} tensors, such as {lacking[0]!r}")
    if projection.ndim != 2 or projection.shape[1] != encoder.config.hidden_size:
        raise ModelError(
            f"{PROJECTION} in {folder} has shape {tuple(projection.shape)}: expected (dim, "
            f"{encoder.config.hidden_size})"
        )
    return projection.float()
