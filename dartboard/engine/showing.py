"""What people are shown of a passage: where it stands, its heading, and text that steers no terminal.

Control characters (the escape of terminal codes among them), characters that turn the direction of writing,
and invisible tags are left out; half surrogates, which no file can hold, become question marks. Each
character is judged by itself, so a text may come in any number of pieces.
"""

import re
from collections.abc import Mapping
from typing import Any

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def plain_text(text: str) -> str:
    """The text without what steers; line ends and tabs stay."""
    return _STEERING.sub("", text.encode("utf-8", "replace").decode())


def place_of(metadata: Mapping[str, Any], id: str) -> str:
    """``guide.pdf, page 3`` or ``guide.md:12``; the passage's id where no document is known."""
    where = plain_text(str(metadata.get("source", id)))
    if "page" in metadata:
        return f"{where}, page {metadata['page']}"
    if "start_line" in metadata:
        return f"{where}:{metadata['start_line']}"
    return where


def heading_of(metadata: Mapping[str, Any]) -> str:
    """The section or the title, in one line; empty where there is none."""
    return " ".join(plain_text(str(metadata.get("section") or metadata.get("title") or "")).split())
