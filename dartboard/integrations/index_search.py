"""A question to an engine, and the chunks that answer it with their notes."""

from copy import deepcopy
from typing import NamedTuple

from dartboard.engine import Engine
from dartboard.integrations.pick_metadata import Note, notes_of, with_note
from dartboard.search_options import SearchOptions
from dartboard.types import Chunk

NO_PICKLE = (
    "a DartboardRetriever cannot be pickled: it holds an open index. Hand the index's path or URL to the "
    "other process, and call DartboardRetriever.open there"
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
