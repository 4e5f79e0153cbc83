"""Progressive expansion: the kernel of a case, that is, the documents that together answer it, and none more.

Expansion finds a sufficient set, minimality makes it small, and then each member is tried to be replaced:
other documents that serve as well are kept as alternatives, since a retriever that finds them is right, too.

- ``minimal``: sufficient, and without any one member no longer so;
- ``sufficient``: the judge said YES, but not of every member that it is needed (it was unsure, or the calls
  ran out);
- ``unresolved``: no sufficient set was found; the kernel is empty, and the trail says what was tried.

The same judge gives the same kernel: nothing is drawn, and ties go by name.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dartboard.errors import ConfigError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from dartboard.mining.dataset import Kernel, Status
from dartboard.mining.judges.base import Judge, Verdict
from dartboard.mining.kernels.voting import Panel, SpentError, Step, votes_for
from dartboard.retrievers.fusion import reciprocal_rank_fusion

DEPTH = 20
_DAMPING = 10
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")


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
        kept = []
        for document in self._ranked(missing):
            text = _squeezed(document)
            if document.fqn not in names and text not in texts:
                texts.add(text)
                kept.append(document)
        return kept

    def replacements(self, missing: str, known: Iterable[Document]) -> list[Document]:
        """As :meth:`candidates`, and documents of the very text of a known one: these replace it best."""
        names = {one.fqn for one in known}
        return [one for one in self._ranked(missing) if one.fqn not in names]

    def named(self, words: str) -> list[Document]:
        """Documents whose name, or a name that leads to them, stands in the words."""
        found = (self._corpus.get(name) for name in _NAME.findall(words))
        return list({one.fqn: one for one in found if one is not None}.values())

    def _ranked(self, missing: str) -> list[Document]:
        """All candidates; where nothing is said to be missing, those for the question itself."""
        words = missing.strip() or self._pool.case.question.strip()
        if words not in self._found:
            self._found[words] = self._merged(words)
        return self._found[words]

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


def _squeezed(document: Document) -> str:
    return " ".join(document.text.split())


_EXPAND = "expand"
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Expansion:
    """From one document to a set that the judge calls sufficient; ``rounds`` are what each added.

    Is the set sufficient? If not, what is missing, in the judge's words; search for it, add the best, ask
    again. While the same thing stays missing, the next candidates are added by twos, fours, eights: the right
    one is among them sooner, and what was added in vain goes out again when the set is minimised. A NO is
    believed at once, since a wrong one costs a round and no more; a YES ends the search and must lead.
    """

    panel: Panel
    search: CandidateSearch
    rounds: list[list[Document]] = field(default_factory=list)

    @property
    def documents(self) -> list[Document]:
        """All that was gathered."""
        return [document for added in self.rounds for document in added]

    def run(self, start: Sequence[Document], *, most_rounds: int) -> bool:
        """Whether a sufficient set was found in so many rounds of adding."""
        self.rounds = [list(start)] if start else [self.search.candidates("")[:1]]
        before, width = None, 1
        for _ in range(most_rounds):
            if self._sufficient():
                return True
            missing = self.panel.missing(self.documents)
            width = 2 * width if before is not None and same_words(before, missing) else 1
            added = self._next(missing, width)
            if not added:
                return False
            self.rounds.append(added)
            before = missing
        return self._sufficient()

    def _next(self, missing: str, width: int) -> list[Document]:
        """The best candidates; what is missing by name is added all at once."""
        known = self.documents
        named = [one for one in self.search.named(missing) if one not in known]
        return self.search.candidates(missing, known)[: max(width, len(named))]

    def _sufficient(self) -> bool:
        documents = self.documents
        return (
            self.panel.first(_EXPAND, documents) == "YES" and self.panel.decide(_EXPAND, documents) == "YES"
        )


def same_words(first: str, second: str) -> bool:
    """Whether two wishes share most of their words."""
    a, b = (set(_WORD.findall(words.lower())) for words in (first, second))
    return 2 * len(a & b) > len(a | b) or a == b


_LEAVE_OUT = "leave out"


@dataclass(slots=True)
class Minimality:
    """A sufficient set that shrinks; ``kept`` is the smallest that the judge called sufficient so far.

    First what a round of the expansion added is left out as a whole, and by halves where that is too much:
    junk goes in a few calls. Then one member at a time is left out of what remains. A set from which no
    single member can be left out is minimal; for a judge that never loses an answer by seeing more, no
    smaller subset suffices. Both answers decide here, so both must lead.
    """

    panel: Panel
    kept: list[Document]
    proved: bool = False

    def run(self, groups: Sequence[Sequence[Document]]) -> None:
        """Shrink; ``proved`` afterwards says that every member was found to be needed."""
        for group in reversed(groups):
            if len(group) > 1:
                self._reduce(list(group))
        self.proved = self._one_by_one()

    def _reduce(self, group: list[Document]) -> None:
        """Leave out as much of a group as can be."""
        if self._without(group) == "YES" or len(group) == 1:
            return
        half = len(group) // 2
        # The best candidates stand first, so the second half is the likelier junk.
        self._reduce(group[half:])
        self._reduce(group[:half])

    def _one_by_one(self) -> bool:
        """Whether each member is needed; after one has gone, the others are asked about anew."""
        needed = 0
        # The start of the expansion is what the case believes in: it is doubted last.
        for document in reversed(list(self.kept)):
            label = self._without([document])
            if label == "YES":
                return self._one_by_one()
            needed += label == "NO"
        return needed == len(self.kept)

    def _without(self, group: Sequence[Document]) -> str:
        """The judge on the rest. Nothing at all is another question, and never sufficient here."""
        names = {one.fqn for one in group}
        rest = [one for one in self.kept if one.fqn not in names]
        if not rest:
            return "NO"
        label = self.panel.decide(_LEAVE_OUT, rest)
        if label == "YES":
            self.kept = rest
        return label


ROUNDS = 8
MOST_CALLS = 200
ALTERNATIVES = 2
_REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionKernel(Kernel):
    """A kernel with the way to it: what was asked (``trail``), and what that cost."""

    case: str
    usage: Usage = field(default_factory=Usage)
    trail: tuple[Step, ...] = ()


def find_kernel(
    case: Case,
    pool: ContextPool,
    corpus: Corpus | None,
    judge: Judge,
    *,
    most_rounds: int = ROUNDS,
    votes: int | None = None,
    most_calls: int = MOST_CALLS,
    alternatives: int = ALTERNATIVES,
) -> ExpansionKernel:
    """The kernel of one case.

    Args:
        case: the question.
        pool: its contexts; the first target is where the expansion starts.
        corpus: where what is missing is searched for; without one, the pool.
        judge: says what suffices.
        most_rounds: of adding candidates.
        votes: the most that one question is asked, as :func:`~dartboard.mining.kernels.voting.votes_for`.
        most_calls: that one case may cost.
        alternatives: how many documents are tried in the place of each member.

    Returns:
        The kernel, which is empty where no sufficient set was found.

    Raises:
        ConfigError: a number that cannot work.
    """
    for name, value in (("most_rounds", most_rounds), ("alternatives", alternatives)):
        if value < 0:
            raise ConfigError(f"{name} must be >= 0, got {value}")
    panel = Panel(case, judge, votes=votes_for(judge, votes), most_calls=most_calls)
    search = CandidateSearch(pool, corpus)
    expansion = Expansion(panel, search)
    start = [one for one in pool.documents if one.fqn == pool.target]
    sufficient = False
    with suppress(SpentError):
        sufficient = expansion.run(start, most_rounds=most_rounds)
    if not sufficient:
        return _kernel(panel, judge, [], "unresolved")
    smaller = Minimality(panel, expansion.documents)
    found: list[tuple[str, ...]] = []
    with suppress(SpentError):
        smaller.run(expansion.rounds)
        _replace(panel, search, smaller.kept, alternatives, found)
    return _kernel(panel, judge, smaller.kept, "minimal" if smaller.proved else "sufficient", found)


def _replace(
    panel: Panel, search: CandidateSearch, kept: list[Document], tries: int, found: list[tuple[str, ...]]
) -> None:
    """Try others in the place of each member. A NO is believed at once: it loses an alternative, no more."""
    for member in kept:
        rest = [one for one in kept if one is not member]
        for candidate in search.replacements(panel.missing(rest) if rest else "", kept)[:tries]:
            changed = [*rest, candidate]
            if panel.first(_REPLACE, changed) == "YES" and panel.decide(_REPLACE, changed) == "YES":
                found.append(tuple(sorted(one.fqn for one in changed)))


def _kernel(
    panel: Panel,
    judge: Judge,
    documents: list[Document],
    status: Status,
    alternatives: list[tuple[str, ...]] | None = None,
) -> ExpansionKernel:
    trail = panel.trail
    # The evidence is that of the verdict that the kernel rests on; without one, say what is still missing.
    verdict = panel.first_yes(documents) if documents else None
    if verdict is None:
        missing = trail[-1].missing if trail else ""
        why = f"still missing: {missing}" if missing else "no sufficient set was found"
        verdict = Verdict(label="UNSURE", judge=judge.name, reason=why)
    return ExpansionKernel(
        case=panel.case.id,
        contexts=tuple(sorted(one.fqn for one in documents)),
        status=status,
        alternatives=tuple(dict.fromkeys(alternatives or ())),
        judge=verdict.judge,
        evidence=verdict.evidence,
        reason=verdict.reason,
        calls=panel.calls,
        usage=panel.usage,
        trail=trail,
    )
