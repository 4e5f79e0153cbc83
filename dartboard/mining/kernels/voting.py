"""Ask a judge that may err, and again where it matters, until one answer leads.

A verdict that decides something is asked for until one label leads by ``LEAD`` votes or ``votes`` were cast.
For a judge that errs with chance p each time, a lead of m is wrong with chance ``p^m / (p^m + (1-p)^m)`` (the
gambler's ruin, and Wald's sequential test): 0.28 % for p = 5 % and m = 2, at 2.2 calls, where the best of
three is wrong 0.72 % of the time. YES must lead by one vote more: many sets are asked about and few suffice,
so that among the YESes of one vote many would be errors. Votes on a set of contexts are kept: nobody is asked
again for what was said.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dartboard.errors import ConfigError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Label, Verdict, version_of

LEAD = 2
VOTES = 7


def votes_for(judge: Judge, votes: int | None) -> int:
    """The most that one question is asked: ``votes``, else once for judges that repeat themselves.

    These are the judges without a prompt; all others are asked up to 7 times.
    """
    if votes is not None:
        return votes
    return VOTES if version_of(judge) else 1


class SpentError(Exception):
    """All the calls that a case may cost are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A question that was put to the judge: which contexts, why, and what came of it."""

    stage: str
    contexts: tuple[str, ...]
    label: Label
    votes: tuple[Label, ...]
    missing: str = ""


class Panel:
    """The votes of one judge on one case, by set of contexts; contexts are shown by rising name."""

    def __init__(self, case: Case, judge: Judge, *, votes: int = VOTES, most_calls: int = 200) -> None:
        for name, value in (("votes", votes), ("most_calls", most_calls)):
            if value < 1:
                raise ConfigError(f"{name} must be >= 1, got {value}")
        self.case = case
        self.calls = 0
        self.usage = Usage()
        self._judge = judge
        self._votes, self._lead = votes, min(LEAD, votes)
        self._most_calls = most_calls
        self._cast: dict[frozenset[str], list[Verdict]] = {}
        self._steps: dict[tuple[str, frozenset[str]], Step] = {}

    def first(self, stage: str, contexts: Iterable[Document]) -> Label:
        """One vote: enough where an error costs calls and not the result."""
        return self._answer(stage, contexts, decide=False)

    def decide(self, stage: str, contexts: Iterable[Document]) -> Label:
        """As many votes as it takes; UNSURE where none leads at the end."""
        return self._answer(stage, contexts, decide=True)

    def missing(self, contexts: Iterable[Document]) -> str:
        """What the last vote against a set said is missing; "" where none did."""
        cast = self._cast.get(frozenset(one.fqn for one in contexts), [])
        return next((one.missing for one in reversed(cast) if one.label != "YES" and one.missing), "")

    def verdict(self, contexts: Iterable[Document]) -> Verdict:
        """The last vote for what was decided on a set, with all votes; UNSURE where they are split."""
        cast = self._cast[frozenset(one.fqn for one in contexts)]
        label = leader(cast)
        votes = cast[-1].votes or (tuple(one.label for one in cast) if len(cast) > 1 else ())
        said = next((one for one in reversed(cast) if one.label == label), None)
        if said is None:
            return replace(cast[-1], label=label, evidence="", reason="its votes are split", votes=votes)
        return replace(said, votes=said.votes or votes)

    def first_yes(self, contexts: Iterable[Document]) -> Verdict | None:
        """The first vote for a set; None where there is none."""
        cast = self._cast.get(frozenset(one.fqn for one in contexts), [])
        return next((one for one in cast if one.label == "YES"), None)

    @property
    def trail(self) -> tuple[Step, ...]:
        """What was asked, in order; a set that was asked about again stands where it was asked first."""
        return tuple(self._steps.values())

    def _answer(self, stage: str, contexts: Iterable[Document], *, decide: bool) -> Label:
        shown = sorted(contexts, key=lambda one: one.fqn)
        key = frozenset(one.fqn for one in shown)
        cast = self._cast.setdefault(key, [])
        while not cast or (decide and not self._decided(cast)):
            if self.calls >= self._most_calls:
                raise SpentError(f"{self.calls} calls for {self.case.id!r}")
            self.calls += 1
            verdict = self._judge.judge(self.case, shown, attempt=len(cast))
            cast.append(verdict)
            self.usage = self.usage + verdict.usage
        label = leader(cast) if decide else cast[0].label
        names = tuple(one.fqn for one in shown)
        votes: tuple[Label, ...] = tuple(one.label for one in cast)
        self._steps[stage, key] = Step(
            stage=stage, contexts=names, label=label, votes=votes, missing=self.missing(shown)
        )
        return label

    def _decided(self, cast: list[Verdict]) -> bool:
        if len(cast) >= self._votes:
            return True
        (label, most), *others = Counter(one.label for one in cast).most_common(2)
        ahead = most - (others[0][1] if others else 0)
        return ahead >= self._lead + (label == "YES")


def leader(cast: list[Verdict]) -> Label:
    """The label with the most votes, UNSURE where two have the same number."""
    ranked = Counter(one.label for one in cast).most_common(2)
    tied = len(ranked) == 2 and ranked[0][1] == ranked[1][1]
    return "UNSURE" if tied else ranked[0][0]
