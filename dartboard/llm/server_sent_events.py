"""Server-sent events (WHATWG HTML, 9.2.6) from bytes as they arrive: the data of each event, in order.

Lines end in CR, LF or both, however the bytes are cut; comments and other fields are passed over. What
follows the last blank line counts as an event too, since many servers leave the blank line out. httpx-sse is
no dependency of ours and has no limit to the length of an event, so this stays.
"""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from dartboard.errors import EndpointError

LONGEST = 4_000_000
"""Characters of one event; an endpoint that sends more is not sending an answer."""
DONE = "[DONE]"
"""The data of OpenAI's last event."""

_LINE_END = re.compile(r"\r\n|\n|\r")


def event_data(parts: Iterable[bytes], *, longest: int = LONGEST) -> Iterator[str]:
    """The data of each event that has any."""
    data: list[str] = []
    size = 0
    for line in _lines(parts, longest):
        if line == "data" or line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
            size += len(line)
            if size > longest:
                raise EndpointError(f"an event of more than {longest:,} characters came")
        elif not line:
            if any(data):
                yield "\n".join(data)
            data, size = [], 0
    if any(data):
        yield "\n".join(data)


def joined_answer(content: bytes) -> dict[str, Any] | None:
    """The whole answer that OpenAI's events add up to, for endpoints that always stream.

    None where they are no such events, or do not come to their end.
    """
    text, finish, usage = "", None, None
    try:
        for data in event_data([content]):
            if data.strip() == DONE:
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


def _lines(parts: Iterable[bytes], longest: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, first = "", True
    for part in parts:
        text = rest + decoder.decode(part)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        held = "\r" if text.endswith("\r") else ""
        *whole, rest = _LINE_END.split(text.removesuffix("\r") if held else text)
        rest += held
        yield from whole
        if len(rest) > longest:
            raise EndpointError(f"a line of more than {longest:,} characters came")
    rest = (rest + decoder.decode(b"", final=True)).removesuffix("\r")
    if rest:
        yield rest
