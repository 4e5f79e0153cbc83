"""Passages as an answer knows them: numbered from 1, each with its place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dartboard.display.plain_text import heading_of, place_of
from dartboard.types import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What ``[number]`` in an answer means; ``name`` is what the model is told of where it is from."""

    number: int
    text: str
    name: str = ""
    chunk_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def numbered(chunks: Iterable[Chunk]) -> tuple[Passage, ...]:
    """Chunks in the order in which they were picked."""
    return tuple(
        Passage(
            number=number,
            text=chunk.text,
            name=_name(chunk.metadata, chunk.id),
            chunk_id=chunk.id,
            metadata=chunk.metadata,
        )
        for number, chunk in enumerate(chunks, start=1)
    )


def _name(metadata: Mapping[str, Any], id: str) -> str:
    return " | ".join(filter(None, (place_of(metadata, id), heading_of(metadata))))
