"""Prompts, and the texts of strangers in them, fenced as data.

The token of a fence is a hash of everything that the prompt quotes, so no quoted text can hold the line that
closes its own fence: its author would have to find a text that contains its own hash.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question to a model: what the model is and what it is asked.

    Another wording is another ``version``, and gives other answers.
    """

    version: str
    system: str
    text: str


def fence_token(version: str, texts: Iterable[str]) -> str:
    """A token that stands in none of the texts and that none of their authors could know."""
    quoted = list(texts)
    for count in range(1000):
        token = hashlib.sha256(json.dumps([version, count, *quoted]).encode()).hexdigest()[:20]
        if not any(token in text for text in quoted):
            return token
    raise AssertionError("unreachable: a thousand hashes cannot all stand in the texts")  # pragma: no cover


def fenced(token: str, what: str, text: str) -> str:
    """The text between its two lines; ``what`` says what it is."""
    return f"<<{token} {what}>>\n{text}\n<<end {token}>>"
