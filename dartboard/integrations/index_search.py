"""A question to an engine, with another framework's filter, and the chunks that answer it with their notes.

What a filter of LlamaIndex or Haystack says that dartboard's own language cannot (a substring, a date) is an
error, never a filter that lets more through. Fields that are missing behave as in
:mod:`dartboard.stores.filters`.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from dartboard.integrations.pick_metadata import Note, notes_of, with_note
from dartboard.search_options import SearchOptions
from dartboard.stores.filters import DEEPEST, Among, And, Equal, Exists, Filter, Not, Or, comparison
from dartboard.types import Chunk

NO_PICKLE = (
    "a DartboardRetriever cannot be pickled: it holds an open index. Hand the index's path or URL to the "
    "other process, and call DartboardRetriever.open there"
)
"""What a retriever says to whoever wants to send it to another process."""


class Answer(NamedTuple):
    """A chunk that was picked, and why."""

    chunk: Chunk
    note: Note

    def metadata(self, key: str) -> dict[str, object]:
        """The chunk's own metadata, copied, and the note."""
        return with_note(deepcopy(self.chunk.metadata), key, self.note)


def search(engine: Engine, query: str, options: SearchOptions) -> list[Answer]:
    """The picks in order; none where nothing matches."""
    result = engine.search(query, options)
    sources = [f"index:{engine.name}"] * len(result)
    notes = notes_of(result, vector_sources=sources, query_model=engine.model.name)
    return [
        Answer(
            chunk,
            note
            | {
                "retriever": result.metadata["retriever"],
                "retriever_score": result.metadata["retriever_score"][rank],
            },
        )
        for rank, (chunk, note) in enumerate(zip(result.chunks, notes, strict=True))
    ]


_LOGIC = {"AND", "OR", "NOT"}
_META = "meta."


def from_haystack(given: Mapping[str, Any], depth: int = 0) -> Filter:
    """``{"field": "meta.year", "operator": ">=", "value": 2020}`` and what ``conditions`` make of such."""
    if depth > DEEPEST:
        raise InvalidInputError(f"filters are nested more than {DEEPEST} deep")
    if not isinstance(given, Mapping) or "operator" not in given:
        raise InvalidInputError(
            'filters are such as {"field": "meta.year", "operator": ">=", "value": 2020}, or "operator" with '
            '"conditions"'
        )
    operator = given["operator"]
    if "field" in given:
        if "value" not in given:
            raise InvalidInputError(f"the filter on {given['field']!r} has no value")
        return _haystack_comparison(given["field"], operator, given["value"])
    conditions = given.get("conditions")
    if operator not in _LOGIC or not isinstance(conditions, Sequence) or isinstance(conditions, str):
        raise InvalidInputError(
            'a filter without a field has an "operator" of AND, OR or NOT, and "conditions"'
        )
    parts = tuple(from_haystack(part, depth + 1) for part in conditions)
    if operator == "NOT":
        return Not(And(parts))
    return And(parts) if operator == "AND" else Or(parts)


def from_llama_index(given: Any, depth: int = 0) -> Filter:
    """``MetadataFilters``, of ``MetadataFilter`` and of themselves."""
    if depth > DEEPEST:
        raise InvalidInputError(f"filters are nested more than {DEEPEST} deep")
    if not hasattr(given, "filters"):
        if not hasattr(given, "key"):
            raise InvalidInputError(f"filters must be MetadataFilters, got {type(given).__name__}")
        return _llama_index_comparison(given.key, _plain(given.operator), given.value)
    parts = tuple(from_llama_index(part, depth + 1) for part in given.filters)
    condition = _plain(given.condition or "and")
    if condition == "not":  # as LlamaIndex has it: none of them matches
        return Not(Or(parts))
    return And(parts) if condition == "and" else Or(parts)


def _haystack_comparison(field: Any, operator: Any, value: Any) -> Filter:
    if not isinstance(field, str):
        raise InvalidInputError(f"a filter's field is text, got {type(field).__name__}")
    if field in ("content", "score", "embedding", "blob"):
        raise InvalidInputError(f"an index cannot be filtered by {field!r}: use id or a field of meta")
    name = field.removeprefix(_META)
    if field == "id" and operator in ("==", "in"):
        return Among((value,) if operator == "==" else tuple(value))
    if operator in ("==", "!=") and value is None:
        return Not(Exists(name)) if operator == "==" else Exists(name)
    if operator == "not in":
        return Not(comparison(name, "in", value))
    return comparison(name, operator, value)


def _llama_index_comparison(key: str, operator: str, value: Any) -> Filter:
    if operator in ("any", "nin"):
        among = comparison(key, "in", value)
        return among if operator == "any" else Not(among)
    if operator == "all":
        return And(tuple(Equal(key, each) for each in value))
    if operator == "contains":
        return Equal(key, value)
    if operator == "is_empty":
        return Not(Exists(key))
    if operator.startswith("text_match"):
        raise InvalidInputError(f"an index cannot look for a part of {key!r}: use == or in")
    return comparison(key, operator, value)


def _plain(value: Any) -> str:
    """An enumeration's value, or the text itself."""
    return str(getattr(value, "value", value))
