"""What mining found out: each question with its judged contexts and its kernel, and how far to trust it.

A context is *positive* where it answers the question alone (its verdict is YES), or where it is part of a
kernel: a set that answers the question together. It is *negative* where it is neither, and the judge said
NO. What the judge was UNSURE of is neither, and is kept apart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.judges.base import Label, Verdict

Status = Literal["minimal", "sufficient", "unresolved"]
STATUSES: tuple[Status, ...] = ("minimal", "sufficient", "unresolved")

FILE = "retrieval_dataset.yaml"

Labels = dict[tuple[str, str], Verdict]
"""Verdicts by case and name of the context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedContext:
    """A context with the verdict on it alone; ``part_of_kernel`` where it answers with others only."""

    fqn: str
    text: str
    verdict: Label
    evidence: str = ""
    reason: str = ""
    judge: str = ""
    prompt_version: str = ""
    votes: tuple[Label, ...] = ()
    origins: tuple[str, ...] = ()
    part_of_kernel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Contexts by name that answer a question together, as one source found them.

    ``alternatives`` are other sets that do. ``judge`` and ``evidence`` are of the verdict on the whole set.
    """

    contexts: tuple[str, ...] = ()
    status: Status = "unresolved"
    alternatives: tuple[tuple[str, ...], ...] = ()
    judge: str = ""
    evidence: str = ""
    reason: str = ""
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One question; ``kernels`` are by source, and ``source`` is the one that counts."""

    id: str
    query: str
    kind: str = "question"
    answers: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    answered_without_context: bool = False
    positives: tuple[JudgedContext, ...] = ()
    negatives: tuple[JudgedContext, ...] = ()
    unsure: tuple[JudgedContext, ...] = ()
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    source: str = ""

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of the source that counts."""
        return self.kernels.get(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """A whole run: the pairs, and what they are worth.

    ``controls`` are the judge's error rates on questions whose answer is known, ``agreement`` how far a
    second judge says the same; both and ``settings`` are plain data. ``unsure_reasons`` count why verdicts of
    controls and contexts were UNSURE, ``unanswered`` those that got no readable answer; neither is written.
    """

    pairs: tuple[Pair, ...]
    corpus: str
    fingerprint: str
    judge: str
    prompt_version: str = ""
    controls: Mapping[str, Any] = field(default_factory=dict)
    agreement: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    unsure_reasons: Mapping[str, int] = field(default_factory=dict)
    unanswered: int = 0

    @property
    def positives(self) -> int:
        """How many contexts are positive; without any, nothing can be measured."""
        return sum(len(pair.positives) for pair in self.pairs)

    @property
    def negatives(self) -> int:
        """How many contexts are negative."""
        return sum(len(pair.negatives) for pair in self.pairs)

    @property
    def unsure(self) -> int:
        """How many contexts the judge was unsure of."""
        return sum(len(pair.unsure) for pair in self.pairs)

    @property
    def kernel_statuses(self) -> dict[str, int]:
        """How many kernels have each status."""
        counted = Counter(pair.kernel.status for pair in self.pairs if pair.kernel is not None)
        return dict(sorted(counted.items()))


def split_by_verdict(
    contexts: Iterable[JudgedContext],
) -> tuple[tuple[JudgedContext, ...], tuple[JudgedContext, ...], tuple[JudgedContext, ...]]:
    """Positives, negatives and what nobody is sure of, each by rising name."""
    ordered = sorted(contexts, key=lambda one: one.fqn)
    positive = tuple(one for one in ordered if one.verdict == "YES" or one.part_of_kernel)
    rest = [one for one in ordered if one.verdict != "YES" and not one.part_of_kernel]
    return (
        positive,
        tuple(one for one in rest if one.verdict == "NO"),
        tuple(one for one in rest if one.verdict == "UNSURE"),
    )


def members_of(found: dict[str, Kernel]) -> list[str]:
    """The names in the kernel that counts and in its alternatives."""
    kernel = found.get(source_of(found), Kernel())
    if kernel.status == "unresolved":
        return []
    return sorted({name for names in (kernel.contexts, *kernel.alternatives) for name in names})


def source_of(found: dict[str, Kernel]) -> str:
    """The source that counts: the first that found a sufficient set, by rising doubt."""
    resolved = [source for source in found if found[source].status != "unresolved"]
    return next(iter(resolved or found), "")


def make_pair(
    pool: ContextPool, labels: Labels, found: dict[str, Kernel], corpus: Corpus | None, *, marked: bool
) -> Pair:
    """Everything that is known of one case."""
    members = set(members_of(found))
    documents = {one.fqn: one for one in pool.documents}
    for name in members - documents.keys():
        document = corpus.get(name) if corpus is not None else None
        if document is not None:
            documents[name] = document
    origins = {one.document.fqn: one.origins for one in pool.contexts}
    judged = [
        _judged(document, labels[pool.case.id, name], origins.get(name, ()), part=name in members)
        for name, document in documents.items()
    ]
    positives, negatives, unsure = split_by_verdict(judged)
    source = source_of(found)
    return Pair(
        id=pool.case.id,
        query=pool.case.question,
        kind=pool.case.kind,
        answers=pool.case.answers,
        facets=pool.case.facets,
        answered_without_context=marked,
        positives=positives,
        negatives=negatives,
        unsure=unsure,
        kernels={name: _with_singles(kernel, positives, name == source) for name, kernel in found.items()},
        source=source,
    )


def _judged(document: Document, verdict: Verdict, origins: tuple[str, ...], *, part: bool) -> JudgedContext:
    return JudgedContext(
        fqn=document.fqn,
        text=document.text,
        verdict=verdict.label,
        evidence=verdict.evidence if verdict.label == "YES" else "",
        reason=verdict.reason,
        judge=verdict.judge,
        prompt_version=verdict.prompt_version,
        votes=verdict.votes,
        origins=origins or ("kernel",),
        part_of_kernel=part and verdict.label != "YES",
    )


def _with_singles(kernel: Kernel, positives: Sequence[JudgedContext], counts: bool) -> Kernel:
    """A context that answers alone is a kernel by itself, so it is an alternative to another one, and a
    larger set that holds it is none."""
    if not counts or kernel.status == "unresolved":
        return kernel
    alone = {(one.fqn,): one.fqn for one in positives if one.verdict == "YES"}
    minimal = [one for one in kernel.alternatives if len(one) == 1 or not set(one) & set(alone.values())]
    others = dict.fromkeys([*minimal, *alone])
    return replace(kernel, alternatives=tuple(one for one in others if one != kernel.contexts))
