"""Models by name, as a configuration writes them.

default                              all-MiniLM-L6-v2, carried along
onnx:PATH                            a folder in the usual ONNX layout
sentence-transformers:NAME-OR-PATH   anything that library loads (extra: torch)
openai:MODEL[@BASE_URL]              an OpenAI-compatible endpoint; OPENAI_API_KEY
gemini:MODEL                         Google's endpoint; GEMINI_API_KEY
"""

from collections.abc import Callable

from dartboard.embeddings.base import EmbeddingModel
from dartboard.errors import ConfigError

FORMS = "default, onnx:PATH, sentence-transformers:NAME, openai:MODEL[@BASE_URL], gemini:MODEL"


def model_by_name(name: str) -> EmbeddingModel:
    """The model, loaded."""
    kind, colon, rest = name.strip().partition(":")
    if kind == "default" and not colon:
        from dartboard.embeddings.default import default_model

        return default_model()
    if kind not in _LOADERS or not rest:
        raise ConfigError(f"unknown model {name!r}: use {FORMS}")
    return _LOADERS[kind](rest)


def _onnx(path: str) -> EmbeddingModel:
    from dartboard.embeddings.onnx import OnnxModel

    return OnnxModel.from_folder(path)


def _sentence_transformers(name: str) -> EmbeddingModel:
    from dartboard.embeddings.sentence_transformers import SentenceTransformerModel

    return SentenceTransformerModel(name)


def _openai(name: str) -> EmbeddingModel:
    from dartboard.embeddings.openai import OpenAIModel

    model, _, base_url = name.partition("@")
    return OpenAIModel(base_url, model) if base_url else OpenAIModel(model=model)


def _gemini(name: str) -> EmbeddingModel:
    from dartboard.embeddings.gemini import GeminiModel

    return GeminiModel(name)


_LOADERS: dict[str, Callable[[str], EmbeddingModel]] = {
    "onnx": _onnx,
    "sentence-transformers": _sentence_transformers,
    "openai": _openai,
    "gemini": _gemini,
}
