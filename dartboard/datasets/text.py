"""A data set before it is embedded: passages, queries, and what is known of their relevance.

This is what every loader gives and what :func:`dartboard.datasets.prepare` takes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dartboard.datasets.rows import Place
from dartboard.errors import DatasetError

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
    """A text under an id, with its title where it has one.

    ``place`` is the line that it was read from, for complaints; it makes no two passages differ.
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PassageStream:
    """Passages that are read anew at every iteration and never held all at once."""

    read: Callable[[], Iterator[Passage]]

    def __iter__(self) -> Iterator[Passage]:
        return self.read()


@dataclass(slots=True, kw_only=True)
class TextDataset:
    """Passages, queries by id, and ground truth.

    ``passages`` can be iterated more than once: a list, or a :class:`PassageStream` over a file, whose
    malformed rows show when they are reached. ``kernels`` are the passages that an answer requires,
    ``alternatives`` other sets that answer as well, ``pools`` the candidates that a set gives each query
    for itself.
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


class PassagePool:
    """Passages gathered from many rows, where the same one may occur again: one id for one content."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._ids: dict[tuple[str, str], str] = {}
        self.passages: list[Passage] = []

    def add(self, text: str, title: str = "") -> str:
        """The id of this passage, a new one if it was not seen before."""
        key = (title, text)
        if key not in self._ids:
            self._ids[key] = f"{self._prefix}{len(self.passages):05d}"
            self.passages.append(Passage(self._ids[key], text, title))
        return self._ids[key]


def flat_strings(value: object) -> list[str]:
    """The strings in arbitrarily nested lists, in order; numbers are written out."""
    if isinstance(value, list | tuple):
        return [text for part in value for text in flat_strings(part)]
    return [] if value is None else [str(value)]


def single_passage_kernels(facets: Facets) -> Groups:
    """The required passages of queries whose every facet is covered by one passage only."""
    return {
        query_id: list(dict.fromkeys(ids[0] for ids in by_facet.values()))
        for query_id, by_facet in facets.items()
        if by_facet and all(len(ids) == 1 for ids in by_facet.values())
    }


def unique(ids: Sequence[str]) -> list[str]:
    """Without repetitions, in the given order."""
    return list(dict.fromkeys(ids))
