"""Ask a judge that may err, and again where it matters, until one answer leads.

A verdict that decides something is asked for until one label leads by ``LEAD`` votes or ``votes`` were cast.
For a judge that errs with chance p each time, a lead of m is wrong with chance ``p^m / (p^m + (1-p)^m)`` (the
gambler's ruin, and Wald's sequential test): 0.28 % for p = 5 % and m = 2, at 2.2 calls, where the best of
three is wrong 0.72 % of the time. YES must lead by one vote more: many sets are asked about and few suffice,
so that among the YESes of one vote many would be errors. Votes on a set of contexts are kept: nobody is asked
again for what was said.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dartboard.datasets.mined import Label
from dartboard.errors import ConfigError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Verdict, version_of

LEAD = 2
VOTES = 7

Key = frozenset[str]


def votes_for(judge: Judge, votes: int | None) -> int:
    """The most that one question is asked: ``votes``, else once for judges that repeat themselves.

    These are the judges without a prompt; all others are asked up to 7 times.
    """
    if votes is not None:
        return votes
    return VOTES if version_of(judge) else 1


class SpentError(Exception):
    """All the calls that a case may cost are made."""


class Panel:
    """The votes of one judge on one case, by set of contexts; contexts are shown by rising name.

    ``labels`` are verdicts on single contexts that were given before: their first votes.
    """

    def __init__(
        self,
        case: Case,
        judge: Judge,
        *,
        votes: int = VOTES,
        most_calls: int = 200,
        labels: Mapping[str, Verdict] | None = None,
    ) -> None:
        for name, value in (("votes", votes), ("most_calls", most_calls)):
            if value < 1:
                raise ConfigError(f"{name} must be >= 1, got {value}", field=name)
        self.calls = 0
        self.asked: tuple[tuple[str, ...], ...] = ()
        self._case, self._judge = case, judge
        self._votes, self._lead = votes, min(LEAD, votes)
        self._most_calls = most_calls
        self._cast: dict[Key, list[Verdict]] = {
            frozenset([name]): [verdict] for name, verdict in (labels or {}).items()
        }

    def first(self, contexts: Sequence[Document]) -> Label:
        """One vote: enough where an error costs calls and not the result."""
        return self._asked(contexts, decide=False)[0].label

    def decide(self, contexts: Sequence[Document]) -> Label:
        """As many votes as it takes; UNSURE where none leads at the end."""
        return leader(self._asked(contexts, decide=True))

    def label(self, contexts: Sequence[Document]) -> Label | None:
        """What the votes on a set say so far; None where nobody was asked."""
        cast = self._cast.get(_key(contexts))
        return leader(cast) if cast else None

    def missing(self, contexts: Sequence[Document]) -> str:
        """What the last vote against a set said is missing; "" where none did."""
        cast = self._cast.get(_key(contexts), [])
        return next((one.missing for one in reversed(cast) if one.label != "YES" and one.missing), "")

    def verdict(self, contexts: Sequence[Document]) -> Verdict | None:
        """The last vote for what the votes on a set say, with all votes; UNSURE where they are split."""
        cast = self._cast.get(_key(contexts))
        if not cast:
            return None
        label = leader(cast)
        votes = tuple(one.label for one in cast) if len(cast) > 1 else ()
        said = next((one for one in reversed(cast) if one.label == label), None)
        if said is None:
            return replace(cast[-1], label=label, evidence="", reason="its votes are split", votes=votes)
        return replace(said, votes=said.votes or votes)

    def first_yes(self, contexts: Sequence[Document]) -> Verdict | None:
        """The first vote for a set; None where there is none."""
        return next((one for one in self._cast.get(_key(contexts), []) if one.label == "YES"), None)

    def _asked(self, contexts: Sequence[Document], *, decide: bool) -> list[Verdict]:
        shown = sorted(contexts, key=lambda one: one.fqn)
        cast = self._cast.setdefault(_key(shown), [])
        while not cast or (decide and not self._decided(cast)):
            if self.calls >= self._most_calls:
                raise SpentError(f"{self.calls} calls for {self._case.id!r}")
            self.calls += 1
            self.asked = (*self.asked, tuple(one.fqn for one in shown))
            cast.append(self._judge.judge(self._case, shown, attempt=len(cast)))
        return cast

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


def _key(contexts: Sequence[Document]) -> Key:
    return frozenset(one.fqn for one in contexts)
