"""Models that write answers, by name, as a configuration writes them."""

from dartboard.embeddings.by_name import endpoint_name
from dartboard.errors import ConfigError
from dartboard.http_client import Patience
from dartboard.llm.chat import LONGEST_ANSWER, Chat
from dartboard.llm.registry import FORMS, chat_model

ANSWER_TOKENS = 4096
"""Tokens of an answer, thoughts included; most answers take a few hundred."""
PATIENCE = Patience(timeout=60.0, attempts=4, longest_asked=60.0)
"""Somebody waits: a minute without a word is too long."""

NOT_CONFIGURED = (
    "no language model is configured to write answers: set DARTBOARD_ANSWER_MODEL to openai:MODEL@URL (such "
    'as openai:llama3.1@http://localhost:11434/v1) or gemini:MODEL[@URL], or write answer_model = "…" into '
    "dartboard.toml, or give --model; keys come from OPENAI_API_KEY and GEMINI_API_KEY"
)


def answer_model(
    spec: str,
    *,
    max_output_tokens: int = ANSWER_TOKENS,
    patience: Patience = PATIENCE,
    timeout: float = LONGEST_ANSWER,
) -> Chat:
    """The model that writes answers; nothing is sent before it is asked.

    Args:
        spec: ``openai:MODEL[@BASE_URL]`` or ``gemini:MODEL[@BASE_URL]``.
        max_output_tokens: the most that an answer may have, thoughts included.
        patience: retries, and how long nothing of an answer may come.
        timeout: how long all of an answer may take; infinity is no limit.

    Raises:
        ConfigError: no model is named, the name has another form, or its key is missing.
    """
    if not spec.strip():
        raise ConfigError(NOT_CONFIGURED)
    named = endpoint_name(spec)
    if named is None:
        raise ConfigError(f"unknown model for answers {spec!r}: use {FORMS}")
    if not timeout > 0:
        raise ConfigError(f"the time for an answer must be a positive number of seconds, got {timeout}")
    model = chat_model(named, max_output_tokens=max_output_tokens, patience=patience)
    model.longest = timeout
    return model
