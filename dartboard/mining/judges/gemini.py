"""Google's Gemini models over ``generateContent``."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from dartboard.embeddings.by_name import GEMINI_URL
from dartboard.errors import ConfigError
from dartboard.http_client import Patience, Reply, checked_key
from dartboard.mining.budget import Prices
from dartboard.mining.judges.chat import MOST_OUTPUT, PATIENCE, Chat, Written, count
from dartboard.mining.judges.model import ChatJudge
from dartboard.mining.prompts import DEFAULT_PROMPT

DEFAULT_MODEL = "gemini-3-pro-preview"
_CUT = "MAX_TOKENS"


class GeminiChat(Chat):
    """The model thinks before it answers, and thoughts are paid as output.

    The temperature is left as the model has it: Google advises against lowering it for Gemini 3. The key
    comes from ``api_key`` or ``GEMINI_API_KEY``; without ``need_key`` a judge that is never asked needs none.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        *,
        base_url: str = GEMINI_URL,
        prices: Prices | None = None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
        need_key: bool = True,
    ) -> None:
        key = checked_key(api_key, "GEMINI_API_KEY")
        if key is None and need_key:
            raise ConfigError("a Gemini judge needs a key: give api_key or set GEMINI_API_KEY")
        headers = {"x-goog-api-key": key} if key else {}
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

    def _read(self, answer: dict[str, Any]) -> Written:
        usage = answer.get("usageMetadata")
        usage = usage if isinstance(usage, dict) else {}
        output = [count(usage.get(part)) for part in ("candidatesTokenCount", "thoughtsTokenCount")]
        tokens = {
            "input_tokens": count(usage.get("promptTokenCount")),
            "output_tokens": sum(part or 0 for part in output) if output != [None, None] else None,
        }
        try:
            candidate = answer["candidates"][0]
            parts = candidate["content"]["parts"]
            text = "".join(part["text"] for part in parts if not part.get("thought"))
        except (AttributeError, KeyError, IndexError, TypeError):
            why = _why(answer)
            trouble = self._cut() if why == _CUT else f"the answer holds no text ({why})"
            return Written(text="", trouble=trouble, **tokens)
        cut = candidate.get("finishReason") == _CUT
        return Written(text=text, trouble=self._cut() if cut else "", **tokens)

    def _is_no_use(self, reply: Reply) -> bool:
        """A wrong key is a 400 here."""
        wrong = re.search("api.key.(not.valid|invalid|expired)", reply.trouble.lower())
        return reply.status == 400 and wrong is not None


def _why(answer: dict[str, Any]) -> str:
    """The reason that the API gives for an answer without text."""
    feedback = answer.get("promptFeedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return f"blocked: {feedback['blockReason']}"
    candidates = answer.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else {}
    return str(first.get("finishReason", "no reason given")) if isinstance(first, dict) else "no reason given"


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


class GeminiJudge(ChatJudge):
    """A judge at Google's endpoint, or at one that speaks like it; ``base_url`` ends before ``/models``."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        *,
        base_url: str = GEMINI_URL,
        prompt_version: str = DEFAULT_PROMPT,
        prices: Prices | None = None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
        need_key: bool = True,
    ) -> None:
        chat = GeminiChat(
            model,
            api_key,
            base_url=base_url,
            prices=prices,
            max_output_tokens=max_output_tokens,
            patience=patience,
            need_key=need_key,
        )
        where = "" if base_url == GEMINI_URL else f"@{chat.endpoint.base_url}"
        super().__init__(chat, name=f"gemini:{model}{where}", prompt_version=prompt_version)
