"""A data set without embeddings, and the mapping of its ground truth to chunk ids.

Every loader returns a :class:`TextDataset`, and :func:`dartboard.datasets.prepare` takes one. A data set may
judge passages that its corpus lacks (a sample of a collection, an empty text). These are dropped and listed
as ``unreachable``. A query without any remaining relevant passage is dropped too, because no retriever could
answer it. Both are logged as warnings, because dropping them raises the measures.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dartboard.datasets.records import Place
from dartboard.errors import DatasetError

logger = logging.getLogger(__name__)

T = TypeVar("T")

Qrels = dict[str, dict[str, int]]
"""``{query_id: {passage_id: grade}}``; a grade above 0 is relevant."""

Groups = dict[str, list[str]]
"""``{query_id: [id or text, …]}``"""

Alternatives = dict[str, list[list[str]]]
"""``{query_id: [[passage_id, …], …]}``: sets that answer as well as the query's kernel."""

Facets = dict[str, dict[str, list[str]]]
"""``{query_id: {facet: [passage_id, …]}}``"""


@dataclass(frozen=True, slots=True)
class Passage:
    """A text with an id and, optionally, a title.

    ``place`` is the line that it was read from, for error messages; it is ignored in comparisons.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PassageStream:
    """Passages that are read again at every iteration and never held in memory all at once."""

    read: Callable[[], Iterator[Passage]]

    def __iter__(self) -> Iterator[Passage]:
        return self.read()


@dataclass(slots=True, kw_only=True)
class TextDataset:
    """Passages, queries and ground truth.

    ``passages`` can be iterated more than once: a list, or a :class:`PassageStream` over a file, which
    reports malformed rows when it reaches them. ``kernels`` are the passages that an answer requires,
    ``alternatives`` other sets that answer as well, and ``pools`` the candidates of each query.

    Raises:
        DatasetError: the ground truth names an unknown query.
    """

    name: str
    passages: Iterable[Passage]
    queries: dict[str, str]
    qrels: Qrels
    facets: Facets = field(default_factory=dict)
    kernels: Groups = field(default_factory=dict)
    alternatives: Alternatives = field(default_factory=dict)
    answers: Groups = field(default_factory=dict)
    pools: Groups = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what in ("qrels", "facets", "kernels", "alternatives", "answers", "pools"):
            if unknown := getattr(self, what).keys() - self.queries.keys():
                raise DatasetError(
                    f"data set {self.name!r}: {what} name query {min(unknown)!r}, "
                    "which is not among its queries"
                )

    def __len__(self) -> int:
        return len(self.queries)


def embedded_text(text: str, title: str = "") -> str:
    """The text that a model encodes for a chunk: its title, if any, and its text, as in BEIR."""
    return text if title in ("", text) else f"{title} {text}"


def flat_strings(value: object) -> list[str]:
    """The strings in nested lists, in order; numbers are converted."""
    if isinstance(value, list | tuple):
        return [text for part in value for text in flat_strings(part)]
    return [] if value is None else [str(value)]


def single_passage_kernels(facets: Facets) -> Groups:
    """The required passages of queries whose facets are each covered by a single passage."""
    return {
        query_id: unique(ids[0] for ids in by_facet.values())
        for query_id, by_facet in facets.items()
        if by_facet and all(len(ids) == 1 for ids in by_facet.values())
    }


def unique(ids: Iterable[str]) -> list[str]:
    """The ids without duplicates, in order."""
    return list(dict.fromkeys(ids))


def named_passages(text: TextDataset) -> set[str]:
    """All passages in the ground truth or a pool."""
    groups: list[Iterable[str]] = [*text.qrels.values(), *text.kernels.values(), *text.pools.values()]
    groups += [ids for by_facet in text.facets.values() for ids in by_facet.values()]
    groups += [ids for sets in text.alternatives.values() for ids in sets]
    return {passage for ids in groups for passage in ids}


def reachable_queries(text: TextDataset, chunk_ids: Mapping[str, list[str]]) -> list[str]:
    """The ids of queries that have a relevant passage in the corpus, or no relevant passage at all.

    ``chunk_ids`` maps each passage of the ground truth that the corpus has to its chunks.
    """
    kept = []
    for query_id in text.queries:
        relevant = _relevant(text.qrels.get(query_id, {}))
        if not relevant or any(passage in chunk_ids for passage in relevant):
            kept.append(query_id)
    if lost := len(text.queries) - len(kept):
        logger.warning(
            "%s: %d of %d queries have no relevant passage in the corpus and were dropped",
            text.name,
            lost,
            len(text.queries),
        )
    if lacking := _unreachable(text, set(kept), chunk_ids):
        query_id, ids = next(iter(lacking.items()))
        logger.warning(
            "%s: the corpus lacks relevant passages, or their text: %d of %d, in %d of %d queries (the first "
            "is %r of query %r). They were dropped, and measures ignore them",
            text.name,
            sum(map(len, lacking.values())),
            sum(len(_relevant(text.qrels.get(query_id, {}))) for query_id in kept),
            len(lacking),
            len(kept),
            ids[0],
            query_id,
        )
    return kept


def truth_in_chunks(
    text: TextDataset, query_ids: Iterable[str], chunk_ids: Mapping[str, list[str]]
) -> dict[str, Any]:
    """The ground truth in chunk ids: grades, facets, kernels, alternatives, answers, pools, unreachable.

    All chunks of a passage have its grade. A kernel and its alternatives name passages (by the id of their
    first chunk) and are dropped if one of them is missing.
    """
    wanted = set(query_ids)

    def kept(by_query: Mapping[str, T]) -> Iterator[tuple[str, T]]:
        return ((query_id, known) for query_id, known in by_query.items() if query_id in wanted)

    def expand(passages: Iterable[str]) -> list[str]:
        return unique(chunk for passage in passages for chunk in chunk_ids.get(passage, ()))

    def is_complete(passages: Iterable[str]) -> bool:
        return all(passage in chunk_ids for passage in passages)

    return {
        "qrels": {
            query_id: {chunk: grade for one, grade in judged.items() for chunk in chunk_ids.get(one, ())}
            for query_id, judged in kept(text.qrels)
        },
        "facets": {
            query_id: {facet: chunks for facet, ids in by_facet.items() if (chunks := expand(ids))}
            for query_id, by_facet in kept(text.facets)
        },
        "kernels": {query_id: list(ids) for query_id, ids in kept(text.kernels) if is_complete(ids)},
        "alternatives": {
            query_id: [list(ids) for ids in sets if is_complete(ids)]
            for query_id, sets in kept(text.alternatives)
            if is_complete(text.kernels.get(query_id, ()))
        },
        "answers": dict(kept(text.answers)),
        "pools": {query_id: expand(ids) for query_id, ids in kept(text.pools)},
        "unreachable": _unreachable(text, wanted, chunk_ids),
    }


def relevant_ids(qrels: Qrels, least_grade: int = 1) -> Groups:
    """The ``ground_truth`` of a data set: passages with this grade or more."""
    return {
        query_id: [one for one, grade in judged.items() if grade >= least_grade]
        for query_id, judged in qrels.items()
    }


def _unreachable(text: TextDataset, wanted: set[str], chunk_ids: Mapping[str, list[str]]) -> Groups:
    missing = {
        query_id: [one for one in _relevant(judged) if one not in chunk_ids]
        for query_id, judged in text.qrels.items()
        if query_id in wanted
    }
    return {query_id: ids for query_id, ids in missing.items() if ids}


def _relevant(judged: Mapping[str, int]) -> list[str]:
    return [passage for passage, grade in judged.items() if grade > 0]
