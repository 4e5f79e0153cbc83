"""Google's Gemini models over ``streamGenerateContent``."""

from typing import Any

from dartboard.answering.chats import Piece, StreamingChat
from dartboard.mining.judges.gemini import GeminiChat

_ENDS = {"STOP": "stop", "MAX_TOKENS": "length"}


class GeminiAnswers(StreamingChat, GeminiChat):
    """The key comes from ``GEMINI_API_KEY``; thoughts are not shown."""

    kind = "gemini"

    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        path, body = self._request(text, system, None, 0, without)
        return f"{path.removesuffix(':generateContent')}:streamGenerateContent?alt=sse", body

    def _piece(self, event: dict[str, Any]) -> Piece:
        read = self._read(event)
        return Piece(
            text=read.text,
            finish=_finish(event),
            input_tokens=read.input_tokens,
            output_tokens=read.output_tokens,
        )

    def _thinks(self, event: dict[str, Any]) -> bool:
        try:
            return any(part.get("text") for part in event["candidates"][0]["content"]["parts"])
        except (AttributeError, KeyError, IndexError, TypeError):
            return False


def _finish(event: dict[str, Any]) -> str:
    """Why the answer ends with this event; empty where it goes on."""
    feedback = event.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return f"blocked: {feedback['blockReason']}"
    candidates = event.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    reason = first.get("finishReason") if isinstance(first, dict) else None
    return _ENDS.get(reason, reason.lower()) if isinstance(reason, str) else ""
