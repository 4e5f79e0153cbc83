"""``retrieval_dataset.yaml``: its schema, which mining writes and everybody reads, and the data set in it.

::

    pairs:
      - id: "fix_errors:01"
        query: "How do I create a minimal LlmAgent?"
        positive_ctxs: [{fqn: "google.adk.agents.llm_agent.LlmAgent", text: "..."}]
        negative_ctxs: [{fqn: "google.adk.plugins.RetryPlugin", text: "..."}]
        kernel: ["google.adk.agents.llm_agent.LlmAgent"]      # optional: the contexts that are required
        alternatives: [["google.adk.agents.base_agent.Base"]] # optional: sets that answer as well
        answers: ["..."]                                      # optional
    end: {pairs: 1, sha256: "..."}          # of files that dartboard wrote; missing in a truncated one

A file is what :class:`Mined` is, key by key; unknown keys are refused. What mining knows beside ids, queries
and contexts may be missing: a file written by hand is as good.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from dartboard.datasets.records import Place, need_file
from dartboard.datasets.safe_yaml import Identifier, Lines, Text, Words, adapter, read_yaml
from dartboard.datasets.text_dataset import Alternatives, Groups, Passage, Qrels, TextDataset, unique
from dartboard.errors import DatasetError

FORMAT = "dartboard retrieval data set"
VERSION = 2

Label = Literal["YES", "NO", "UNSURE"]
Status = Literal["minimal", "sufficient", "unresolved"]

STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class JudgedContext:
    """A context with the verdict on it alone; ``part_of_kernel`` where it answers with others only.

    Not ``answered``: the judge gave no answer that could be read, and the verdict is UNSURE.
    """

    fqn: Identifier
    verdict: Label | None = None
    part_of_kernel: bool = False
    answered: bool = True
    evidence: Words = ""
    reason: Words = ""
    judge: Words = ""
    prompt_version: str = ""
    votes: tuple[Label, ...] = ()
    origins: tuple[str, ...] = ()
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Kernel:
    """Contexts by name that answer a question together, as one source found them.

    ``alternatives`` are other sets that do. ``judge`` and ``evidence`` are of the verdict on the whole set.
    """

    contexts: tuple[str, ...] = ()
    status: Status = "unresolved"
    alternatives: tuple[tuple[str, ...], ...] = ()
    judge: Words = ""
    evidence: Words = ""
    reason: Words = ""
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Pair:
    """One question; ``kernels`` are by source, and ``kernel_source`` is the one that counts."""

    id: Identifier
    query: Text
    kind: str = "question"
    answers: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    answered_without_context: bool = False
    positive_ctxs: tuple[JudgedContext, ...] = ()
    negative_ctxs: tuple[JudgedContext, ...] = ()
    unsure_ctxs: tuple[JudgedContext, ...] = ()
    kernel: tuple[str, ...] = ()
    kernel_status: Status | None = None
    kernel_source: str = ""
    alternatives: tuple[tuple[str, ...], ...] = ()
    kernels: dict[str, Kernel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Rate:
    """Errors among decided verdicts; ``unsure`` verdicts are in neither.

    ``rate`` is None where nothing was decided. ``low`` and ``high`` are a 95 % interval that counts ``cases``
    cases; all of [0, 1] where there are none.
    """

    rate: float | None = None
    low: float
    high: float
    errors: int
    decided: int
    unsure: int
    cases: int


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class ControlError:
    """A control that the judge got wrong, to be looked at."""

    kind: str
    case: str
    contexts: tuple[str, ...]
    label: Label
    evidence: Words = ""
    reason: Words = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Controls:
    """How often a judge was wrong on questions whose right verdict is known.

    ``insufficient_targets`` are cases whose targets turned out not to answer them: their positive controls
    are in no rate.
    """

    judge: Words
    seed: int
    cases: int
    false_positive: Rate
    false_negative: Rate
    by_kind: dict[str, Rate]
    answered_without_context: tuple[str, ...] = ()
    insufficient_targets: tuple[str, ...] = ()
    errors: tuple[ControlError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Agreement:
    """Two judges on the same pairs; ``table`` counts labels of the first (rows) and the second (columns).

    ``low`` and ``high`` are None where all resamples agree; ``most_apart`` is the upper end of the share of
    pairs that they may differ on, counting each case once. Judges that are part of both are ``shared``.
    """

    first: Words
    second: Words
    shared: tuple[str, ...] = ()
    pairs: int
    cases: int
    observed: float
    kappa: float | None = None
    low: float | None = None
    high: float | None = None
    most_apart: float
    table: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CorpusName:
    """What the contexts are from."""

    name: Words
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class JudgeName:
    """Who judged."""

    name: Words
    prompt_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class End:
    """The last lines of a whole file: how many pairs there are, and the sha256 of all lines before."""

    pairs: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Mined:
    """A whole file: the pairs, and what they are worth.

    ``verified`` is False where the judge failed its controls. ``controls`` are its error rates on questions
    whose answer is known, ``agreement`` how far a second judge says the same.
    """

    format: Literal["dartboard retrieval data set"] | None = None
    version: Literal[2] | None = None
    verified: bool = True
    corpus: CorpusName | None = None
    judge: JudgeName | None = None
    controls: Controls | None = None
    agreement: Agreement | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    pairs: tuple[Pair, ...]
    end: End | None = None

    @property
    def positives(self) -> int:
        """How many contexts are positive; without any, nothing can be measured."""
        return sum(len(pair.positive_ctxs) for pair in self.pairs)

    @property
    def negatives(self) -> int:
        """How many contexts are negative."""
        return sum(len(pair.negative_ctxs) for pair in self.pairs)

    @property
    def unsure(self) -> int:
        """How many contexts the judge was unsure of."""
        return sum(len(pair.unsure_ctxs) for pair in self.pairs)

    @property
    def kernel_statuses(self) -> dict[str, int]:
        """How many kernels have each status."""
        return dict(sorted(Counter(pair.kernel_status for pair in self.pairs if pair.kernel_status).items()))


def plain(mined: Mined) -> dict[str, Any]:
    """The data set as mappings, lists, texts and numbers, in the order of the file, without what is empty."""
    found: dict[str, Any] = adapter(Mined).dump_python(mined, mode="json", exclude_defaults=True)
    return found


def load_mined(path: str | Path) -> TextDataset:
    """Read the questions of a mined file, with one corpus of all their contexts.

    A context is identified by its ``fqn``. If several texts share one, the later ones become ``fqn#2`` and so
    on. Each member of the kernel is a facet; a context that alone replaces members in one of the
    ``alternatives`` covers their facets too.

    Args:
        path: The ``retrieval_dataset.yaml``.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing, malformed, truncated, or marked as not verified; the message names
            the line.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    mined, lines = read_yaml(file, Mined)
    if (told := what_is_missing(mined)) is not None:
        raise Place(file, lines.of("end")).error(told)
    if not mined.verified:
        raise Place(file, lines.of("verified")).error(
            "the judge of this data set failed its controls, so its labels are not verified: mine again with "
            "another judge (dartboard mine validate says more)"
        )
    return text_dataset(file.name.removesuffix(".gz").rpartition(".")[0], mined.pairs, file, lines)


def what_is_missing(mined: Mined) -> str | None:
    """Whether the file was cut short."""
    if mined.format is None and mined.end is None:
        return None
    there = len(mined.pairs)
    if mined.end is None:
        return "the file is truncated: its end is missing ('end'). Copy it again, or mine again"
    if mined.end.pairs != there:
        return (
            f"the file has {there} pairs, and its end counts {mined.end.pairs}: it was truncated or changed"
        )
    return None


def text_dataset(
    name: str, pairs: Iterable[Pair], file: Path = Path(), lines: Lines | None = None
) -> TextDataset:
    """The data set of these pairs; errors name the lines of a file, where there is one."""
    builder = _Builder()
    for number, pair in enumerate(pairs):

        def error(problem: str, number: int = number) -> DatasetError:
            return Place(file, lines.of("pairs", number) if lines else 1).error(problem)

        builder.add(pair, error)
    return builder.dataset(name)


class _Builder:
    """Collects pairs: contexts by name and text, each with one id."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.queries: dict[str, str] = {}
        self.qrels: Qrels = {}
        self.kernels: Groups = {}
        self.alternatives: Alternatives = {}
        self.answers: Groups = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._seen: dict[str, int] = {}

    def add(self, pair: Pair, error: Callable[[str], DatasetError]) -> None:
        """Add a pair; alternatives are used only with a kernel."""
        if pair.id in self.queries:
            raise error(f"id {pair.id!r} occurs twice")
        self.queries[pair.id] = pair.query
        yes = {self._id(one): one.fqn for one in pair.positive_ctxs}
        no = {self._id(one): one.fqn for one in pair.negative_ctxs}
        if both := yes.keys() & no.keys():
            raise error(f"context {min(both)!r} is both positive and negative")
        self.qrels[pair.id] = dict.fromkeys(no, 0) | dict.fromkeys(yes, 1)
        if pair.kernel:
            self.kernels[pair.id] = _members(pair.kernel, yes, error)
            others = [found for names in pair.alternatives if (found := _members(names, yes, error))]
            if others:
                self.alternatives[pair.id] = others
        if pair.answers:
            self.answers[pair.id] = list(pair.answers)

    def dataset(self, name: str) -> TextDataset:
        """All pairs as a data set."""
        return TextDataset(
            name=name,
            passages=self.passages,
            queries=self.queries,
            qrels=self.qrels,
            facets={
                query_id: _facets(kernel, self.alternatives.get(query_id, []))
                for query_id, kernel in self.kernels.items()
            },
            kernels=self.kernels,
            alternatives=self.alternatives,
            answers=self.answers,
            pools={query_id: list(judged) for query_id, judged in self.qrels.items()},
            metadata={"type": "real"},
        )

    def _id(self, context: JudgedContext) -> str:
        key = context.fqn, context.text
        if key not in self._ids:
            number = self._seen[context.fqn] = self._seen.get(context.fqn, 0) + 1
            self._ids[key] = context.fqn if number == 1 else f"{context.fqn}#{number}"
            self.passages.append(Passage(self._ids[key], context.text, "", {"fqn": context.fqn}))
        return self._ids[key]


def _members(
    names: Iterable[str], positive: dict[str, str], error: Callable[[str], DatasetError]
) -> list[str]:
    """The ids of named contexts; they must be positive ones."""
    by_name = {fqn: id_ for id_, fqn in reversed(positive.items())}
    for name in names:
        if name not in by_name:
            raise error(f"kernel names {name!r}, which is not among its positive_ctxs")
    return unique([by_name[name] for name in names])


def _facets(kernel: list[str], alternatives: list[list[str]]) -> dict[str, list[str]]:
    """One facet per member of the kernel: the member, and contexts that replace it in an alternative."""
    facets = {member: [member] for member in kernel}
    for other in alternatives:
        added = [one for one in other if one not in facets]
        for member in set(kernel).difference(other) if len(added) == 1 else ():
            facets[member] = unique([*facets[member], *added])
    return {str(number): carriers for number, carriers in enumerate(facets.values(), start=1)}
