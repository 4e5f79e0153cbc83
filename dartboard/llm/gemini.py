"""Google's Gemini models over ``generateContent`` and ``streamGenerateContent``."""

import re
from typing import Any, Unpack

from dartboard.embeddings.by_name import GEMINI_URL
from dartboard.errors import ConfigError
from dartboard.http_client import RequestError, checked_key
from dartboard.llm.chat import Chat, ChatOptions, Piece, token_count

DEFAULT_MODEL = "gemini-3-pro-preview"
_ENDS = {"MAX_TOKENS": "length"}


class GeminiChat(Chat):
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
            raise ConfigError(
                "a Gemini model needs a key: give api_key or set GEMINI_API_KEY", field="api_key"
            )
        headers = {"x-goog-api-key": key} if key else {}
        super().__init__(model, base_url, headers=headers, secret=key, **options)

    def _request(self, text: str, system: str, attempt: int, *, stream: bool) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": {"maxOutputTokens": self.max_output_tokens, "seed": attempt},
        }
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        model = self.model if "/" in self.model else f"models/{self.model}"
        return f"/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}", body

    def _read(self, event: dict[str, Any]) -> Piece:
        usage = event.get("usageMetadata")
        usage = usage if isinstance(usage, dict) else {}
        output = [token_count(usage.get(part)) for part in ("candidatesTokenCount", "thoughtsTokenCount")]
        try:
            parts = event["candidates"][0]["content"]["parts"]
            text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
        except (AttributeError, KeyError, IndexError, TypeError):
            text = ""
        return Piece(
            text=text,
            finish=_end(event),
            input_tokens=token_count(usage.get("promptTokenCount")),
            output_tokens=sum(part or 0 for part in output) if output != [None, None] else None,
        )

    def _is_refused(self, error: RequestError) -> bool:
        """A wrong key is a 400 here."""
        wrong = re.search("api.key.(not.valid|invalid|expired)", str(error).lower())
        return super()._is_refused(error) or (error.status == 400 and wrong is not None)


def _end(event: dict[str, Any]) -> str:
    """The reason that the API gives for the end of an answer; "" where it goes on."""
    feedback = event.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return f"blocked: {feedback['blockReason']}"
    candidates = event.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    reason = first.get("finishReason") if isinstance(first, dict) else None
    return _ENDS.get(reason, reason.lower()) if isinstance(reason, str) else ""
