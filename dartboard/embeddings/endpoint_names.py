"""Models at an endpoint by name: ``openai:MODEL[@BASE_URL]`` and ``gemini:MODEL[@BASE_URL]``.

Embedding models, judges and models that write answers are named alike, and all of these names are read here.
"""

from dataclasses import dataclass
from typing import Literal

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"

EndpointKind = Literal["openai", "gemini"]


@dataclass(frozen=True, slots=True)
class EndpointName:
    """A model at an endpoint; ``given_url`` is empty where the name has none."""

    kind: EndpointKind
    model: str
    given_url: str = ""

    @property
    def base_url(self) -> str:
        """The URL given, else the provider's own."""
        return self.given_url or (OPENAI_URL if self.kind == "openai" else GEMINI_URL)


def endpoint_name(name: str) -> EndpointName | None:
    """The parts of a name; None where it is of another kind, or lacks the model or the URL after ``@``.

    The model ends at the first ``@``. That the URL is one is checked where it is used.
    """
    kind, _, rest = name.strip().partition(":")
    model, at, url = rest.partition("@")
    if not model or bool(at) != bool(url):
        return None
    if kind == "openai":
        return EndpointName("openai", model, url)
    return EndpointName("gemini", model, url) if kind == "gemini" else None
