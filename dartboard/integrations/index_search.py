"""A question to an engine, and the chunks or passages that answer it with their notes."""

from copy import deepcopy
from typing import Any, NamedTuple

from dartboard.context import Order
from dartboard.engine import Engine
from dartboard.integrations.pick_metadata import Note, notes_of, with_note
from dartboard.search_options import SearchOptions
from dartboard.types import Chunk

NO_PICKLE = (
    "a {0} cannot be pickled: it holds an open index. Hand the index's path or URL to the other process, and "
    "call {0}.open there"
)
"""What a retriever says to whoever wants to send it to another process."""


class FoundChunk(NamedTuple):
    """A chunk that was picked, and why."""

    chunk: Chunk
    note: Note

    def metadata(self, key: str) -> dict[str, object]:
        """The chunk's own metadata, copied, and the note."""
        return with_note(deepcopy(self.chunk.metadata), key, self.note)


def search(engine: Engine, query: str, options: SearchOptions) -> list[FoundChunk]:
    """The picks in order; none where nothing matches."""
    result = engine.search(query, options)
    sources = [f"index:{engine.name}"] * len(result)
    notes = notes_of(result, vector_sources=sources, query_model=engine.model.name)
    return [
        FoundChunk(
            chunk,
            note
            | {
                "retriever": result.metadata["retriever"],
                "retriever_score": result.metadata["retriever_score"][rank],
            },
        )
        for rank, (chunk, note) in enumerate(zip(result.chunks, notes, strict=True))
    ]


class FoundPassage(NamedTuple):
    """A passage of a context: one chunk, or several that were merged."""

    id: str
    text: str
    gain: float
    metadata: dict[str, Any]


HIDDEN = ("chunk_ids", "gain")
"""Metadata of a passage that no language model needs to read."""


def search_passages(
    engine: Engine, query: str, options: SearchOptions, key: str, *, expand: bool, order: Order
) -> list[FoundPassage]:
    """The passages of a context in their order; none where nothing matches.

    Metadata are ``number``, ``source``, ``heading`` (unless there is none), ``chunk_ids`` and ``gain``; what
    is said of the whole context stands under ``key``.
    """
    built = engine.context(query, options, expand=expand, order=order)
    said = built.to_json()
    whole = {name: said[name] for name in ("tokens", "token_budget", "coverage", "relevance")}
    return [
        FoundPassage(
            "+".join(one.chunk_ids),
            one.text,
            one.gain,
            {
                "number": one.number,
                "source": one.source,
                **({"heading": one.heading} if one.heading else {}),
                "chunk_ids": list(one.chunk_ids),
                "gain": one.gain,
                key: deepcopy(whole),
            },
        )
        for one in built.passages
    ]
