"""What mining found out: each question with its judged contexts and its kernel, and how far to trust it.

A context is *positive* where it answers the question alone (its verdict is YES), or where it is part of a
kernel: a set that answers the question together. It is *negative* where it is neither, and the judge said
NO. What the judge was UNSURE of is neither, and is kept apart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dartboard.mining.verdicts import Label

Status = Literal["minimal", "sufficient", "unresolved"]
STATUSES: tuple[Status, ...] = ("minimal", "sufficient", "unresolved")

FILE = "retrieval_dataset.yaml"


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
class FoundKernel:
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
    kernels: Mapping[str, FoundKernel] = field(default_factory=dict)
    source: str = ""

    @property
    def kernel(self) -> FoundKernel | None:
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


def apart(
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
