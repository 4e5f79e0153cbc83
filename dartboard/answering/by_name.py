"""Models that write answers, by name, as a configuration writes them.

openai:MODEL[@BASE_URL]    an OpenAI-compatible endpoint; OPENAI_API_KEY where it wants one
gemini:MODEL[@BASE_URL]    Google's endpoint; GEMINI_API_KEY
"""

from dartboard.answering.chats import LONGEST_ANSWER, StreamingChat
from dartboard.answering.clock import checked_limit
from dartboard.answering.gemini import GeminiAnswers
from dartboard.answering.openai import OpenAIAnswers
from dartboard.embeddings.by_name import endpoint_name
from dartboard.errors import ConfigError
from dartboard.http_client import Patience, checked_key

FORMS = "openai:MODEL[@BASE_URL] or gemini:MODEL[@BASE_URL]"
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
) -> StreamingChat:
    """The model; nothing is sent before it is asked.

    ``patience.timeout`` is how long nothing of an answer may come, ``timeout`` how long all of it may take.
    """
    made = _made(spec, max_output_tokens, patience)
    made.longest = checked_limit(timeout)
    return made


def _made(spec: str, max_output_tokens: int, patience: Patience) -> StreamingChat:
    if not spec.strip():
        raise ConfigError(NOT_CONFIGURED)
    named = endpoint_name(spec)
    if named is None:
        raise ConfigError(f"unknown model for answers {spec!r}: use {FORMS}")
    if named.kind == "gemini":
        _need_key("GEMINI_API_KEY", spec)
        return GeminiAnswers(
            named.model, base_url=named.base_url, max_output_tokens=max_output_tokens, patience=patience
        )
    if not named.given_url:
        _need_key("OPENAI_API_KEY", spec)
    return OpenAIAnswers(named.model, named.base_url, max_output_tokens=max_output_tokens, patience=patience)


def _need_key(variable: str, spec: str) -> None:
    if checked_key(None, variable) is None:
        raise ConfigError(f"{spec} needs a key: set the variable {variable}")
