"""Passages as the text that a model reads: Markdown, XML tags or JSON, numbered, with source and heading.

Passages come from documents that others wrote. In XML none of them can close its tag: ``<passage`` and
``</passage`` in a text become ``&lt;passage``; everything else stays as it is, because code and quotations
must. Markdown has no such protection: use XML or JSON where documents are not trusted.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import quoteattr

Format = Literal["markdown", "xml", "json"]

_TAG = re.compile(r"<(?=/?passages?\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a context: one chunk, or several that were merged.

    Args:
        number: What an answer cites, from 1.
        text: Without the source and heading that the context shows above it.
        source: Where it is from: ``guide.md:12``.
        heading: The sections that it stands in.
        chunk_ids: The chunks that it was made from, in reading order.
        gain: What these chunks add to the others, as a share of what all candidates would cover.
    """

    number: int
    text: str
    source: str
    heading: str
    chunk_ids: tuple[str, ...]
    gain: float


def render(passages: Sequence[Passage], format: Format) -> str:
    """The passages in one text."""
    if format == "json":
        return json.dumps(
            [_fields(passage) | {"text": passage.text} for passage in passages], ensure_ascii=False
        )
    separator = "\n\n" if format == "markdown" else "\n"
    return separator.join(map(_markdown if format == "markdown" else _xml, passages))


def _fields(passage: Passage) -> dict[str, str | int]:
    heading = {"heading": passage.heading} if passage.heading else {}
    return {"number": passage.number, "source": passage.source, **heading}


def _markdown(passage: Passage) -> str:
    head = " | ".join(filter(None, (passage.source, passage.heading)))
    return f"[{passage.number}] {head}\n{passage.text}"


def _xml(passage: Passage) -> str:
    attributes = "".join(f" {name}={quoteattr(str(value))}" for name, value in _fields(passage).items())
    return f"<passage{attributes}>\n{_TAG.sub('&lt;', passage.text)}\n</passage>"
