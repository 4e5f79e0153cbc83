"""What people are shown of a passage: where it stands, its heading, and text that steers no terminal."""

from collections.abc import Mapping
from typing import Any

from dartboard.display.plain_text import plain_text

__all__ = ["heading_of", "place_of", "plain_text"]


def place_of(metadata: Mapping[str, Any], id: str) -> str:
    """``guide.pdf, page 3`` or ``guide.md:12``; the passage's id where no document is known."""
    where = " ".join(plain_text(str(metadata.get("source", id))).splitlines())
    if "page" in metadata:
        return f"{where}, page {metadata['page']}"
    if "start_line" in metadata:
        return f"{where}:{metadata['start_line']}"
    return where


def heading_of(metadata: Mapping[str, Any]) -> str:
    """The section or the title, in one line; empty where there is none."""
    return " ".join(plain_text(str(metadata.get("section") or metadata.get("title") or "")).split())
