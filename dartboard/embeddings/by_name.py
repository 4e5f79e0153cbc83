"""Models by name, as in configurations.

default                              all-MiniLM-L6-v2, bundled
onnx:PATH                            a folder in the usual ONNX layout
sentence-transformers:NAME-OR-PATH   any model of that library (extra: torch)
openai:MODEL[@BASE_URL]              an OpenAI-compatible endpoint; OPENAI_API_KEY
gemini:MODEL[@BASE_URL]              Google's endpoint; GEMINI_API_KEY

Pair scorers by name:

late-interaction                     over the token vectors of the embedding model
cross-encoder:PATH                   a folder with a cross-encoder (extra: torch)

Judges and chat models are named by their endpoint in the same way.
"""

from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from dartboard.embeddings.base import EmbeddingModel, PairScorer
from dartboard.errors import ConfigError

if TYPE_CHECKING:
    from dartboard.embeddings.onnx import OnnxModel

FORMS = "default, onnx:PATH, sentence-transformers:NAME, openai:MODEL[@BASE_URL], gemini:MODEL[@BASE_URL]"
PAIR_SCORERS = "late-interaction, cross-encoder:PATH"
OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"

_loading = Lock()


def default_model() -> "OnnxModel":
    """Load all-MiniLM-L6-v2, the default model.

    Returns:
        The model, 384 dimensions. It is loaded once per process; every caller and thread gets the same
        object.

    Raises:
        ModelError: the weights are missing, or their sha256 is wrong.

    Example:
        >>> model = default_model()
        >>> model.encode_documents(["Rotate the keys monthly."]).shape
        (1, 384)
    """
    with _loading:
        return _load_default()


@cache
def _load_default() -> "OnnxModel":
    from dartboard.embeddings.onnx import OnnxModel

    return OnnxModel.bundled()


def model_by_name(name: str, *, threads: int | None = None, send_key: bool = True) -> EmbeddingModel:
    """Load an embedding model.

    Args:
        name: One of the forms above.
        threads: For ONNX models; None uses the model's default, and ``default`` is then one shared object.
        send_key: Whether the API key of the environment is sent to the endpoint.

    Raises:
        ConfigError: the name has another form, or the model needs a key that may not be sent.
        ModelError: the model cannot be loaded.
    """
    from dartboard.embeddings.onnx import OnnxModel

    kind, colon, rest = name.strip().partition(":")
    if kind == "default" and not colon:
        return default_model() if threads is None else OnnxModel.bundled(threads=threads)
    if kind == "onnx" and rest:
        return OnnxModel.from_folder(rest, threads=threads)
    if kind == "sentence-transformers" and rest:
        from dartboard.embeddings.torch_models import SentenceTransformerModel

        return SentenceTransformerModel(rest)
    if (named := endpoint_name(name)) is not None:
        return _at_endpoint(named, send_key)
    raise ConfigError(f"unknown model {name!r}: use {FORMS}")


def pair_scorer_by_name(name: str, model: EmbeddingModel) -> PairScorer:
    """Load a pair scorer.

    Args:
        name: One of the forms above.
        model: The embedding model, whose token vectors it may use.

    Raises:
        ConfigError: the name has another form, or the model has no token vectors.
        ModelError: the cross-encoder cannot be loaded.
    """
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
        from dartboard.embeddings.torch_models import CrossEncoder

        return CrossEncoder(path)
    raise ConfigError(f"unknown reranker {name!r}: use {PAIR_SCORERS}")


@dataclass(frozen=True, slots=True)
class EndpointName:
    """A model at an endpoint, ``openai:MODEL[@BASE_URL]`` or ``gemini:MODEL[@BASE_URL]``.

    ``given_url`` is empty if the name has no URL.
    """

    kind: Literal["openai", "gemini"]
    model: str
    given_url: str = ""

    @property
    def base_url(self) -> str:
        """The given URL, otherwise the provider's own."""
        return self.given_url or (OPENAI_URL if self.kind == "openai" else GEMINI_URL)


def endpoint_name(name: str) -> EndpointName | None:
    """Parse a name; None if it has another form, or lacks the model or the URL after ``@``.

    The model's name ends at the first ``@``. The URL is checked where it is used.
    """
    kind, _, rest = name.strip().partition(":")
    model, at, url = rest.partition("@")
    if not model or bool(at) != bool(url):
        return None
    if kind == "openai":
        return EndpointName("openai", model, url)
    return EndpointName("gemini", model, url) if kind == "gemini" else None


def _at_endpoint(named: EndpointName, send_key: bool) -> EmbeddingModel:
    from dartboard.embeddings.remote import GeminiModel, OpenAIModel

    if named.kind == "openai":
        return OpenAIModel(named.base_url, named.model, api_key=None if send_key else "")
    if not send_key:
        raise ConfigError(
            f"gemini:{named.model} at {named.base_url} needs a key, and GEMINI_API_KEY goes only to hosts "
            "that you named: give the model by --model, or model=… in Python"
        )
    return GeminiModel(named.model, base_url=named.base_url)
