"""Descriptions of models (dimension, limits, prefixes), and a table of common ones.

Many models encode queries and passages differently and expect a prefix on each (E5: ``"query: "`` and
``"passage: "``). A missing prefix lowers recall without any error, so the prefixes are part of a description.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Never

from dartboard.errors import ConfigError
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

Pooling = Literal["mean", "cls"]


class TaskType(StrEnum):
    """What a text is encoded for; ``TaskType("RETRIEVAL_QUERY")`` gives a task by its name."""

    RETRIEVAL_QUERY = "RETRIEVAL_QUERY"
    RETRIEVAL_DOCUMENT = "RETRIEVAL_DOCUMENT"
    CODE_RETRIEVAL_QUERY = "CODE_RETRIEVAL_QUERY"

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ConfigError(f"unknown task {value!r}: choose one of {', '.join(cls)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDescription:
    """How a model encodes texts.

    ``max_tokens`` includes special tokens. ``code_query_prefix`` None means the query prefix. ``sigma`` is
    the σ that likelihood calibration found for the model on the scaled cosine distance, or None if it was not
    measured.
    """

    name: str
    dim: int
    max_tokens: int = 512
    query_prefix: str = ""
    document_prefix: str = ""
    code_query_prefix: str | None = None
    normalize: bool = True
    pooling: Pooling = "mean"
    sigma: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("a model description needs a name")
        if self.dim < 1:
            raise ConfigError(f"dim must be >= 1, got {self.dim}")
        if self.max_tokens < 3:
            raise ConfigError(
                f"max_tokens must be >= 3 (two special tokens and a word), got {self.max_tokens}"
            )
        if self.pooling not in ("mean", "cls"):
            raise ConfigError(f"pooling must be 'mean' or 'cls', got {self.pooling!r}")
        if self.sigma is not None and not SMALLEST_SIGMA <= self.sigma <= LARGEST_SIGMA:
            raise ConfigError(
                f"sigma must be in [{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}] or be None, got {self.sigma}"
            )

    def prefix(self, task: TaskType) -> str:
        """The prefix for texts of this task."""
        if task == TaskType.RETRIEVAL_DOCUMENT:
            return self.document_prefix
        if task == TaskType.CODE_RETRIEVAL_QUERY and self.code_query_prefix is not None:
            return self.code_query_prefix
        return self.query_prefix


MINILM = ModelDescription(name="all-MiniLM-L6-v2", dim=384, max_tokens=256, sigma=0.09)

# name, dimension, maximum tokens, pooling, query prefix, document prefix
_REPRESENT = "Represent this sentence for searching relevant passages: "
_ROWS: tuple[tuple[str, int, int, Pooling, str, str], ...] = (
    ("e5-small-v2", 384, 512, "mean", "query: ", "passage: "),
    ("e5-base-v2", 768, 512, "mean", "query: ", "passage: "),
    ("e5-large-v2", 1024, 512, "mean", "query: ", "passage: "),
    ("multilingual-e5-small", 384, 512, "mean", "query: ", "passage: "),
    ("multilingual-e5-base", 768, 512, "mean", "query: ", "passage: "),
    ("multilingual-e5-large", 1024, 512, "mean", "query: ", "passage: "),
    ("nomic-embed-text", 768, 8192, "mean", "search_query: ", "search_document: "),
    ("nomic-embed-text-v1", 768, 8192, "mean", "search_query: ", "search_document: "),
    ("nomic-embed-text-v1.5", 768, 8192, "mean", "search_query: ", "search_document: "),
    ("bge-small-en-v1.5", 384, 512, "cls", _REPRESENT, ""),
    ("bge-base-en-v1.5", 768, 512, "cls", _REPRESENT, ""),
    ("bge-large-en-v1.5", 1024, 512, "cls", _REPRESENT, ""),
    ("mxbai-embed-large-v1", 1024, 512, "cls", _REPRESENT, ""),
    ("snowflake-arctic-embed-s", 384, 512, "cls", _REPRESENT, ""),
    ("text-embedding-3-small", 1536, 8191, "mean", "", ""),
    ("text-embedding-3-large", 3072, 8191, "mean", "", ""),
    ("text-embedding-ada-002", 1536, 8191, "mean", "", ""),
    ("text-embedding-004", 768, 2048, "mean", "", ""),
)

_KNOWN = {
    MINILM.name.lower(): MINILM,
    "gte-small": ModelDescription(name="gte-small", dim=384, sigma=0.025),
} | {
    name: ModelDescription(
        name=name, dim=dim, max_tokens=most, pooling=pooling, query_prefix=query, document_prefix=document
    )
    for name, dim, most, pooling, query, document in _ROWS
}


def known_description(model_name: str) -> ModelDescription | None:
    """The known description of a model; ignores the owner before ``/`` and letter case."""
    return _KNOWN.get(model_name.rstrip("/").rsplit("/", maxsplit=1)[-1].lower())


def document_prompt(prompts: Mapping[str, str]) -> str:
    """The prompt for passages of a sentence-transformers model, if it has one."""
    return next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), "")
