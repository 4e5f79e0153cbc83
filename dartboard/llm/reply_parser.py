"""What of a model's reply counts: not its thoughts, and of JSON or code what is in the usual wrappings."""

import json
import re
from collections.abc import Iterator
from typing import Any

_OPEN, _CLOSE = "<think>", "</think>"
_CODE = re.compile(r"```\w*\s*\n(.*?)```", re.DOTALL)


class Thoughts:
    """Takes thoughts (between ``<think>`` and ``</think>``) off the beginning of a text in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._past = False

    def after(self, piece: str) -> str:
        """What of the answer itself is there, now that this piece has come."""
        if self._past:
            return piece
        self._held += piece
        start = self._held.lstrip()
        if not self._inside:
            if len(start) < len(_OPEN) and _OPEN.startswith(start):
                return ""
            self._inside = start.startswith(_OPEN)
        if not self._inside:
            return self._released(start)
        end = start.find(_CLOSE)
        if end < 0:
            return ""
        rest = start[end + len(_CLOSE) :].lstrip()
        if not rest:
            self._held = _OPEN + _CLOSE
            return ""
        return self._released(rest)

    def rest(self) -> str:
        """What is still held at the end: the beginning of what turned out to be no thought."""
        held = "" if self._past or self._inside else self._held
        self._past = True
        return held

    def _released(self, text: str) -> str:
        self._past, self._held = True, ""
        return text


def without_thoughts(text: str) -> str:
    """A whole reply without the thoughts at its beginning; "" where it is nothing else."""
    thoughts = Thoughts()
    return thoughts.after(text) + thoughts.rest()


def code_blocks(text: str) -> list[str]:
    """What stands in the code fences of a reply."""
    return _CODE.findall(text)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """JSON objects of a reply, as they are likeliest meant: bare, in a code fence, after a few words."""
    return (found for found in _json_values(text, "{") if isinstance(found, dict))


def json_lists(text: str) -> Iterator[list[Any]]:
    """The same for JSON lists."""
    return (found for found in _json_values(text, "[") if isinstance(found, list))


def _json_values(text: str, opening: str) -> Iterator[Any]:
    bare = without_thoughts(text).strip()
    places = (bare, *code_blocks(bare)[:1], bare[bare.find(opening) :] if opening in bare else "")
    for place in places:
        try:
            found, _ = json.JSONDecoder().raw_decode(place.strip())
        except (ValueError, RecursionError):
            continue
        yield found
