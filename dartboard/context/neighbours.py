"""The chunks before and after others in their documents."""

from collections.abc import Iterable, Sequence

from dartboard.context.merge import Location, location_of
from dartboard.stores import Collection, Filter, Record
from dartboard.types import Chunk


def read_neighbours(
    collection: Collection, chunks: Iterable[Chunk], where: Filter | None = None
) -> list[Record]:
    """The chunks directly before and after these in their documents, sorted by id; not these themselves.

    Chunks whose metadata do not say where they stand have no neighbours. ``where`` is the filter of the
    search: what it hides stays hidden.
    """
    places = [location_of(chunk) for chunk in chunks if chunk.metadata.get("pieces") != 1]
    there = {(place.document, place.position) for place in places if place is not None}
    wanted = {(document, position + step) for document, position in there for step in (-1, 1)} - there
    near = collection.read_places({(str(document[0]), position) for document, position in wanted}, where)
    return [
        record
        for record in sorted(near, key=lambda record: record.id)
        if (place := location_of(record.chunk)) is not None and (place.document, place.position) in wanted
    ]


def adjacent_pairs(places: Sequence[Location | None]) -> list[tuple[int, int]]:
    """The pairs of chunks, by index, that follow each other in a document."""
    at = {(place.document, place.position): index for index, place in enumerate(places) if place is not None}
    following = ((index, at.get((document, position + 1))) for (document, position), index in at.items())
    return [(one, other) for one, other in following if other is not None]
