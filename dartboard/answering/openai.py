"""Any endpoint that streams OpenAI's ``/v1/chat/completions``: OpenAI, Ollama, vLLM, LM Studio …"""

from typing import Any

from dartboard.answering.chats import Piece, StreamingChat
from dartboard.http_client import Reply
from dartboard.mining.judges.chat import count
from dartboard.mining.judges.openai import OpenAIChat

_USAGE = "stream_options"


class OpenAIAnswers(StreamingChat, OpenAIChat):
    """``base_url`` ends before ``/chat/completions``; the key comes from ``OPENAI_API_KEY``."""

    kind = "openai"

    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        path, body = self._request(text, system, None, 0, without)
        body["stream"] = True
        if _USAGE not in without:
            body[_USAGE] = {"include_usage": True}
        return path, body

    def _concede(self, reply: Reply, without: frozenset[str]) -> str | None:
        """As for judges, and first the count of tokens; there is no schema to give up."""
        if reply.status in (400, 422) and _USAGE in reply.trouble and _USAGE not in without:
            return _USAGE
        return super()._concede(reply, without | {"response_format"})

    def _piece(self, event: dict[str, Any]) -> Piece:
        usage = event.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        given, got = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return Piece(input_tokens=given, output_tokens=got)
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        text = next((delta[part] for part in ("content", "refusal") if isinstance(delta.get(part), str)), "")
        finish = choice.get("finish_reason")
        return Piece(
            text=text,
            finish=finish if isinstance(finish, str) else "",
            input_tokens=given,
            output_tokens=got,
        )

    def _thinks(self, event: dict[str, Any]) -> bool:
        """Thoughts have several names; all but the role of who speaks is something."""
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        delta = choice.get("delta") if isinstance(choice, dict) else None
        return isinstance(delta, dict) and any(value for name, value in delta.items() if name != "role")
