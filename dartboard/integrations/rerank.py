"""Documents that somebody else found in, those that together say most out, each with its note."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.pick_metadata import Note, notes_of
from dartboard.integrations.vector_source import GatheredVectors, Item, VectorSource
from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import check_query
from dartboard.search_options import SearchOptions
from dartboard.selection.methods import method_of
from dartboard.types import Chunk


class Pick(NamedTuple):
    """A document that was picked, and why."""

    item: Item
    note: Note


def rerank(
    query: str,
    items: Sequence[Item],
    source: VectorSource,
    options: SearchOptions,
    *,
    query_vector: Any = None,
    scored: bool = False,
) -> list[Pick]:
    """The picks in order. Documents without a word are passed over where a model would have to embed them.

    ``scored`` takes the order of the items' own scores in place of that of the vectors on the query's side;
    such scores are for one question, so they do not go with ``also``.
    """
    if not items:
        return []
    check_query(query)
    gathered = source.gather(query, items, query_vector, options.also)
    if gathered is None:
        return []
    scores = _scores(gathered.items, options) if scored else None
    if options.max_per_source is not None:
        _check_sources(gathered.items, options.source_field)
    chooser = DartboardRetriever(DartboardConfig(reranker_type="cosine"), gathered.model)
    candidates = _candidates(gathered)
    if options.min_similarity is not None:
        similarity = chooser.pool(query, gathered.questions, candidates, options, scores=scores).similarity
        if similarity.max() < options.min_similarity:
            return []
    result = chooser.choose(query, gathered.questions, candidates, options, scores=scores)
    places = [int(chunk.id) for chunk in result.chunks]
    notes = notes_of(
        result,
        vector_sources=[gathered.sources[place] for place in places],
        query_model=gathered.model.name,
        name=lambda id: gathered.items[int(id)].id,
    )
    return [
        Pick(gathered.items[place], note | _own_facts(gathered, place))
        for place, note in zip(places, notes, strict=True)
    ]


def _own_facts(gathered: GatheredVectors, place: int) -> Note:
    """What a note says of a document alone: how far it was read, and the score that it came with."""
    facts: Note = {}
    if (length := gathered.lengths[place]) is not None:
        facts |= {"tokens": length.tokens, "tokens_read": length.read}
    score = gathered.items[place].score
    return facts | ({"score_before": float(score)} if _is_score(score) else {})


def _candidates(gathered: GatheredVectors) -> Candidates:
    """The documents as chunks that are known by their place, for ids may be missing or occur twice."""
    chunks = [
        Chunk.trusted(
            f"{place:09d}",
            item.text or "" if item.shown is None else item.shown,
            vector,
            dict(item.metadata),
        )
        for place, (item, vector) in enumerate(zip(gathered.items, gathered.vectors, strict=True))
    ]
    compared = [
        chunk.text if item.compared is None else item.compared
        for chunk, item in zip(chunks, gathered.items, strict=True)
    ]
    return Candidates.from_chunks(chunks, compared=compared)


def _scores(items: Sequence[Item], options: SearchOptions) -> list[float]:
    if options.also:
        raise ConfigError("scores are those of one question: leave out also, or the scores")
    if method_of(options.method).name == "mmr":
        raise ConfigError("mmr weighs similarities against each other and takes no scores")
    for item in items:
        if not _is_score(item.score):
            raise InvalidInputError(
                f"{item.label} has the score {item.score!r}: the order is to be that of the scores, and each "
                "must be a finite number"
            )
    return [float(item.score) for item in items]


def _is_score(score: Any) -> bool:
    return isinstance(score, Real) and not isinstance(score, bool) and math.isfinite(score)


def _check_sources(items: Sequence[Item], field: str) -> None:
    for item in items:
        if field not in item.metadata:
            raise InvalidInputError(
                f"{item.label} has no {field!r} in its metadata: max_per_source needs it (see source_field)"
            )
