"""A whole answer out of a stream that came where none was asked for: some endpoints always stream."""

import json
from typing import Any

from dartboard.answering.events import event_data
from dartboard.errors import EndpointError


def joined(content: bytes) -> dict[str, Any] | None:
    """The answer that OpenAI's events add up to; None where they are none, or do not come to their end."""
    text, finish, usage = "", None, None
    try:
        for data in event_data([content]):
            if data.strip() == "[DONE]":
                break
            event = json.loads(data)
            usage = event.get("usage") or usage
            for choice in (event.get("choices") or [])[:1]:
                text += (choice.get("delta") or {}).get("content") or ""
                finish = choice.get("finish_reason") or finish
    except (EndpointError, ValueError, RecursionError, AttributeError, TypeError):
        return None
    if finish is None:
        return None
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": usage}
