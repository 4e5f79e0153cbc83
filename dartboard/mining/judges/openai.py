"""Any endpoint that speaks OpenAI's ``/v1/chat/completions``: OpenAI, Ollama, vLLM, LM Studio …"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from dartboard.embeddings.by_name import OPENAI_URL
from dartboard.http_client import Patience, Reply, checked_key
from dartboard.mining.budget import Prices
from dartboard.mining.judges.chat import MOST_OUTPUT, PATIENCE, Chat, Written, count
from dartboard.mining.judges.model import ChatJudge
from dartboard.mining.prompts import DEFAULT_PROMPT

_SMALL_OUTPUT = 1024
_OUTPUT = "output"


class OpenAIChat(Chat):
    """Asks for JSON by schema, temperature 0 and a seed; leaves out what an endpoint refuses.

    Where the limit of output does not fit into a small model's context, 1,024 tokens take its place.

    The key comes from ``api_key`` or ``OPENAI_API_KEY``; local servers need none.
    """

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        *,
        prices: Prices | None = None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key = checked_key(api_key, "OPENAI_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        endpoint = self.endpoint_type(base_url, headers=headers, secret=key, patience=patience, sleep=sleep)
        super().__init__(endpoint, model, prices=prices, max_output_tokens=max_output_tokens)

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

    def _read(self, answer: dict[str, Any]) -> Written:
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens = {
            "input_tokens": count(usage.get("prompt_tokens")),
            "output_tokens": count(usage.get("completion_tokens")),
        }
        try:
            choice = answer["choices"][0]
            content = choice["message"]["content"]
        except (KeyError, IndexError, TypeError):
            return Written(text="", trouble="the answer holds no message", **tokens)
        cut = self._cut() if choice.get("finish_reason") == "length" else ""
        if not isinstance(content, str) or not content:
            why = choice["message"].get("refusal") or choice.get("finish_reason")
            return Written(text="", trouble=cut or f"the message is empty ({why})", **tokens)
        return Written(text=content, trouble=cut, **tokens)

    def _concede(self, reply: Reply, without: frozenset[str]) -> str | None:
        """What a 400 or 422 complains of; where it names nothing, the schema. The limit stays, renamed."""
        if reply.status not in (400, 422):
            return None
        named = [part for part, words in _COMPLAINTS.items() if re.search(words, reply.trouble.lower())]
        return next((part for part in [*named, "response_format"] if part not in without), None)


_COMPLAINTS = {
    "response_format": r"response_format|json_schema",
    "temperature": r"temperature",
    "seed": r"\bseed\b",
    "max_tokens": r"max_tokens|max_completion_tokens",
    _OUTPUT: r"max_tokens|max_completion_tokens|context.length|max_model_len",
}


class OpenAIJudge(ChatJudge):
    """A judge at an OpenAI-compatible endpoint; ``base_url`` ends before ``/chat/completions``."""

    def __init__(
        self,
        model: str,
        base_url: str = OPENAI_URL,
        api_key: str | None = None,
        *,
        prompt_version: str = DEFAULT_PROMPT,
        prices: Prices | None = None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
    ) -> None:
        chat = OpenAIChat(
            model, base_url, api_key, prices=prices, max_output_tokens=max_output_tokens, patience=patience
        )
        where = "" if base_url == OPENAI_URL else f"@{chat.endpoint.base_url}"
        super().__init__(chat, name=f"openai:{model}{where}", prompt_version=prompt_version)
