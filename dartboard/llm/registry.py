"""Language models by name, as a configuration writes them.

openai:MODEL[@BASE_URL]    an OpenAI-compatible endpoint; OPENAI_API_KEY where it wants one
gemini:MODEL[@BASE_URL]    Google's endpoint; GEMINI_API_KEY
"""

from typing import Unpack

from dartboard.embeddings.by_name import EndpointName
from dartboard.llm.chat import ChatOptions
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.streaming_chat import StreamingChat


def chat_model(
    named: EndpointName, *, need_key: bool = True, **options: Unpack[ChatOptions]
) -> StreamingChat:
    """The model at an endpoint; nothing is sent before it is asked.

    Args:
        named: kind, model and address.
        need_key: whether a missing key of Gemini is an error.
        options: as in :class:`~dartboard.llm.chat.Chat`.

    Raises:
        ConfigError: a key is missing, or an option cannot work.
    """
    if named.kind == "gemini":
        return GeminiChat(named.model, base_url=named.base_url, need_key=need_key, **options)
    return OpenAIChat(named.model, named.base_url, **options)
