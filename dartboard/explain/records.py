"""A result as dictionaries: for JSON, and for the metadata of other frameworks' documents."""

from typing import Any

from dartboard.types import RetrievalResult

PER_PICK = ("gain", "coverage", "similarity", "stands_for", "serves", "copies", "shares", "retriever_score")
"""The entries of a result's metadata with one value per pick."""


def pick_records(result: RetrievalResult) -> list[dict[str, Any]]:
    """For each pick, its ``rank`` from 1 and the ``PER_PICK`` entries that the result has."""
    known = {name: values for name in PER_PICK if (values := result.metadata.get(name))}
    return [
        {"rank": place + 1, **{name: values[place] for name, values in known.items()}}
        for place in range(len(result))
    ]


def as_record(result: RetrievalResult) -> dict[str, Any]:
    """The query, the chunks in order with their data, then the data of the whole result."""
    chunks = [
        {"rank": record.pop("rank"), "id": chunk.id, "text": chunk.text, "metadata": chunk.metadata, **record}
        for chunk, record in zip(result.chunks, pick_records(result), strict=True)
    ]
    about = {name: value for name, value in result.metadata.items() if name not in PER_PICK}
    return {"query": result.query, "chunks": chunks, **about}
