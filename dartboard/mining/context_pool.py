"""The contexts that a judge will see for one case, before anybody has labelled one.

The case's targets, documents drawn at random, the best by BM25 that are no target, and the neighbours by
meaning and by Dartboard. What is drawn depends on the seed and the case's id alone: adding a case changes
no other pool. A document found in several ways is there once, with all of its origins, and so are
documents of the same text. Contexts stand by rising name, which says nothing of where they come from.
"""

import difflib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from dartboard.errors import ConfigError, DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Corpus, Document

TARGET, RANDOM, LEXICAL, DENSE, DARTBOARD = "target", "random", "lexical", "dense", "dartboard"
_ADVISED = 3
ORIGINS = (TARGET, RANDOM, LEXICAL, DENSE, DARTBOARD)
"""The order in which a context's origins are written."""


@dataclass(frozen=True, slots=True)
class PooledContext:
    """A document, and the ways in which it came into the pool."""

    document: Document
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextPool:
    """A case with its contexts; ``target`` is the name of the first target's document, None without one."""

    case: Case
    target: str | None
    contexts: list[PooledContext]

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of all targets' documents, the first target's first."""
        names = [one.document.fqn for one in self.contexts if TARGET in one.origins]
        return tuple(sorted(names, key=lambda name: (name != self.target, name)))

    @property
    def documents(self) -> list[Document]:
        """The contexts without their origins."""
        return [context.document for context in self.contexts]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """How many contexts a pool has beside its targets; fewer where there are fewer.

    Args:
        random_negatives: drawn at random.
        hard_negatives: the best by BM25.
        neighbours: the nearest by meaning, and as many of Dartboard's selection. Each is a paid call, and a
            few beside the best by BM25 are enough.
        seed: of what is drawn.

    Raises:
        ConfigError: a number below 0.
    """

    random_negatives: int = 5
    hard_negatives: int = 5
    neighbours: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("random_negatives", "hard_negatives", "neighbours"):
            if (number := getattr(self, name)) < 0:
                raise ConfigError(f"{name} must be >= 0, got {number}", field=name)


def build_pool(case: Case, corpus: Corpus, settings: PoolSettings | None = None) -> ContextPool:
    """The pool of one case: its targets, and so many documents that are no target.

    Raises:
        DatasetError: a target that the corpus has not.
    """
    chosen = settings or PoolSettings()
    targets = find_targets(case, corpus)
    found = _Gathered()
    for document in targets:
        found.add(document, TARGET)
    found.take(_drawn(case, corpus, chosen.seed), chosen.random_negatives, RANDOM)
    ways: tuple[tuple[str, Callable[[str, int], list[Document]], int], ...] = (
        (LEXICAL, corpus.lexical, chosen.hard_negatives),
        (DENSE, corpus.dense, chosen.neighbours),
        (DARTBOARD, corpus.dartboard, chosen.neighbours),
    )
    for origin, search, number in ways:
        if number:
            # Copies and targets among the best take places that others are to have.
            found.take(search(case.question, 2 * number + len(targets)), number, origin)
    return ContextPool(case, targets[0].fqn if targets else None, found.contexts())


def find_targets(case: Case, corpus: Corpus) -> list[Document]:
    """The documents of the case's targets, each once; a target that the corpus has not is an error."""
    documents: dict[str, Document] = {}
    for name in case.targets:
        document = corpus.get(name)
        if document is None:
            raise DatasetError(
                f"{case.place or 'a case'}: target {name!r} of {case.id!r} is not in {corpus.name}; "
                f"{near_names(name, corpus)}",
                field="targets",
            )
        documents.setdefault(document.fqn, document)
    return list(documents.values())


def near_names(name: str, corpus: Corpus) -> str:
    """Advice for a name that a corpus has not: names that resemble it or hold it, else a few as they are."""
    ids = [one.fqn for one in corpus]
    others: list[str] = list(getattr(corpus, "other_names", ()))
    near = difflib.get_close_matches(name, [*others, *ids], n=_ADVISED, cutoff=0.5)
    part = PurePosixPath(name).name.partition("#")[0].lower()
    near = near or [one for one in [*others, *ids] if part and part in one.lower()][:_ADVISED]
    if near:
        return f"near to it are {', '.join(dict.fromkeys(near))}"
    return f"names there are such as {', '.join((others or ids)[:_ADVISED])}"


@dataclass(slots=True)
class _Gathered:
    """Contexts by name; a second document of the same text counts as the first."""

    _documents: dict[str, Document] = field(default_factory=dict)
    _origins: dict[str, set[str]] = field(default_factory=dict)
    _by_text: dict[str, str] = field(default_factory=dict)

    def add(self, document: Document, origin: str) -> str:
        """Keep the document or the one that it repeats; its name."""
        name = self._by_text.setdefault(" ".join(document.text.split()), document.fqn)
        self._documents.setdefault(name, document)
        self._origins.setdefault(name, set()).add(origin)
        return name

    def take(self, documents: Iterable[Document], number: int, origin: str) -> None:
        """Keep the first ``number`` that are different and no target; targets on the way gain the origin."""
        taken: set[str] = set()
        for document in documents:
            if len(taken) == number:
                return
            name = self.add(document, origin)
            if TARGET not in self._origins[name]:
                taken.add(name)

    def contexts(self) -> list[PooledContext]:
        return [
            PooledContext(self._documents[name], tuple(way for way in ORIGINS if way in self._origins[name]))
            for name in sorted(self._documents)
        ]


def _drawn(case: Case, corpus: Corpus, seed: int) -> Iterator[Document]:
    """All documents in an order that seed and case id alone decide, without targets."""
    documents: Sequence[Document] = list(corpus)
    # Strings seed Python's generator by their SHA-512, the same in every process.
    order = random.Random(f"{seed}:{case.id}").sample(range(len(documents)), len(documents))
    names = {document.fqn for document in find_targets(case, corpus)}
    return (documents[row] for row in order if documents[row].fqn not in names)
