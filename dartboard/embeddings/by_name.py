"""Models by name, as a configuration writes them.

default                              all-MiniLM-L6-v2, carried along
onnx:PATH                            a folder in the usual ONNX layout
sentence-transformers:NAME-OR-PATH   anything that library loads (extra: torch)
openai:MODEL[@BASE_URL]              an OpenAI-compatible endpoint; OPENAI_API_KEY
gemini:MODEL[@BASE_URL]              Google's endpoint; GEMINI_API_KEY

Pair scorers by name:

late-interaction                     over the token vectors of the embedding model
cross-encoder:PATH                   a folder with a cross-encoder (extra: torch)
"""

from typing import Any

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.endpoint_names import EndpointName, endpoint_name
from dartboard.embeddings.pairs import PairScorer
from dartboard.errors import ConfigError

FORMS = "default, onnx:PATH, sentence-transformers:NAME, openai:MODEL[@BASE_URL], gemini:MODEL[@BASE_URL]"
PAIR_SCORERS = "late-interaction, cross-encoder:PATH"


def model_by_name(name: str, *, threads: int | None = None, send_key: bool = True) -> EmbeddingModel:
    """The model, loaded; ``threads`` of None leaves their number to the model, and only ONNX models heed it.

    Without ``send_key`` the API key of the environment is not sent to the endpoint.

    The default model is one object for all who ask without ``threads``.
    """
    kind, colon, rest = name.strip().partition(":")
    if kind == "default" and not colon:
        return _default(threads)
    if kind == "onnx" and rest:
        return _onnx(rest, threads)
    if kind == "sentence-transformers" and rest:
        return _sentence_transformers(rest)
    if (named := endpoint_name(name)) is not None:
        return _at_endpoint(named, send_key)
    raise ConfigError(f"unknown model {name!r}: use {FORMS}")


def pair_scorer_by_name(name: str, model: EmbeddingModel) -> PairScorer:
    """The pair scorer, loaded; ``model`` is the embedding model, whose token vectors it may use."""
    kind, colon, path = name.strip().partition(":")
    if kind == "late-interaction" and not colon:
        from dartboard.embeddings.late_interaction import LateInteraction

        tokens: Any = model
        if not hasattr(tokens, "token_vectors"):
            raise ConfigError(
                f"{model.name} has no token vectors, which late-interaction needs: use cross-encoder:PATH, "
                "or another embedding model"
            )
        return LateInteraction(tokens)
    if kind == "cross-encoder" and path:
        from dartboard.embeddings.cross_encoder import CrossEncoder

        return CrossEncoder(path)
    raise ConfigError(f"unknown reranker {name!r}: use {PAIR_SCORERS}")


def _default(threads: int | None) -> EmbeddingModel:
    if threads is None:
        from dartboard.embeddings.default import default_model

        return default_model()
    from dartboard.embeddings.onnx import OnnxModel

    return OnnxModel.bundled(threads=threads)


def _onnx(path: str, threads: int | None) -> EmbeddingModel:
    from dartboard.embeddings.onnx import OnnxModel

    return OnnxModel.from_folder(path, threads=threads)


def _sentence_transformers(name: str) -> EmbeddingModel:
    from dartboard.embeddings.sentence_transformers import SentenceTransformerModel

    return SentenceTransformerModel(name)


def _at_endpoint(named: EndpointName, send_key: bool) -> EmbeddingModel:
    if named.kind == "openai":
        from dartboard.embeddings.openai import OpenAIModel

        return OpenAIModel(named.base_url, named.model, api_key=None if send_key else "")
    if not send_key:
        raise ConfigError(
            f"gemini:{named.model} at {named.base_url} needs a key, and GEMINI_API_KEY goes only to hosts "
            "that you named: give the model by --model, or model=… in Python"
        )
    from dartboard.embeddings.gemini import GeminiModel

    return GeminiModel(named.model, base_url=named.base_url)
