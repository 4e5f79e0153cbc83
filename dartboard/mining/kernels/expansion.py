"""The kernel of a case: the documents that together answer it, and none more.

A context of the pool that answers alone, by its label and confirmed by votes, is the kernel; others that do
are alternatives. Else the set grows from the first target: what is missing, in the judge's words, is searched
for and added, one document and then, while the same thing stays missing, two, four, eight. Then members are
left out: what a round added as a whole, and one by one.

- ``minimal``: sufficient, and without any one member no longer so;
- ``sufficient``: the judge said YES, but not of every member that it is needed (it was unsure, or the calls
  ran out);
- ``unresolved``: no sufficient set was found; the kernel is empty, and its reason says what is missing.

Members outside the pool get one label, and a label of YES is voted on as kernels are, so that labels and
kernels cannot contradict each other. The same judge gives the same kernel: nothing is drawn, and ties go by
name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dartboard.datasets.mined import Kernel, Status
from dartboard.errors import ConfigError
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from dartboard.mining.judges.base import Judge, Verdict
from dartboard.mining.kernels.voting import Panel, SpentError, votes_for
from dartboard.retrievers.hybrid import reciprocal_rank_fusion

DEPTH = 20
ROUNDS = 8
MOST_CALLS = 200
_DAMPING = 10
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKernel:
    """A kernel with the verdicts on its members alone, as they were voted on; ``asked`` is every set.

    ``insufficient_targets``: the case's targets turned out not to answer it.
    """

    case: str
    kernel: Kernel
    labels: Mapping[str, Verdict] = field(default_factory=dict)
    insufficient_targets: bool = False
    asked: tuple[tuple[str, ...], ...] = ()


class CandidateSearch:
    """Candidates for what a judge says is missing, best first; the same words give the same candidates.

    Documents that the words name outright, as an executable check does, come first. Then three rankings
    (words, meaning, Dartboard) and the targets that the case believes in, merged by rank, ``1 / (10 + r)``
    each. The pool's remaining contexts come last, so that nothing drawn for the case is out of reach.
    """

    def __init__(self, pool: ContextPool, corpus: Corpus | None = None, *, depth: int = DEPTH) -> None:
        self._pool = pool
        self._corpus = corpus or MemoryCorpus(f"pool of {pool.case.id}", pool.documents)
        self._depth = min(depth, len(self._corpus))
        self._found: dict[str, list[Document]] = {}

    def candidates(self, missing: str, known: Iterable[Document] = ()) -> list[Document]:
        """Documents that may say it, without those that are known, by name or by text."""
        names = {one.fqn for one in known}
        texts = {_squeezed(one) for one in known}
        words = missing.strip() or self._pool.case.question.strip()
        if words not in self._found:
            self._found[words] = self._merged(words)
        kept = []
        for document in self._found[words]:
            text = _squeezed(document)
            if document.fqn not in names and text not in texts:
                texts.add(text)
                kept.append(document)
        return kept

    def named(self, words: str) -> list[Document]:
        """Documents whose name, or a name that leads to them, stands in the words."""
        found = (self._corpus.get(name) for name in _NAME.findall(words))
        return list({one.fqn: one for one in found if one is not None}.values())

    def _merged(self, words: str) -> list[Document]:
        corpus, depth = self._corpus, self._depth
        believed = [one for one in self._pool.contexts if one.document.fqn in self._pool.targets]
        rankings = [
            [one.document for one in believed],
            corpus.lexical(words, depth),
            corpus.dense(words, depth),
            corpus.dartboard(words, depth),
        ]
        documents = {one.fqn: one for ranking in reversed(rankings) for one in reversed(ranking)}
        names = [[one.fqn for one in ranking] for ranking in rankings]
        fused = reciprocal_rank_fusion(names, [1.0] * len(names), _DAMPING)
        best = [documents[name] for name in sorted(documents, key=lambda name: (-fused[name], name))]
        return list({one.fqn: one for one in [*self.named(words), *best, *self._pool.documents]}.values())


def find_kernel(
    case: Case,
    pool: ContextPool,
    corpus: Corpus | None,
    judge: Judge,
    *,
    labels: Mapping[str, Verdict] | None = None,
    most_rounds: int = ROUNDS,
    votes: int | None = None,
    most_calls: int = MOST_CALLS,
) -> FoundKernel:
    """The kernel of one case.

    Args:
        case: the question.
        pool: its contexts; the first target is where the expansion starts.
        corpus: where what is missing is searched for; without one, the pool.
        judge: says what suffices.
        labels: verdicts on contexts of the pool alone, by name.
        most_rounds: of adding candidates.
        votes: the most that one question is asked, as :func:`~dartboard.mining.kernels.voting.votes_for`.
        most_calls: that one case may cost.

    Returns:
        The kernel, which is empty where no sufficient set was found.

    Raises:
        ConfigError: a number that cannot work.
    """
    if most_rounds < 0:
        raise ConfigError(f"most_rounds must be >= 0, got {most_rounds}", field="most_rounds")
    panel = Panel(case, judge, votes=votes_for(judge, votes), most_calls=most_calls, labels=labels or {})
    return _Finding(case, pool, panel, CandidateSearch(pool, corpus), judge.name).find(most_rounds)


@dataclass(slots=True)
class _Finding:
    """One search; ``kept`` is the smallest set that the judge called sufficient so far."""

    case: Case
    pool: ContextPool
    panel: Panel
    search: CandidateSearch
    judge: str
    kept: list[Document] = field(default_factory=list)
    rounds: list[list[Document]] = field(default_factory=list)

    def find(self, most_rounds: int) -> FoundKernel:
        """The kernel, labels, and whether the targets are enough."""
        alone: list[Document] = []
        status: Status = "unresolved"
        with suppress(SpentError):
            alone = [one for one in self._by_belief(self.pool.documents) if self._answers_alone(one)]
            if alone:
                self.kept, status = alone[:1], "minimal"
            elif self._expanded(most_rounds):
                self.kept, status = [one for added in self.rounds for one in added], "sufficient"
                status = self._reduced()
                alone = [one for one in self.kept if len(self.kept) > 1 and self._answers_alone(one)]
                if alone:
                    self.kept, status = alone[:1], "minimal"
        others = tuple((one.fqn,) for one in alone[1:])
        insufficient = False
        with suppress(SpentError):
            insufficient = status != "unresolved" and self._lacks_targets(status, others)
        return FoundKernel(
            case=self.case.id,
            kernel=self._kernel(status, others),
            labels={
                one.fqn: verdict
                for one in [*self.pool.documents, *self.kept]
                if (verdict := self.panel.verdict([one])) is not None
            },
            insufficient_targets=insufficient,
            asked=self.panel.asked,
        )

    def _by_belief(self, documents: Sequence[Document]) -> list[Document]:
        """The first target, the other targets, then the rest by name."""
        first, targets = self.pool.target, self.pool.targets
        return sorted(documents, key=lambda one: (one.fqn != first, one.fqn not in targets, one.fqn))

    def _answers_alone(self, document: Document) -> bool:
        """By its label, which is asked for now if it is a member from outside the pool, and by votes."""
        if self.panel.label([document]) is None and document not in self.kept:
            return False
        return self.panel.first([document]) == "YES" and self.panel.decide([document]) == "YES"

    def _expanded(self, most_rounds: int) -> bool:
        """Whether a sufficient set was found in so many rounds of adding.

        A NO is believed at once, since a wrong one costs a round and no more; a YES ends the search and must
        lead.
        """
        start = [one for one in self.pool.documents if one.fqn == self.pool.target]
        self.rounds = [start or self.search.candidates("")[:1]]
        before, width = None, 1
        for _ in range(most_rounds):
            gathered = [one for added in self.rounds for one in added]
            if self._suffices(gathered):
                return True
            missing = self.panel.missing(gathered)
            width = 2 * width if before is not None and same_words(before, missing) else 1
            named = [one for one in self.search.named(missing) if one not in gathered]
            added = self.search.candidates(missing, gathered)[: max(width, len(named))]
            if not added:
                return False
            self.rounds.append(added)
            before = missing
        return self._suffices([one for added in self.rounds for one in added])

    def _suffices(self, documents: Sequence[Document]) -> bool:
        return self.panel.first(documents) == "YES" and self.panel.decide(documents) == "YES"

    def _reduced(self) -> Status:
        """Leave out what is not needed: of the rounds, the later first; then one by one."""
        with suppress(SpentError):
            for added in reversed(self.rounds):
                self._leave_out(added)
            while True:
                # The start of the expansion is what the case believes in: it is doubted last.
                labels = []
                for document in reversed(self.kept):
                    labels.append(self._without([document]))
                    if labels[-1] == "YES":
                        break
                else:
                    return "minimal" if set(labels) == {"NO"} else "sufficient"
        return "sufficient"

    def _leave_out(self, group: list[Document]) -> None:
        """Leave out as much of a group as can be: the best stand first, so the rest is likelier junk."""
        if len(group) < 2 or self._without(group) == "YES":
            return
        half = len(group) // 2
        for part in (group[half:], group[:half]):
            if len(part) > 1:
                self._leave_out(part)

    def _without(self, group: Sequence[Document]) -> str:
        """The judge on the rest. Nothing at all is another question, and never sufficient here."""
        rest = [one for one in self.kept if one not in group]
        if not rest:
            return "NO"
        label = self.panel.decide(rest)
        if label == "YES":
            self.kept = rest
        return label

    def _lacks_targets(self, status: Status, others: Sequence[tuple[str, ...]]) -> bool:
        """Whether the targets do not answer, by the kernel or by a vote."""
        targets, kernel = set(self.pool.targets), {one.fqn for one in self.kept}
        if not targets or any(targets.issuperset(one) for one in (kernel, *others)):
            return False
        # A minimal kernel no longer answers without any one member, so neither does a part of it.
        if status == "minimal" and targets.issubset(kernel):
            return True
        return self.panel.decide([one for one in self.pool.documents if one.fqn in targets]) == "NO"

    def _kernel(self, status: Status, others: tuple[tuple[str, ...], ...]) -> Kernel:
        # The evidence is that of the verdict that the kernel rests on; without one, say what is missing.
        verdict = self.panel.first_yes(self.kept) if self.kept else None
        if verdict is None or status == "unresolved":
            missing = self.panel.missing([one for added in self.rounds for one in added])
            why = f"still missing: {missing}" if missing else "no sufficient set was found"
            return Kernel(judge=self.judge, reason=why, calls=self.panel.calls)
        return Kernel(
            contexts=tuple(sorted(one.fqn for one in self.kept)),
            status=status,
            alternatives=others,
            judge=verdict.judge,
            evidence=verdict.evidence,
            reason=verdict.reason,
            calls=self.panel.calls,
        )


def same_words(first: str, second: str) -> bool:
    """Whether two wishes share most of their words."""
    a, b = (set(_WORD.findall(words.lower())) for words in (first, second))
    return 2 * len(a & b) > len(a | b) or a == b


def without_calls(found: FoundKernel) -> FoundKernel:
    """The same without what it cost, to be compared."""
    return replace(found, kernel=replace(found.kernel, calls=0))


def _squeezed(document: Document) -> str:
    return " ".join(document.text.split())
