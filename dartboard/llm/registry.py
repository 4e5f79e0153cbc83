"""Language models by name, as a configuration writes them.

openai:MODEL[@BASE_URL]    an OpenAI-compatible endpoint; OPENAI_API_KEY where it wants one
gemini:MODEL[@BASE_URL]    Google's endpoint; GEMINI_API_KEY
"""

from typing import Unpack

from dartboard.embeddings.by_name import EndpointName, endpoint_name
from dartboard.errors import ConfigError
from dartboard.http_client import checked_key
from dartboard.llm.chat import Chat, ChatOptions
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.openai import OpenAIChat

FORMS = "openai:MODEL[@BASE_URL] or gemini:MODEL[@BASE_URL]"


def chat_model(name: EndpointName | str, *, need_key: bool = True, **options: Unpack[ChatOptions]) -> Chat:
    """The model at an endpoint; nothing is sent before it is asked.

    Args:
        name: one of the forms above, or the same as kind, model and address.
        need_key: whether a missing key of a provider's own endpoint is an error.
        options: as in :class:`~dartboard.llm.chat.Chat`.

    Raises:
        ConfigError: the name has another form, a key is missing, or an option cannot work.

    Example:
        ``chat_model("openai:llama3@http://localhost:11434/v1").complete("Say hello.")``
    """
    named = endpoint_name(name) if isinstance(name, str) else name
    if named is None:
        raise ConfigError(f"unknown language model {name!r}: use {FORMS}", field="llm")
    variable = f"{named.kind.upper()}_API_KEY"
    wants_key = named.kind == "gemini" or not named.given_url  # servers of one's own often want none
    if need_key and wants_key and checked_key(None, variable) is None:
        raise ConfigError(
            f"{named.kind}:{named.model} needs a key: set the variable {variable}", field="api_key"
        )
    if named.kind == "gemini":
        return GeminiChat(named.model, base_url=named.base_url, need_key=need_key, **options)
    return OpenAIChat(named.model, named.base_url, **options)
