"""Google's Gemini models over ``generateContent`` and ``streamGenerateContent``."""

import re
from collections.abc import Mapping
from typing import Any, Unpack

from dartboard.embeddings.by_name import GEMINI_URL
from dartboard.errors import ConfigError
from dartboard.http_client import Reply, checked_key
from dartboard.llm.chat import ChatOptions, Piece, token_count
from dartboard.llm.streaming_chat import StreamingChat

DEFAULT_MODEL = "gemini-3-pro-preview"
_CUT = "MAX_TOKENS"
_ENDS = {"STOP": "stop", _CUT: "length"}


class GeminiChat(StreamingChat):
    """The model thinks before it answers, and thoughts are paid as output; they are not shown.

    The temperature is left as the model has it: Google advises against lowering it for Gemini 3.

    Args:
        model: the name that the endpoint knows the model by.
        api_key: else that of ``GEMINI_API_KEY``.
        base_url: ends before ``/models``.
        need_key: without it a model that is never asked, but only estimated, needs none.
        options: as in :class:`~dartboard.llm.chat.Chat`.
    """

    kind = "gemini"
    default_url = GEMINI_URL

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        *,
        base_url: str = GEMINI_URL,
        need_key: bool = True,
        **options: Unpack[ChatOptions],
    ) -> None:
        key = checked_key(api_key, "GEMINI_API_KEY")
        if key is None and need_key:
            raise ConfigError("a Gemini model needs a key: give api_key or set GEMINI_API_KEY")
        headers = {"x-goog-api-key": key} if key else {}
        super().__init__(model, base_url, headers=headers, secret=key, **options)

    def _request(
        self,
        text: str,
        system: str,
        schema: Mapping[str, Any] | None,
        attempt: int,
        without: frozenset[str],
    ) -> tuple[str, dict[str, Any]]:
        config: dict[str, Any] = {"maxOutputTokens": self.max_output_tokens, "seed": attempt}
        if schema is not None:
            config |= {"responseMimeType": "application/json", "responseSchema": _schema(schema)}
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": config,
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        path = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{path}:generateContent", body

    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        path, body = self._request(text, system, None, 0, without)
        return f"{path.removesuffix(':generateContent')}:streamGenerateContent?alt=sse", body

    def _read(self, answer: dict[str, Any]) -> Piece:
        usage = answer.get("usageMetadata")
        usage = usage if isinstance(usage, dict) else {}
        output = [token_count(usage.get(part)) for part in ("candidatesTokenCount", "thoughtsTokenCount")]
        tokens: dict[str, Any] = {
            "input_tokens": token_count(usage.get("promptTokenCount")),
            "output_tokens": sum(part or 0 for part in output) if output != [None, None] else None,
        }
        ended = _end(answer)
        cut = self._cut() if ended == _CUT else ""
        try:
            parts = answer["candidates"][0]["content"]["parts"]
            text = "".join(part["text"] for part in parts if not part.get("thought"))
        except (AttributeError, KeyError, IndexError, TypeError):
            trouble = cut or f"the answer holds no text ({ended or 'no reason given'})"
            return Piece(trouble=trouble, **tokens)
        return Piece(text=text, trouble=cut, **tokens)

    def _piece(self, event: dict[str, Any]) -> Piece:
        read, ended = self._read(event), _end(event)
        finish = ended if ended.startswith("blocked") else _ENDS.get(ended, ended.lower())
        return Piece(
            text=read.text, finish=finish, input_tokens=read.input_tokens, output_tokens=read.output_tokens
        )

    def _thinks(self, event: dict[str, Any]) -> bool:
        try:
            return any(part.get("text") for part in event["candidates"][0]["content"]["parts"])
        except (AttributeError, KeyError, IndexError, TypeError):
            return False

    def _is_no_use(self, reply: Reply) -> bool:
        """A wrong key is a 400 here."""
        wrong = re.search("api.key.(not.valid|invalid|expired)", reply.trouble.lower())
        return super()._is_no_use(reply) or (reply.status == 400 and wrong is not None)


def _end(answer: dict[str, Any]) -> str:
    """The reason that the API gives for the end of an answer; "" where it goes on."""
    feedback = answer.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return f"blocked: {feedback['blockReason']}"
    candidates = answer.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    reason = first.get("finishReason") if isinstance(first, dict) else None
    return reason if isinstance(reason, str) else ""


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema in the API's dialect: types in capitals, properties in order, nothing else allowed."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            kept["type"] = str(value).upper()
        elif key == "properties":
            kept["properties"] = {name: _schema(part) for name, part in value.items()}
            kept["propertyOrdering"] = list(value)
        elif key == "items":
            kept["items"] = _schema(value)
        elif key != "additionalProperties":
            kept[key] = value
    return kept
