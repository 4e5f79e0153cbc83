"""Documents that somebody else found in, those that together say most out, each with a note on why.

A note is plain JSON::

    rank               place in the order of picking, from 1
    score, similarity  cosine of query and document; frameworks that have scores show it as theirs
    gain               what it adds to those before it, as a share of P(t|q), the likely targets of the query
    coverage           the sum of the gains up to here
    stands_for         the candidates that it covers best, itself among them, by id (or position)
    stands_for_count   how many
    bound              no choice within the same limits covers more than the last coverage / bound
    sigma              σ as it was used, and
    sigma_source       where it came from: given, candidates, model, calibration or fallback
    method             who picked
    candidates         how many there were to pick from
    relevance          whether any of these is relevant (dartboard.relevance.Relevance)
    vector_source      given, model:NAME or index:COLLECTION
    query_model        who embedded the query

and, where these were asked for::

    questions          with ``also``: text, weight and coverage of the query and of each further question
    serves             the position among these of the one that the document serves most
    covered_before     with ``seen``: what was covered before the first pick
    copies             with ``prefer``: the other copies, by id, with the field and in what they differ

Documents from an index say, too, which ``retriever`` found them and its ``retriever_score``; documents that
had a score or a note before keep them as ``score_before`` and ``before``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.reader_tokenizer import reader_tokenizer
from dartboard.embeddings.texts import count_tokens
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.models import UnknownModel, as_model, encode_documents
from dartboard.retrievers.base import cosines
from dartboard.retrievers.query import check_query
from dartboard.search_options import SearchOptions
from dartboard.stores import Filter
from dartboard.types import Chunk, FloatArray, RetrievalResult, check_vector

KEY = "dartboard"
"""The key of metadata that notes stand under unless told otherwise."""

Note = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """A document of a framework, and what is known of it.

    Args:
        document: The document itself.
        id: Its own id, if it has one.
        text: The passage, by which near-duplicates are found; may be blank.
        metadata: For filters, caps and ``prefer``.
        embedded: What a model embeds, if that is not the text.
        counted: What a token budget counts, if that is not the text.
        score: The score that it came with.
    """

    document: Any
    id: str | None
    text: str
    metadata: Mapping[str, Any]
    embedded: str | None = None
    counted: str | None = None
    score: Any = None


class Pick(NamedTuple):
    """A document that was picked, and why."""

    document: Any
    note: Note


def rerank(
    query: str,
    items: Sequence[Item],
    *,
    model: Any = None,
    options: SearchOptions,
    vectors: Callable[[list[Any]], Sequence[Any]] | None = None,
    query_vector: Any = None,
    scored: bool = False,
) -> list[Pick]:
    """The documents that together say most about the query, in the order of picking.

    Args:
        query: What was asked.
        items: What somebody found, best first.
        model: What embeds the query, and the documents without a vector: anything that
            :func:`dartboard.integrations.models.as_model` takes.
        options: How much to pick, and how. Ids are those of the documents; ``seen`` ids that are not among
            them are ignored.
        vectors: A function of the documents that gives the vectors that are there already, with None for
            those that are not.
        query_vector: The query's vector, if it is there already.
        scored: Whether the order of the items' scores counts instead of that of the distances to the query.

    Returns:
        The picks. Documents with neither text nor vector stand at the end, if ``k`` leaves room and nothing
        else bounds the picks.

    Raises:
        InvalidInputError: A vector or a score cannot be used; the document is named.
        ConfigError: Nothing says which model made the vectors, so that the query cannot be embedded alike.
    """
    check_query(query)
    items = [item for item in items if _wanted(item, options)]
    given = _given_vectors(items, vectors)
    usable = [at for at, item in enumerate(items) if given[at] is not None or item.text.strip()]
    blank = [item for at, item in enumerate(items) if given[at] is None and not item.text.strip()]
    items, given = [items[at] for at in usable], [given[at] for at in usable]
    picks = _picks(query, items, given, model, options, query_vector, scored) if items else []
    bounded = options.token_budget or options.offset or options.min_gain_share or options.min_similarity
    room = 0 if bounded else max((options.k or 0) - len(picks), 0)
    coverage = picks[-1].note["coverage"] if picks else 0.0
    for item in blank[:room]:
        nothing = {"rank": len(picks) + 1, "gain": 0.0, "coverage": coverage, "stands_for_count": 0}
        picks.append(Pick(item.document, nothing))
    return picks


def _wanted(item: Item, options: SearchOptions) -> bool:
    """Whether filter and exclusions let a document through; what was seen stays, for it is covered."""
    if item.id in options.exclude and item.id not in options.seen_ids:
        return False
    return not isinstance(options.where, Filter) or options.where.matches(item.metadata, item.id or "")


def _given_vectors(items: Sequence[Item], vectors: Callable[[list[Any]], Sequence[Any]] | None) -> list[Any]:
    if vectors is None:
        return [None] * len(items)
    given = list(vectors([item.document for item in items]))
    if len(given) != len(items):
        raise InvalidInputError(
            f"vectors gave {len(given)} vectors for {len(items)} documents: give one each, None where there "
            "is none",
            field="vectors",
        )
    return given


def _picks(
    query: str,
    items: list[Item],
    given: list[Any],
    model: Any,
    options: SearchOptions,
    query_vector: Any,
    scored: bool,
) -> list[Pick]:
    missing = [_embedded(item) for item, vector in zip(items, given, strict=True) if vector is None]
    if model is None and query_vector is None and not missing:
        raise ConfigError(
            "say which model made the documents' vectors, so that the query is embedded alike", field="model"
        )
    # Nothing is known of the model behind vectors that came ready-made, unless it is named.
    unknown = model is None and query_vector is not None and not missing and not options.also
    maker = UnknownModel() if unknown else as_model(model)
    made = iter(encode_documents(maker, missing))
    questions = _questions(maker, query, options, query_vector)
    rows = [
        _checked(next(made) if vector is None else vector, item, questions.shape[1])
        for item, vector in zip(items, given, strict=True)
    ]
    if options.min_similarity is not None and not options.must_include:
        nearest = max(cosines(question, np.stack(rows)).max() for question in questions)
        if nearest < options.min_similarity:
            return []
    # Documents are known by their places, for ids may be missing or occur twice.
    chunks = [
        Chunk.trusted(_place(at), item.text, row, dict(item.metadata))
        for at, (item, row) in enumerate(zip(items, rows, strict=True))
    ]
    costs = None
    if options.token_budget is not None:
        counter = maker if options.tokenizer is None else reader_tokenizer(options.tokenizer)
        costs = count_tokens(counter, [(item.counted or item.text).strip() or "." for item in items])
    result = DartboardRetriever(DartboardConfig(reranker_type="cosine"), maker).choose(
        query,
        questions,
        chunks,
        _by_place(options, items),
        scores=_scores(items, options) if scored else None,
        costs=costs,
    )
    places = [int(chunk.id) for chunk in result.chunks]
    notes = notes_of(
        result,
        vector_sources=[f"model:{maker.name}" if given[at] is None else "given" for at in places],
        query_model=maker.name if query_vector is None else "given",
        name=lambda id: items[int(id)].id or int(id),
    )
    for at, note in zip(places, notes, strict=True):
        if items[at].score is not None:
            note["score_before"] = items[at].score
    return [Pick(items[at].document, note) for at, note in zip(places, notes, strict=True)]


def _embedded(item: Item) -> str:
    return item.text if item.embedded is None else item.embedded


def _questions(model: EmbeddingModel, query: str, options: SearchOptions, query_vector: Any) -> FloatArray:
    """``(m, d)`` the vectors of the query and of the questions in ``also``."""
    if query_vector is None:
        return model.encode_queries([query, *options.also])
    first = check_vector(query_vector, name="the query's vector")
    return np.stack([first, *(model.encode_queries(options.also) if options.also else ())])


def _checked(vector: Any, item: Item, dimension: int) -> FloatArray:
    name = f"the vector of document {item.id!r} ({item.text[:40]!r})"
    row = check_vector(vector, name=name, one_row=False)
    if row.size != dimension:
        raise InvalidInputError(
            f"{name} has {row.size} dimensions where the query's has {dimension}: embed both with the same "
            "model",
            field="model",
        )
    return row


def _place(at: int) -> str:
    return f"{at:09d}"


def _by_place(options: SearchOptions, items: Sequence[Item]) -> SearchOptions:
    """The options with the places of documents for their ids."""

    def places(ids: Sequence[str]) -> list[str]:
        return [_place(at) for id in ids for at, item in enumerate(items) if item.id == id]

    for id in options.must_include:
        if not places([id]):
            raise InvalidInputError(f"no document {id!r} among those given", field="must_include")
    seen = options.seen if options.seen_vectors is not None else places(options.seen_ids)
    required = places(options.must_include)
    return replace(options, where=None, must_include=required, exclude=(), seen=seen)


def _scores(items: Sequence[Item], options: SearchOptions) -> list[float]:
    if options.also:
        raise ConfigError("scores are those of one question: leave out also, or the scores", field="also")
    for item in items:
        if not isinstance(item.score, Real) or not math.isfinite(item.score):
            raise InvalidInputError(
                f"document {item.id!r} has the score {item.score!r}: each must be a finite number where the "
                "order of the scores counts",
                field="scores",
            )
    return [float(item.score) for item in items]


def notes_of(
    result: RetrievalResult,
    *,
    vector_sources: Sequence[str],
    query_model: str,
    name: Callable[[str], str | int] = lambda id: id,
) -> list[Note]:
    """One note a pick, with its vector source; ``name`` says what a candidate's id means to the caller."""
    facts = result.metadata
    notes = []
    for rank, source in enumerate(vector_sources):
        stands_for = [name(id) for id in facts["stands_for"][rank]]
        note: Note = {
            "rank": rank + 1,
            "score": facts["similarity"][rank],
            "similarity": facts["similarity"][rank],
            "gain": facts["gain"][rank],
            "coverage": facts["coverage"][rank],
            "stands_for": stands_for,
            "stands_for_count": len(stands_for),
            "bound": facts["bound"],
            "sigma": facts["sigma"] if math.isfinite(facts["sigma"]) else None,
            "sigma_source": facts["sigma_source"],
            "method": facts["method"],
            "candidates": facts["candidates"],
            "relevance": dict(facts["relevance"]),
            "vector_source": source,
            "query_model": query_model,
        }
        note |= {key: facts[key] for key in ("questions", "covered_before") if key in facts}
        if "serves" in facts:
            note["serves"] = facts["serves"][rank]
        if "copies" in facts:
            note["copies"] = [{**copy, "id": name(copy["id"])} for copy in facts["copies"][rank]]
        notes.append(note)
    return notes


def with_note(metadata: Mapping[str, Any] | None, key: str, note: Note) -> dict[str, Any]:
    """The metadata and the note: a new dictionary, in which what stood under the key is ``before``."""
    kept = dict(metadata or {})
    if key in kept:
        note = {**note, "before": kept[key]}
    return {**kept, key: note}
