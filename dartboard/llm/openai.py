"""Any endpoint that speaks OpenAI's ``/v1/chat/completions``: OpenAI, Ollama, vLLM, LM Studio …"""

import re
from collections.abc import Mapping
from typing import Any, Unpack

from dartboard.embeddings.by_name import OPENAI_URL
from dartboard.http_client import RequestError, checked_key
from dartboard.llm.chat import Chat, ChatOptions, Piece, token_count

_SMALL_OUTPUT = 1024
_OUTPUT = "output"

# What an endpoint complains of, by the part of the body that is then left out, renamed or made smaller.
_COMPLAINTS = {
    "stream_options": "stream_options",
    "temperature": "temperature",
    "seed": r"\bseed\b",
    "max_tokens": "max_tokens|max_completion_tokens",
    _OUTPUT: "max_tokens|max_completion_tokens|context.length|max_model_len",
}


class OpenAIChat(Chat):
    """Asks at temperature 0 and with a seed; leaves out what an endpoint refuses.

    Where the limit of output does not fit into a small model's context, 1,024 tokens take its place.

    Args:
        model: the name that the endpoint knows the model by.
        base_url: ends before ``/chat/completions``.
        api_key: else that of ``OPENAI_API_KEY``; local servers need none.
        options: as in :class:`~dartboard.llm.chat.Chat`.
    """

    kind = "openai"
    default_url = OPENAI_URL

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        **options: Unpack[ChatOptions],
    ) -> None:
        key = checked_key(api_key, "OPENAI_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        super().__init__(model, base_url, headers=headers, secret=key, **options)

    def _request(self, text: str, system: str, attempt: int, *, stream: bool) -> tuple[str, dict[str, Any]]:
        messages = [{"role": "system", "content": system}] if system else []
        limit = "max_completion_tokens" if "max_tokens" in self._left_out else "max_tokens"
        small = _OUTPUT in self._left_out
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages, {"role": "user", "content": text}],
            limit: min(self.max_output_tokens, _SMALL_OUTPUT) if small else self.max_output_tokens,
            "temperature": 0.7 if attempt else 0,
            "seed": attempt,
        }
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return "/chat/completions", {key: part for key, part in body.items() if key not in self._left_out}

    def _optional(self, error: RequestError, body: Mapping[str, Any]) -> str | None:
        """What the message names; the limit of output stays, under another name or smaller."""
        named = [part for part, words in _COMPLAINTS.items() if re.search(words, str(error).lower())]
        sent = (part for part in named if part in body or part == _OUTPUT)
        return next((part for part in sent if part not in self._left_out), None)

    def _read(self, event: dict[str, Any]) -> Piece:
        usage = _mapping(event.get("usage"))
        choices = event.get("choices")
        choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
        message = _mapping(choice.get("message")) or _mapping(choice.get("delta"))
        texts = (message.get(part) for part in ("content", "refusal"))
        finish = choice.get("finish_reason")
        return Piece(
            text=next((text for text in texts if isinstance(text, str) and text), ""),
            finish=finish if isinstance(finish, str) else "",
            input_tokens=token_count(usage.get("prompt_tokens")),
            output_tokens=token_count(usage.get("completion_tokens")),
        )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
