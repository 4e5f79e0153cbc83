"""Any endpoint that speaks OpenAI's ``/v1/chat/completions``: OpenAI, Ollama, vLLM, LM Studio …"""

import re
from collections.abc import Mapping
from typing import Any, Unpack

from dartboard.embeddings.by_name import OPENAI_URL
from dartboard.http_client import Reply, checked_key
from dartboard.llm.chat import ChatOptions, Piece, token_count
from dartboard.llm.streaming_chat import StreamingChat

_SMALL_OUTPUT = 1024
_OUTPUT = "output"
_USAGE = "stream_options"

# What an endpoint complains of, by the part of the body that is then left out, renamed or made smaller.
_COMPLAINTS = {
    _USAGE: _USAGE,
    "response_format": r"response_format|json_schema",
    "temperature": r"temperature",
    "seed": r"\bseed\b",
    "max_tokens": r"max_tokens|max_completion_tokens",
    _OUTPUT: r"max_tokens|max_completion_tokens|context.length|max_model_len",
}


class OpenAIChat(StreamingChat):
    """Asks for JSON by schema, temperature 0 and a seed; leaves out what an endpoint refuses.

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

    def _request(
        self,
        text: str,
        system: str,
        schema: Mapping[str, Any] | None,
        attempt: int,
        without: frozenset[str],
    ) -> tuple[str, dict[str, Any]]:
        messages = [{"role": "system", "content": system}] if system else []
        limit = "max_completion_tokens" if "max_tokens" in without else "max_tokens"
        most = min(self.max_output_tokens, _SMALL_OUTPUT) if _OUTPUT in without else self.max_output_tokens
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages, {"role": "user", "content": text}],
            limit: most,
            "temperature": 0.7 if attempt else 0,
            "seed": attempt,
        }
        if schema is not None:
            form = {"name": "verdict", "strict": True, "schema": dict(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return "/chat/completions", {key: part for key, part in body.items() if key not in without}

    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        path, body = self._request(text, system, None, 0, without)
        body["stream"] = True
        if _USAGE not in without:
            body[_USAGE] = {"include_usage": True}
        return path, body

    def _concede(self, reply: Reply, body: Mapping[str, Any], without: frozenset[str]) -> str | None:
        """What a 400 or 422 complains of; where it names nothing, the schema. The limit stays, renamed."""
        if reply.status not in (400, 422):
            return None
        named = [part for part, words in _COMPLAINTS.items() if re.search(words, reply.trouble.lower())]
        sent = [part for part in [*named, "response_format"] if part in body or part == _OUTPUT]
        return next((part for part in sent if part not in without), None)

    def _read(self, answer: dict[str, Any]) -> Piece:
        tokens = _tokens(answer)
        try:
            choice = answer["choices"][0]
            content = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            return Piece(trouble="the answer holds no message", **tokens)
        cut = self._cut() if choice.get("finish_reason") == "length" else ""
        if not isinstance(content, str) or not content:
            why = choice["message"].get("refusal") or choice.get("finish_reason")
            return Piece(trouble=cut or f"the message is empty ({why})", **tokens)
        return Piece(text=content, trouble=cut, **tokens)

    def _piece(self, event: dict[str, Any]) -> Piece:
        choice, delta = _choice(event)
        text = next((delta[part] for part in ("content", "refusal") if isinstance(delta.get(part), str)), "")
        finish = choice.get("finish_reason")
        return Piece(text=text, finish=finish if isinstance(finish, str) else "", **_tokens(event))

    def _thinks(self, event: dict[str, Any]) -> bool:
        """Thoughts have several names; all but the role of who speaks is something."""
        return any(value for name, value in _choice(event)[1].items() if name != "role")


def _choice(event: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first choice of an event and its delta, empty where there is none."""
    choices = event.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    choice = choice if isinstance(choice, dict) else {}
    delta = choice.get("delta")
    return choice, delta if isinstance(delta, dict) else {}


def _tokens(answer: dict[str, Any]) -> dict[str, Any]:
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return {
        "input_tokens": token_count(usage.get("prompt_tokens")),
        "output_tokens": token_count(usage.get("completion_tokens")),
    }
