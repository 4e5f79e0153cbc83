"""Models that run with torch: sentence-transformers, cross-encoders, SPLADE and DPR; the extra ``torch``.

:class:`SentenceTransformerModel` is any embedding model of sentence-transformers, :class:`CrossEncoder` reads
both texts at once (accurate but slow; a matrix needs n² pairs). :class:`SpladeModel` is a learned sparse
encoder (Formal et al., 2021); any folder that ``SparseEncoder`` loads works: one that it saved, or a plain
masked language model. :class:`TwoTowers` combines two models, one for queries and one for passages, as in DPR
(Karpukhin et al., 2020); dartboard compares by cosine, as everywhere.

A name that is no folder is looked up on the Hugging Face hub, with one short try: without a network, the
model comes from the hub's local cache or is refused at once.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations_with_replacement
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.embeddings.base import PAPER_BOUNDS, BatchModel, EmbeddingModel, Progress, TaskModel
from dartboard.embeddings.descriptions import ModelDescription, TaskType, document_prompt, known_description
from dartboard.embeddings.model_files import torch_fingerprint
from dartboard.embeddings.texts import batches_by_length, check_batch_size, check_texts
from dartboard.embeddings.vectors import Scores, Vectors
from dartboard.errors import ConfigError, MissingExtraError, ModelError

_BATCHES = 8
"""Batches between two deadline checks; the model sorts pairs by length within them."""
_HUB_SECONDS = 5
_ENTRIES = ("modules.json", "config.json")
COLBERT_LAYOUT = "config.json with HF_ColBERT, tokenizer.json, and model.safetensors with linear.weight"
_KINDS = ("DPRQuestionEncoder", "DPRContextEncoder")


def load(library: str, kind: str, user: str, name: str | Path, advice: str, **options: Any) -> Any:
    """An object of a class of sentence-transformers or transformers, from a folder or the hub.

    Raises:
        MissingExtraError: the library is not installed.
        ModelError: the model cannot be loaded; ``advice`` says which folder to give.
    """
    try:
        make = getattr(__import__(library), kind)
    except ImportError as error:
        raise MissingExtraError(library.replace("_", "-"), "torch", user) from error
    if isinstance(name, Path) and not name.is_dir():
        raise ModelError(f"{name} is not a folder: give one with {advice}", field="model")
    there = Path(name).is_dir()
    try:
        if library == "transformers":
            make = make.from_pretrained
        return make(str(name), local_files_only=there or not _hub_answers(str(name)), **options)
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"{user}: {str(name)!r} could not be loaded: {reason[0]}. Give the path of a local folder with "
            f"{advice}",
            field="model",
        ) from error


def _hub_answers(name: str) -> bool:
    """Whether the hub can be reached; its own client would retry for minutes."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=_HUB_SECONDS)
    except Exception as error:  # noqa: BLE001 - of whatever HTTP client the hub's package uses
        return hasattr(error, "response")  # it answered, if only that it has no such model
    return True


class SentenceTransformerModel(BatchModel):
    """A model with the pooling, normalisation and prompts of its own files.

    Args:
        model_name: A name on the Hugging Face hub, or the path of a folder.
        device: The torch device.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ModelError: the model cannot be loaded.
    """

    def __init__(self, model_name: str = "all-MiniLM-L6-v2", device: str = "cpu") -> None:
        advice = "modules.json and its weights, as SentenceTransformer.save writes it"
        self.model = load(
            "sentence_transformers",
            "SentenceTransformer",
            type(self).__name__,
            model_name,
            advice,
            device=device,
        )
        self._description = _describe(self.model, model_name)

    @property
    def description(self) -> ModelDescription:
        """The description from the model's files."""
        return self._description

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of the modules, all weights and the prompts."""
        prompts = sorted((self.model.prompts or {}).items())
        tensors = self.model.state_dict()
        return torch_fingerprint(self.name, repr(self.model), prompts, tensors=tensors, with_dtypes=True)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text before truncation, including special tokens: compare with ``max_tokens``."""
        ids = self.model.tokenizer(check_texts(texts), truncation=False, verbose=False)["input_ids"]
        return [len(row) for row in ids]

    def word_pieces(self) -> list[str]:
        """The tokenizer's vocabulary by id, in its own spelling."""
        vocabulary: dict[str, int] = self.model.tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        is_document = task is TaskType.RETRIEVAL_DOCUMENT
        encode = self.model.encode_document if is_document else self.model.encode_query
        prompt = self._description.prefix(task)
        raw = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False)
        return np.asarray(raw, dtype=np.float32)


def _describe(model: Any, model_name: str) -> ModelDescription:
    """From the model's files; prefixes and σ from dartboard's table if the files have none."""
    known = known_description(model_name)
    prompts = {name: prompt for name, prompt in (model.prompts or {}).items() if prompt}
    if not prompts and known:
        prompts = {"query": known.query_prefix, "document": known.document_prefix}
    modules = [type(module).__name__ for module in model]
    return ModelDescription(
        name=model_name.rstrip("/").rsplit("/", maxsplit=1)[-1],
        dim=_dimension(model),
        max_tokens=model.max_seq_length or 512,
        query_prefix=prompts.get("query", ""),
        document_prefix=document_prompt(prompts),
        normalize="Normalize" in modules,
        pooling="cls" if "cls" in [getattr(module, "pooling_mode", None) for module in model] else "mean",
        sigma=known.sigma if known else None,
    )


def _dimension(model: Any) -> int:
    """The dimension; version 6 renamed the method."""
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(ask())


class CrossEncoder:
    """A pair scorer from sentence-transformers; scores are the model's logits, not probabilities.

    Args:
        model_name: A name on the Hugging Face hub, or the path of a folder.
        device: The torch device.
        batch_size: How many pairs the model reads at once.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        ModelError: the model cannot be loaded, or has several labels.
    """

    def __init__(
        self,
        model_name: str = "cross-encoder/ms-marco-MiniLM-L-12-v2",
        device: str = "cpu",
        batch_size: int = 32,
    ) -> None:
        check_batch_size(batch_size)
        advice = "config.json, model.safetensors and tokenizer.json"
        self.model = load(
            "sentence_transformers", "CrossEncoder", type(self).__name__, model_name, advice, device=device
        )
        if self.model.num_labels != 1:
            raise ModelError(
                f"cross-encoder {model_name!r} has {self.model.num_labels} labels; one is needed"
            )
        self.model_name = model_name
        self.batch_size = batch_size
        from torch.nn import Identity

        self._activation = Identity()
        self._lock = Lock()

    @property
    def bounds(self) -> tuple[float, float]:
        """The range of logits that the paper uses for scaling."""
        return PAPER_BOUNDS

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)`` logits of the query with each passage."""
        (asked,) = check_texts([query])
        return self._predict([(asked, passage) for passage in check_texts(passages)])

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)`` logits: the upper triangle and the diagonal are computed, the rest is mirrored."""
        texts = check_texts(passages)
        scores = np.empty((len(texts), len(texts)), dtype=np.float64)
        upper = np.triu_indices(len(texts))
        scores[upper] = self._predict(list(combinations_with_replacement(texts, 2)))
        scores.T[upper] = scores[upper]
        return scores

    def _predict(self, pairs: list[tuple[str, str]]) -> Scores:
        if not pairs:
            return np.empty(0, dtype=np.float64)
        scores = np.concatenate(
            [
                self._logits(pairs[start : start + _BATCHES * self.batch_size])
                for start in range(0, len(pairs), _BATCHES * self.batch_size)
            ]
        )
        if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
            raise ModelError(f"cross-encoder {self.model_name!r} returned scores that are not finite numbers")
        return scores

    def _logits(self, pairs: list[tuple[str, str]]) -> Scores:
        check()
        with self._lock:  # a fast tokenizer is not thread-safe
            raw = self.model.predict(
                pairs, batch_size=self.batch_size, activation_fn=self._activation, show_progress_bar=False
            )
        return np.asarray(raw, dtype=np.float64)


class TermWeights(NamedTuple):
    """``terms``, ``(m,)`` int32, increasing; ``weights``, ``(m,)`` float32, all > 0."""

    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class SparseModel(Protocol):
    """Texts to weighted terms."""

    @property
    def name(self) -> str:
        """The model's name for people."""

    @property
    def fingerprint(self) -> str:
        """An id that changes when the term weights change."""

    def encode_query(self, text: str) -> TermWeights:
        """The terms of one query."""

    def encode_documents(self, texts: Sequence[str], *, batch_size: int = ...) -> list[TermWeights]:
        """The terms of each passage."""

    def term(self, term: int) -> str:
        """The spelling of a term."""


class SpladeModel:
    """A sparse encoder from a folder; ``max_terms`` keeps only the heaviest terms of a text."""

    def __init__(self, path: str | Path, *, device: str = "cpu", max_terms: int | None = None) -> None:
        if max_terms is not None and max_terms < 1:
            raise ConfigError(f"max_terms must be >= 1 or None, got {max_terms}")
        advice = (
            "modules.json, as SparseEncoder.save writes it, or a masked language model with its tokenizer"
        )
        if Path(path).is_dir() and not any(Path(path, name).is_file() for name in _ENTRIES):
            raise ModelError(f"{path} holds no model: expected {' or '.join(_ENTRIES)} in it", field="model")
        self.model = load(
            "sentence_transformers", "SparseEncoder", type(self).__name__, str(path), advice, device=device
        )
        self._path = Path(path)
        self._modules = repr(self.model)  # now, because pooling adds its dimension when it first runs
        self._max_terms = max_terms

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._path.name

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of the modules, all weights, the prompts and ``max_terms``."""
        reading = (sorted((self.model.prompts or {}).items()), self._max_terms)
        tensors = self.model.state_dict()
        return torch_fingerprint(self.name, self._modules, reading, tensors=tensors, with_dtypes=True)

    def encode_query(self, text: str) -> TermWeights:
        """The terms of one query."""
        return self._encode(self.model.encode_query, check_texts([text]))[0]

    def encode_documents(self, texts: Sequence[str], *, batch_size: int = 16) -> list[TermWeights]:
        """The terms of each passage."""
        listed = check_texts(texts)
        found: dict[int, TermWeights] = {}
        for rows in batches_by_length(listed, batch_size):
            made = self._encode(self.model.encode_document, [listed[row] for row in rows])
            found.update(zip(rows, made, strict=True))
        return [found[row] for row in range(len(listed))]

    def term(self, term: int) -> str:
        """The tokenizer's spelling."""
        return str(self.model.tokenizer.convert_ids_to_tokens(term))

    def _encode(self, encode: Any, texts: list[str]) -> list[TermWeights]:
        raw = (
            encode(texts, batch_size=len(texts), show_progress_bar=False, convert_to_sparse_tensor=False)
            .float()
            .cpu()
            .numpy()
        )
        if not np.isfinite(raw).all() or raw.min() < 0:
            raise ModelError(f"sparse encoder {self.name!r} returned weights that are not finite and >= 0")
        return [self._terms_of(row) for row in raw]

    def _terms_of(self, row: npt.NDArray[np.float32]) -> TermWeights:
        terms = np.flatnonzero(row)
        if self._max_terms is not None and len(terms) > self._max_terms:
            terms = np.sort(terms[np.argsort(-row[terms], kind="stable")[: self._max_terms]])
        return TermWeights(terms.astype(np.int32), row[terms].astype(np.float32))


class TwoTowers(TaskModel):
    """``context`` for passages, ``question`` for everything else."""

    def __init__(self, question: EmbeddingModel, context: EmbeddingModel) -> None:
        if question.embedding_dim != context.embedding_dim:
            raise ConfigError(
                f"{question.name!r} has {question.embedding_dim} dimensions and {context.name!r} "
                f"{context.embedding_dim}: use a pair that was trained together"
            )
        self.question, self.context = question, context

    @classmethod
    def from_folders(cls, question: str | Path, context: str | Path) -> Self:
        """A DPR pair from two folders."""
        return cls(
            DprEncoder(question, expected="DPRQuestionEncoder"),
            DprEncoder(context, expected="DPRContextEncoder"),
        )

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.question.name} + {self.context.name}"

    @property
    def embedding_dim(self) -> int:
        """The dimension of both."""
        return self.context.embedding_dim

    @property
    def max_tokens(self) -> int | None:
        """The limit of the tower for passages."""
        return self.context.max_tokens

    @cached_property
    def fingerprint(self) -> str:
        """Both fingerprints."""
        return f"{self.question.fingerprint}+{self.context.fingerprint}"

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Encode with the tower for the task."""
        is_passage = TaskType(task) is TaskType.RETRIEVAL_DOCUMENT
        tower = self.context if is_passage else self.question
        return tower.encode_task(texts, task, batch_size=batch_size, progress=progress)


class DprEncoder(BatchModel):
    """One DPR tower with transformers: the state of the first token, projected if the model does so."""

    def __init__(self, path: str | Path, *, expected: str | None = None, device: str = "cpu") -> None:
        folder, user = Path(path), type(self).__name__
        advice = (
            "config.json, model.safetensors and tokenizer.json of a DPRQuestionEncoder or DPRContextEncoder"
        )
        config = load("transformers", "AutoConfig", user, folder, advice)
        kind = next(iter(config.architectures or []), "")
        if kind not in _KINDS or (expected is not None and kind != expected):
            stated = kind or "model of no stated architecture"
            raise ModelError(f"{folder} holds a {stated}: give a folder with {advice}", field="model")
        loaded = load("transformers", kind, user, folder, advice)
        self._tokenizer = load("transformers", "AutoTokenizer", user, folder, advice)
        import torch

        self._torch, self._device = torch, device
        self.model = loaded.eval().to(device)
        self._description = ModelDescription(
            name=folder.resolve().name,
            dim=int(config.projection_dim or config.hidden_size),
            max_tokens=int(config.max_position_embeddings),
            normalize=False,
            pooling="cls",
        )

    @property
    def description(self) -> ModelDescription:
        """Dimension and length; DPR has no prefixes and does not normalise its vectors."""
        return self._description

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of all weights and the vocabulary."""
        vocabulary = sorted(self._tokenizer.get_vocab().items())
        kind = type(self.model).__name__
        return torch_fingerprint(self.name, kind, vocabulary, tensors=self.model.state_dict())

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        features = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._description.max_tokens, return_tensors="pt"
        )
        with self._torch.inference_mode():
            output = self.model(**features.to(self._device)).pooler_output
        return np.asarray(output.float().cpu().numpy(), dtype=np.float32)


class ColbertModel:
    """Unit token vectors of a ColBERT checkpoint in a local folder (Khattab & Zaharia, 2020).

    The folder is that of Stanford's ColBERT (``HF_ColBERT`` in ``config.json``, ``linear.weight`` among the
    weights, ``artifact.metadata``) or one that ``MultiVectorEncoder.save`` made. A query is padded with masks
    to a fixed length, and the masks become vectors too; punctuation of a passage does not.
    """

    def __init__(self, path: str | Path, *, device: str = "cpu") -> None:
        folder, user = Path(path), type(self).__name__
        _check_colbert(folder)
        self.model = load(
            "sentence_transformers", "MultiVectorEncoder", user, folder, COLBERT_LAYOUT, device=device
        )
        if not (folder / "modules.json").is_file():
            _check_loaded(self.model, folder, user)
        self._name = folder.resolve().name
        self._modules = repr(self.model)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self._name

    @property
    def token_dim(self) -> int:
        """Dimension of the token vectors."""
        return int(self.model.get_embedding_dimension())

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of the modules with their settings, all weights, the vocabulary and the markers."""
        vocabulary = sorted(self.model.tokenizer.get_vocab().items())
        prompts = sorted((self.model.prompts or {}).items())
        settings = [self._modules, *(module.get_config_dict() for module in self.model)]
        return torch_fingerprint(self.name, settings, prompts, vocabulary, tensors=self.model.state_dict())

    def token_vectors(
        self,
        texts: str | Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_DOCUMENT,
        batch_size: int = 32,
    ) -> list[Vectors]:
        """``(t_i, dim)`` float32 for each text; for a query, t_i is the checkpoint's length of queries."""
        listed = check_texts(texts)
        found: dict[int, Vectors] = {}
        for rows in batches_by_length(listed, batch_size):
            features = self._features([listed[row] for row in rows], task)
            for row, one in zip(rows, features, strict=True):
                kept = one["token_embeddings"][one["attention_mask"].bool()]
                found[row] = np.asarray(kept.float().cpu().numpy(), dtype=np.float32)
                if not np.isfinite(found[row]).all():
                    raise ModelError(f"ColBERT model {self.name!r} returned vectors that are not finite")
        return [found[row] for row in range(len(listed))]

    def tokens(
        self, texts: str | Sequence[str], *, task: TaskType = TaskType.RETRIEVAL_DOCUMENT
    ) -> list[list[str]]:
        """The tokens of :meth:`token_vectors`, in its order; the marker is ``[Q]`` or ``[D]``."""
        marker = "[D]" if TaskType(task) is TaskType.RETRIEVAL_DOCUMENT else "[Q]"
        spelled = []
        for one in self._features(check_texts(texts), task):
            ids = one["input_ids"][one["attention_mask"].bool()].tolist()
            words = [str(word) for word in self.model.tokenizer.convert_ids_to_tokens(ids)]
            spelled.append([words[0], marker, *words[2:]])
        return spelled

    def _features(self, texts: list[str], task: TaskType) -> list[dict[str, Any]]:
        passage = TaskType(task) is TaskType.RETRIEVAL_DOCUMENT
        encode = self.model.encode_document if passage else self.model.encode_query
        found: list[dict[str, Any]] = encode(
            texts, batch_size=len(texts), show_progress_bar=False, output_value=None
        )
        return found


def _check_colbert(folder: Path) -> None:
    """Refuse what is no checkpoint: the library would add a random projection without a word."""
    if not folder.is_dir() or (folder / "modules.json").is_file():
        return
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        metadata = folder / "artifact.metadata"
        stated = json.loads(metadata.read_text(encoding="utf-8")) if metadata.is_file() else {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder} is no ColBERT checkpoint: {error}. It holds {COLBERT_LAYOUT}") from error
    if not isinstance(stated, dict) or "HF_ColBERT" not in (config.get("architectures") or []):
        raise ModelError(
            f"{folder} is an encoder, not a ColBERT checkpoint: its config.json names no HF_ColBERT. It "
            f"should hold {COLBERT_LAYOUT}",
            field="model",
        )


def _check_loaded(model: Any, folder: Path, user: str) -> None:
    """Refuse a checkpoint in parts: the library would add random weights, or spell the markers."""
    _, told = load("transformers", "AutoModel", user, folder, COLBERT_LAYOUT, output_loading_info=True)
    missing = sorted(name for name in told["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise ModelError(
            f"{folder}: its weights lack {len(missing)} tensors of the encoder, such as {missing[0]}: copy "
            "the whole checkpoint",
            field="model",
        )
    vocabulary = model.tokenizer.get_vocab()
    for marker in (prompt.strip() for prompt in model.prompts.values()):
        if marker not in vocabulary:
            raise ModelError(
                f"{folder}: its tokenizer has no token {marker!r}, which marks questions or passages: copy "
                "the tokenizer of the checkpoint, or name its markers in artifact.metadata",
                field="model",
            )
