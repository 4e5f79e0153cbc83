"""Transformer encoders with onnxruntime: sentence vectors and token vectors, without torch."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dartboard.embeddings.base import BatchModel
from dartboard.embeddings.descriptions import MINILM, ModelDescription, TaskType
from dartboard.embeddings.model_files import (
    MINILM_GRAPH,
    bert_uncased_tokenizer,
    describe_folder,
    download,
    find_graph,
    load_tokenizer,
    sha256_of,
    verified_path,
)
from dartboard.embeddings.texts import batches_by_length, check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, ModelError
from dartboard.utils import unit_rows

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_STATE_OUTPUTS = ("last_hidden_state", "token_embeddings")
_INPUTS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
"""Inputs that a graph may have, and the attribute of a tokenizer's encoding that provides each."""
_MOST_THREADS = 8
_TOKENS_PER_THREAD = 128
_FEWEST_TOKENS = 256
"""Maximum tokens per run of the graph, including padding; a longer text runs alone.

With one and two threads, runs of 256 tokens took 6 to 18 % less processor time than runs of 1,024, most for
short texts. More threads were not measured; eight get 1,024 tokens.
"""
_LETTERS_A_TOKEN = 64
"""Characters per readable token that are passed to the tokenizer; the rest of a text is cut."""
_COUNTED = 100_000
"""Characters whose tokens are counted at once: a token takes about 300 bytes."""
_SPACE = re.compile(r"\s")
_LINE = "Don't: CASE, Ünïcode, 北京, ½ of it\tand\u200b [MASK] <mask>"
_BUNDLED = "all-MiniLM-L6-v2:5cd4d48f3097419f"
_BUNDLED_LINE = [101, 2123, 1005, 1056, 1024, 2553, 1010, 27260, 1010, 1781, 1755, 1010, 1092, 1997, 2009]
_BUNDLED_LINE += [1998, 103, 1026, 7308, 1028, 102]
"""The bundled model's fingerprint, if its tokenizer reads ``_LINE`` so: computing it takes 50 ms."""


class OnnxModel(BatchModel):
    """An encoder whose graph returns one state per token; the states are pooled here.

    ``batch_size`` is how many texts are tokenized at once. The graph runs on at most 256 tokens, with more
    than two threads on 128 for each, so memory is bounded for any batch size: 32 texts of 256 tokens at once
    took 1.2 GB.

    With the bundled model, a text's vector is bit-identical in any batch; with a model that quantises
    activations dynamically it is not.
    """

    def __init__(
        self,
        weights: str | Path,
        tokenizer: "Tokenizer",
        description: ModelDescription,
        *,
        threads: int | None = None,
    ) -> None:
        self._weights = Path(weights)
        self._description = description
        self._session = _open_session(self._weights, threads)
        self._most_tokens = max(_FEWEST_TOKENS, _TOKENS_PER_THREAD * self.threads)
        self._inputs = _input_names(self._session, self._weights)
        output = _find_states(self._session, self._weights)
        width = output.shape[2]
        if isinstance(width, int) and width != description.dim:
            raise ModelError(
                f"{self._weights} has vectors of {width} dimensions, its description says {description.dim}"
            )
        self._output = str(output.name)
        tokenizer.enable_truncation(description.max_tokens)
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        pads = (tokenizer.token_to_id(token) for token in ("[PAD]", "<pad>"))
        self._pad_id = next((pad for pad in pads if pad is not None), 0)

    @classmethod
    def bundled(cls, *, threads: int | None = None) -> Self:
        """all-MiniLM-L6-v2 from a package that dartboard depends on; see ``default_model``."""
        model = cls(verified_path(MINILM_GRAPH), bert_uncased_tokenizer(), MINILM, threads=threads)
        if model._tokenizer.encode(_LINE).ids == _BUNDLED_LINE:
            model.__dict__["fingerprint"] = _BUNDLED
        return model

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        *,
        filename: str | None = None,
        description: ModelDescription | None = None,
        threads: int | None = None,
    ) -> Self:
        """Load a model from a local folder in the layout of :mod:`dartboard.embeddings.model_files`.

        ``filename`` chooses a variant, as in ``"onnx/model_quantized.onnx"``. ``description`` overrides the
        folder's files.
        """
        folder = Path(path)
        return cls._from_files(folder, folder.resolve().name, filename, description, threads)

    @classmethod
    def from_hub(
        cls,
        repo_id: str,
        *,
        revision: str | None = None,
        filename: str | None = None,
        description: ModelDescription | None = None,
        threads: int | None = None,
    ) -> Self:
        """Load a model from the Hugging Face hub through its local cache; give a commit to pin it."""
        folder = download(repo_id, revision=revision, filename=filename)
        name = repo_id.rsplit("/", maxsplit=1)[-1]
        return cls._from_files(folder, name, filename, description, threads)

    @classmethod
    def _from_files(
        cls,
        folder: Path,
        name: str,
        filename: str | None,
        description: ModelDescription | None,
        threads: int | None,
    ) -> Self:
        weights = find_graph(folder, filename)
        stated = description or describe_folder(folder, name, lambda: _graph_dim(weights))
        return cls(weights, load_tokenizer(folder), stated, threads=threads)

    @property
    def description(self) -> ModelDescription:
        """The model's dimension, limits and prefixes."""
        return self._description

    @property
    def max_tokens(self) -> int:
        """Maximum tokens of a text, including special tokens; the rest is cut off."""
        return self._description.max_tokens

    @property
    def threads(self) -> int:
        """Number of threads for a batch."""
        return int(self._session.get_session_options().intra_op_num_threads)

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of weights, tokenizer and description.

        The tokenizer is hashed by its vocabulary and by its result for one line, because its serialised form
        changes between releases of its package.
        """
        reading = {key: value for key, value in asdict(self._description).items() if key != "sigma"}
        beside = self._weights.with_name(f"{self._weights.name}_data")  # external tensors of large models
        files = [self._weights, beside] if beside.is_file() else [self._weights]
        parts = [repr(sorted(reading.items())), *map(sha256_of, files)]
        parts += [repr(sorted(self._tokenizer.get_vocab().items())), repr(self._tokenizer.encode(_LINE).ids)]
        return f"{self.name}:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"

    def count_tokens(self, texts: str | Sequence[str]) -> list[int]:
        """Tokens of each text before truncation, including special tokens: compare with ``max_tokens``."""
        listed = check_texts(texts)
        added = len(self._tokenizer.encode("").ids)
        counts = [added] * len(listed)
        for group in _groups(listed):
            encodings = self._tokenizer.encode_batch([text for _, text in group])
            for (row, _), encoding in zip(group, encodings, strict=True):
                rest = sum(part.special_tokens_mask.count(0) for part in encoding.overflowing)
                counts[row] += len(encoding.ids) + rest - added
        return counts

    def word_pieces(self) -> list[str]:
        """The tokenizer's vocabulary by id, in its own spelling."""
        vocabulary = self._tokenizer.get_vocab()
        return sorted(vocabulary, key=vocabulary.__getitem__)

    def token_vectors(
        self,
        texts: str | Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_DOCUMENT,
        batch_size: int = 32,
    ) -> list[Vectors]:
        """The last hidden states of each text's tokens, unit length, ``(t_i, d)`` float32.

        Special tokens are excluded, unless a text has no others.
        """
        listed = check_texts(texts)
        found: dict[int, Vectors] = {}
        for rows in batches_by_length(listed, batch_size):
            encodings = self._tokenize([listed[row] for row in rows], task)
            for run, all_states in self._states(encodings):
                for at, states in zip(run, all_states, strict=True):
                    found[rows[at]] = unit_rows(states[_word_positions(encodings[at])])
        return [found[row] for row in range(len(listed))]

    def tokens(
        self, texts: str | Sequence[str], *, task: TaskType = TaskType.RETRIEVAL_DOCUMENT
    ) -> list[list[str]]:
        """The tokens of :meth:`token_vectors`, in its order."""
        encodings = self._tokenize(check_texts(texts), task)
        return [[encoding.tokens[at] for at in _word_positions(encoding)] for encoding in encodings]

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        encodings = self._tokenize(texts, task)
        vectors = np.empty((len(texts), self._description.dim), dtype=np.float32)
        for rows, states in self._states(encodings):
            vectors[rows] = self._pooled(states, np.array([len(encodings[row]) for row in rows]))
        return unit_rows(vectors) if self._description.normalize else vectors

    def _tokenize(self, texts: list[str], task: TaskType) -> "list[Encoding]":
        prefix = self._description.prefix(task)
        most = _LETTERS_A_TOKEN * self._description.max_tokens
        encodings: list[Encoding] = self._tokenizer.encode_batch([prefix + text[:most] for text in texts])
        return encodings

    def _states(self, encodings: "list[Encoding]") -> Iterator[tuple[list[int], Vectors]]:
        """The graph's states in runs of bounded size: the texts of a run, and ``(texts, longest, d)``."""
        # Longest first, so that the first text of a run gives its width.
        lengths = list(map(len, encodings))
        order = sorted(range(len(encodings)), key=lengths.__getitem__, reverse=True)
        while order:
            width = lengths[order[0]]
            most = max(1, self._most_tokens // max(1, width))
            rows, order = order[:most], order[most:]
            run = [encodings[row] for row in rows]
            feed = {name: self._padded(name, run, width) for name in self._inputs}
            states: npt.NDArray[Any] = self._session.run([self._output], feed)[0]
            yield rows, states.astype(np.float32, copy=False)

    def _padded(self, name: str, encodings: "list[Encoding]", width: int) -> npt.NDArray[np.int64]:
        """One input of the graph, ``(texts, width)``."""
        filler = self._pad_id if name == "input_ids" else 0
        table = np.full((len(encodings), width), filler, dtype=np.int64)
        for at, encoding in enumerate(encodings):
            table[at, : len(encoding)] = getattr(encoding, _INPUTS[name])
        return table

    def _pooled(self, states: Vectors, lengths: npt.NDArray[np.int64]) -> Vectors:
        """One vector per text from states ``(texts, longest, d)``; padding is ignored."""
        if self._description.pooling == "cls":
            return states[:, 0]
        inside = np.arange(states.shape[1]) < lengths[:, None]
        pooled: Vectors = np.where(inside[:, :, None], states, np.float32(0)).sum(axis=1)
        return pooled / lengths.astype(np.float32)[:, None]


def _groups(texts: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """The texts with their indices, long ones cut at spaces, in groups of bounded length."""
    group: list[tuple[int, str]] = []
    size = 0
    for row, text in enumerate(texts):
        start = 0
        while start < len(text):
            space = _SPACE.search(text, start + _COUNTED, start + 2 * _COUNTED)
            end = space.start() if space else min(start + 2 * _COUNTED, len(text))
            group.append((row, text[start:end]))
            size += end - start
            start = end
            if size >= _COUNTED:
                yield group
                group, size = [], 0
    if group:
        yield group


def _open_session(weights: Path, threads: int | None) -> Any:
    """A CPU session; ``threads`` None uses the available cores, at most eight."""
    import onnxruntime

    if threads is not None and threads < 1:
        raise ConfigError(f"threads must be >= 1 or None for the default, got {threads}")
    options = onnxruntime.SessionOptions()
    if threads is None:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = min(usable, _MOST_THREADS)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # do not block cores
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises many unrelated types
        raise ModelError(f"{weights} is not a model that onnxruntime can open: {error}") from error


def _input_names(session: Any, weights: Path) -> list[str]:
    names = [entry.name for entry in session.get_inputs()]
    if unknown := sorted(set(names) - _INPUTS.keys()):
        raise ModelError(
            f"{weights} needs inputs {unknown}; only {sorted(_INPUTS)} are supported: export an encoder"
        )
    return names


def _find_states(session: Any, weights: Path) -> Any:
    """The output with one state per token (rank 3); the usual names first."""
    ranked = [entry for entry in session.get_outputs() if len(entry.shape) == 3]
    if not ranked:
        raise ModelError(f"{weights} has no output (batch, tokens, dim): export it without its pooling")
    return min(ranked, key=lambda entry: entry.name not in _STATE_OUTPUTS)


def _graph_dim(weights: Path) -> int:
    """The dimension from the graph, for folders without ``config.json``."""
    width = _find_states(_open_session(weights, threads=1), weights).shape[2]
    if not isinstance(width, int):
        raise ModelError(f"{weights} does not state its dimension: add config.json with hidden_size")
    return width


def _word_positions(encoding: "Encoding") -> list[int]:
    words = [at for at, special in enumerate(encoding.special_tokens_mask) if not special]
    return words or list(range(len(encoding.ids)))
