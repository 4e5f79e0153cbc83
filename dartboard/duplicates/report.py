"""Which chunks repeat others, what causes it, and how much of it a search shows."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import SequenceMatcher
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dartboard.blas import one_thread_each
from dartboard.deadline import check
from dartboard.duplicates.corpus import CAUSES, Corpus, Listener, read_collection, silent
from dartboard.duplicates.groups import members, similar_groups, similarity_of, text_groups
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.plain_text import counted, place_of, shortened
from dartboard.stores.base import Collection
from dartboard.types import IntArray

if TYPE_CHECKING:
    from dartboard.engine import Engine

Kind = Literal["exact", "text", "vectors"]
Words = list[tuple[Literal["same", "removed", "added"], str]]

KINDS = {
    "exact": "exact copies",
    "text": "nearly the same words",
    "vectors": "nearly the same by their vectors",
}
"""What the members of a group have in common."""
K = 5
SAMPLE = 100
SHOWN_GROUPS = 20
_SHOWN_MEMBERS = 5
_SHOWN_CAUSES = 10
_MOST_VALUES = 50
"""Values of a field in one group whose pairs are counted."""
_MOST_WORDS = 400
"""Words of a text that are shown and compared."""
_KEPT_WORDS = 6
"""Equal words that a diff shows on each side of a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """How many of the passages of typical searches repeat an earlier one.

    ``top_k`` and ``dartboard`` are means of ``queries`` searches for ``k`` passages; ``given`` is whether the
    queries were given, or are titles of the corpus.
    """

    queries: int
    given: bool
    k: int
    top_k: float
    dartboard: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Chunks that repeat each other. ``examples`` are the first few, with texts, of the largest groups.

    The ``kind`` is ``exact`` (equal texts), ``text`` (nearly the same words) or ``vectors`` (nearly the same
    by their vectors only). An example has ``id``, ``place`` and ``text``; all but the first have a ``diff``.
    """

    kind: Kind
    ids: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateReport:
    """The duplicates of a collection.

    Args:
        chunks: how many chunks there are.
        exact: chunks whose text is equal to that of an earlier one.
        near: further chunks whose words are nearly those of an earlier one.
        similar: further chunks that are nearly the same as an earlier one by their vectors; None if vectors
            were not compared.
        similarity: the smallest cosine of those; ``sigma`` is where it comes from, None if it was given.
        repeats: what typical searches show; None without vectors.
        groups: the largest first. A group of kind ``vectors`` has one chunk of each text group in it.
        causes: for each metadata field, pairs of values and how many groups they share, most first.
        corpus: what was compared; ``text_groups`` and ``vector_groups``, ``(n,)``, are the positions of the
            first chunk of each chunk's group.
    """

    chunks: int
    exact: int
    near: int
    similar: int | None
    similarity: float | None
    sigma: float | None
    repeats: Repeats | None
    groups: tuple[Group, ...]
    causes: Mapping[str, tuple[tuple[str, str, int], ...]]
    corpus: Corpus = field(repr=False, compare=False)
    text_groups: IntArray = field(repr=False, compare=False)
    vector_groups: IntArray = field(repr=False, compare=False)

    def answer(self) -> str:
        """ "Will dartboard help me?" in one sentence."""
        if self.repeats is None:
            share = (self.exact + self.near) / self.chunks
            return f"{share:.0%} of the chunks repeat the words of another; vectors were not compared."
        found = self.repeats
        asked = "your queries" if found.given else "titles of the corpus"
        return (
            f"Of the first {found.k} passages that a search finds, {found.top_k:.1f} repeat an earlier one "
            f"with nearest neighbours and {found.dartboard:.1f} with dartboard "
            f"({found.queries:,} {'search' if found.queries == 1 else 'searches'}, {asked})."
        )

    def counts(self) -> list[str]:
        """The numbers as sentences."""
        said = [
            f"{counted(self.chunks, 'chunk')}: {self.exact:,} are exact copies of another, {self.near:,} "
            "more have nearly the same words."
        ]
        if self.similar is not None and self.similarity is not None:
            said.append(
                f"{self.similar:,} more say nearly the same by their vectors (cosine {self.similarity:.2f} "
                "or more); they may differ in a number or a name."
            )
        return said

    def to_json(self, groups: int = SHOWN_GROUPS) -> dict[str, Any]:
        """The report as JSON data, with the ``groups`` largest groups."""
        repeats = self.repeats
        return {
            "answer": self.answer(),
            "chunks": self.chunks,
            "exact": self.exact,
            "near": self.near,
            "similar": self.similar,
            "similarity": self.similarity,
            "sigma": self.sigma,
            "repeats": repeats and asdict(repeats),
            "causes": {
                name: [{"values": [one, other], "groups": count} for one, other, count in pairs]
                for name, pairs in self.causes.items()
            },
            "groups_in_all": len(self.groups),
            "groups": [
                {
                    "kind": group.kind,
                    "size": len(group.ids),
                    "ids": list(group.ids),
                    "examples": [dict(example) for example in group.examples],
                }
                for group in self.groups[:groups]
            ],
        }


def find_duplicates(
    engine: "Engine",
    *,
    queries: Sequence[str] | None = None,
    similarity: float | None = None,
    vectors: bool = True,
    fields: Sequence[str] = (),
    groups: int = SHOWN_GROUPS,
    sample: int = SAMPLE,
    seed: int = 0,
    listen: Listener = silent,
) -> DuplicateReport:
    """What :meth:`dartboard.engine.Engine.duplicates` does; see there."""
    for name, given in (("queries", queries), ("fields", fields)):
        if isinstance(given, str) or not all(isinstance(one, str) and one.strip() for one in given or ()):
            raise InvalidInputError(
                f"{name} must be a list of texts, none of them blank; got {given!r}", field=name
            )
    if queries is not None and not queries:
        raise InvalidInputError(
            "queries must be one or more texts, or None for titles of the corpus", field="queries"
        )
    if similarity is not None and not (isinstance(similarity, Real) and 0.0 < similarity <= 1.0):
        raise ConfigError(
            f"similarity must be a cosine above 0 and at most 1, got {similarity}", field="similarity"
        )
    corpus = read_collection(engine.collection, fields=fields, vectors=vectors, listen=listen)
    if not vectors:
        return report_on(corpus, engine.collection, groups=groups, listen=listen)
    asked = list(queries) if queries is not None else _titles(corpus, sample, seed)
    picks, sigmas = [], []
    encoded = engine.model.encode_queries(asked)
    for done, (query, vector) in enumerate(zip(asked, encoded, strict=True), start=1):
        check()
        with one_thread_each():
            found = [
                engine.search(query, k=K, method=method, query_vector=vector)
                for method in ("top_k", "dartboard")
            ]
        picks.append([[chunk.id for chunk in result.chunks] for result in found])
        if found[1].explanation is not None and found[1].explanation.sigma is not None:
            sigmas.append(found[1].explanation.sigma)
        listen("searching", done, len(asked))
    sigma = float(np.median(sigmas))
    least = similarity_of(sigma) if similarity is None else similarity
    report = report_on(corpus, engine.collection, similarity=least, groups=groups, listen=listen)
    place = {id: at for at, id in enumerate(corpus.ids)}
    repeated = [
        [_repeated([report.vector_groups[place[id]] for id in ids if id in place]) for ids in both]
        for both in picks
    ]
    top_k, dartboard = np.mean(repeated, axis=0)
    repeats = Repeats(
        queries=len(asked), given=queries is not None, k=K, top_k=float(top_k), dartboard=float(dartboard)
    )
    return replace(report, repeats=repeats, sigma=sigma)


def report_on(
    corpus: Corpus,
    collection: Collection,
    *,
    similarity: float | None = None,
    groups: int = SHOWN_GROUPS,
    listen: Listener = silent,
) -> DuplicateReport:
    """The report without searches; ``collection`` is where the texts of the largest groups are read."""
    listen("comparing texts", 0, 0)
    by_text = text_groups(corpus, np.arange(len(corpus)))
    listen("comparing texts", 1, 1)
    by_vector = by_text
    if similarity is not None and corpus.vectors is not None:
        first = np.unique(by_text)
        leaders = similar_groups(corpus.vectors[first], similarity, listen=listen)
        by_vector = first[leaders][np.searchsorted(first, by_text)]
    found = _groups(corpus, by_text, by_vector)
    exact = len(corpus) - len(set(corpus.digests))
    texts, similar = len(np.unique(by_text)), len(np.unique(by_vector))
    return DuplicateReport(
        chunks=len(corpus),
        exact=exact,
        near=len(corpus) - texts - exact,
        similar=None if similarity is None else texts - similar,
        similarity=similarity,
        sigma=None,
        repeats=None,
        groups=tuple(
            [_with_examples(group, collection) for group in found[:groups]] + found[groups:],
        ),
        causes=_causes(corpus, by_text),
        corpus=corpus,
        text_groups=by_text,
        vector_groups=by_vector,
    )


def word_diff(one: str, other: str) -> Words:
    """What was removed from a text and what was added, word by word, with a few equal words around it.

    Example:
        >>> word_diff("The fee is 5 euros.", "The fee is 6 euros.")
        [('same', 'The fee is'), ('removed', '5'), ('added', '6'), ('same', 'euros.')]
    """
    left, right = (re.findall(r"\S+", text)[:_MOST_WORDS] for text in (one, other))
    found: Words = []
    codes = SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    for place, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal":
            head = left[a : a + _KEPT_WORDS] if place else []
            tail = left[b - _KEPT_WORDS : b] if place < len(codes) - 1 else []
            whole = len(codes) == 1 or b - a <= len(head) + len(tail)
            found.append(("same", " ".join(left[a:b] if whole else [*head, "…", *tail])))
            continue
        found += [("removed", " ".join(left[a:b]))] if b > a else []
        found += [("added", " ".join(right[c:d]))] if d > c else []
    return found


def _titles(corpus: Corpus, sample: int, seed: int) -> list[str]:
    """A sample of the titles."""
    titles = sorted(title for title in set(corpus.titles) if title.strip())
    chosen = np.random.default_rng(seed).permutation(len(titles))[:sample]
    return [titles[at] for at in sorted(chosen.tolist())]


def _repeated(groups: Sequence[int]) -> int:
    return len(groups) - len(set(groups))


def _groups(corpus: Corpus, by_text: IntArray, by_vector: IntArray) -> list[Group]:
    """All groups by text, and those by vectors of one chunk from each text group; the largest first."""
    found = []
    for part in members(by_text):
        kind: Kind = "exact" if len({corpus.digests[at] for at in part}) == 1 else "text"
        found.append(Group(kind=kind, ids=tuple(corpus.ids[at] for at in part)))
    first = np.unique(by_text)
    for part in members(by_vector[first]):
        found.append(Group(kind="vectors", ids=tuple(corpus.ids[first[at]] for at in part)))
    return sorted(found, key=lambda group: (-len(group.ids), group.kind, group.ids[0]))


def _with_examples(group: Group, collection: Collection) -> Group:
    records = collection.get(group.ids[:_SHOWN_MEMBERS])
    examples: list[dict[str, Any]] = []
    for record in records:
        words = record.text.split()
        text = record.text if len(words) <= _MOST_WORDS else " ".join([*words[:_MOST_WORDS], "…"])
        row = f" {record.metadata['row']}" if "row" in record.metadata else ""
        place = place_of(record.metadata, record.id) + row
        example: dict[str, Any] = {"id": record.id, "place": place, "text": text}
        if examples:
            example["diff"] = [list(part) for part in word_diff(records[0].text, record.text)]
        examples.append(example)
    return Group(kind=group.kind, ids=group.ids, examples=tuple(examples))


def _causes(corpus: Corpus, by_text: IntArray) -> dict[str, tuple[tuple[str, str, int], ...]]:
    """For each field the pairs of values that share most text groups."""
    causes = {}
    parts = members(by_text)
    for name in dict.fromkeys((*CAUSES, *corpus.fields)):
        if name not in corpus.known_fields:
            continue
        shared: Counter[tuple[str, str]] = Counter()
        for part in parts:
            values = Counter(shortened(corpus.values[name][at], 120) for at in part)
            values.pop("None", None)
            once = sorted(values)[:_MOST_VALUES]
            shared.update(combinations(once, 2))
            shared.update((value, value) for value in once if values[value] > 1)
        ranked = sorted(shared.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN_CAUSES]
        causes[name] = tuple((one, other, count) for (one, other), count in ranked)
    return causes
