"""A question to an engine, and the chunks or merged passages that answer it, each with its note."""

from copy import deepcopy
from typing import Any, NamedTuple

from dartboard.context import Context, Order
from dartboard.engine import Engine
from dartboard.integrations.rerank import notes_of, with_note
from dartboard.search_options import SearchOptions
from dartboard.types import FloatArray

HIDDEN = (
    "chunk_ids",
    "gain",
    "content_hash",
    "document_hash",
    "pieces",
    "position",
    "start",
    "end",
    "read_as",
    "uploaded",
)
"""Metadata that indexing writes for itself: no language model needs to read it."""


class Found(NamedTuple):
    """A chunk, or the passage of a context: one chunk, or several that were merged."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any]
    embedding: FloatArray | None = None


def search(
    engine: Engine,
    query: str,
    options: SearchOptions,
    key: str,
    *,
    merge: bool = False,
    expand: bool = True,
    order: Order = "gain",
) -> list[Found]:
    """The picks in order; none where nothing matches.

    Args:
        engine, query, options: As in :meth:`Engine.search`.
        key: Where in the metadata the note stands.
        merge: Give the passages of :meth:`Engine.context` instead, in its order, with their gain as score.
            Metadata are ``number``, ``source``, ``heading`` (unless there is none), ``chunk_ids`` and
            ``gain``; what is said of the whole context stands under ``key``.
        expand, order: As in :meth:`Engine.context`.
    """
    if merge:
        return _passages(engine.context(query, options, expand=expand, order=order), key)
    result = engine.search(query, options)
    notes = notes_of(
        result, vector_sources=[f"index:{engine.name}"] * len(result), query_model=engine.model.name
    )
    found = []
    for rank, (chunk, note) in enumerate(zip(result.chunks, notes, strict=True)):
        note["retriever"] = result.metadata["retriever"]
        note["retriever_score"] = result.metadata["retriever_score"][rank]
        metadata = with_note(deepcopy(chunk.metadata), key, note)
        found.append(Found(chunk.id, chunk.text, note["score"], metadata, chunk.embedding))
    return found


def _passages(built: Context, key: str) -> list[Found]:
    said = built.to_json()
    whole = {name: said[name] for name in ("tokens", "token_budget", "coverage", "relevance")}
    found = []
    for one in built.passages:
        metadata = {"number": one.number, "source": one.source, "chunk_ids": list(one.chunk_ids)}
        if one.heading:
            metadata["heading"] = one.heading
        metadata |= {"gain": one.gain, key: deepcopy(whole)}
        found.append(Found("+".join(one.chunk_ids), one.text, one.gain, metadata))
    return found
