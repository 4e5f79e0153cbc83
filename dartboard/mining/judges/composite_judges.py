"""Judges that are made of others: a majority of several, or a check for the cases that have one.

Running a check runs code that came with the registry, so nobody gets :func:`with_checks` without asking for
it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from dartboard.errors import ConfigError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.judges.base import (
    Judge,
    Label,
    Verdict,
    expected_usage,
    is_known,
    looked_at,
    version_of,
)
from dartboard.mining.judges.check_judge import CheckJudge
from dartboard.mining.judges.partial_solution import PartialSolution


class EnsembleJudge:
    """A majority of its members; who disagreed, and why, is in the reason, the labels are in ``votes``.

    Args:
        judges: at least two.

    Raises:
        ConfigError: there are fewer.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        if len(judges) < 2:
            raise ConfigError(f"an ensemble needs at least 2 judges, got {len(judges)}")
        self.judges = tuple(judges)

    @property
    def name(self) -> str:
        """``ensemble(…)`` with the members' names."""
        return f"ensemble({', '.join(judge.name for judge in self.judges)})"

    @property
    def prompt_version(self) -> str:
        """The members' prompt versions, each once."""
        return "+".join(dict.fromkeys(filter(None, map(version_of, self.judges))))

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """Ask all members and count."""
        verdicts = [judge.judge(case, contexts, attempt=attempt) for judge in self.judges]
        votes: tuple[Label, ...] = tuple(verdict.label for verdict in verdicts)
        label = majority(votes)
        side = next((verdict for verdict in verdicts if verdict.label == label), Verdict(label=label))
        return Verdict(
            label=label,
            evidence=side.evidence if label == "YES" else "",
            missing=next((verdict.missing for verdict in verdicts if verdict.missing), "")
            if label != "YES"
            else "",
            reason=_reason(label, verdicts, [judge.name for judge in self.judges]),
            judge=self.name,
            prompt_version=self.prompt_version,
            votes=votes,
            usage=reduce(add, (verdict.usage for verdict in verdicts)),
            answered=any(verdict.answered for verdict in verdicts),
        )

    def with_members(self, changed: Callable[[Judge], Judge]) -> "EnsembleJudge":
        """The same ensemble with each member wrapped."""
        return EnsembleJudge([changed(judge) for judge in self.judges])

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """What its members look at."""
        return [looked_at(judge, case, contexts) for judge in self.judges]

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What asking all members will probably cost."""
        return reduce(add, (expected_usage(judge, case, contexts) for judge in self.judges))

    def known(self, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
        """Whether the verdicts of all members are at hand."""
        return all(is_known(judge, case, contexts, attempt) for judge in self.judges)


def majority(votes: Sequence[Label]) -> Label:
    """The label of more than half of the votes, otherwise UNSURE."""
    label, count = Counter(votes).most_common(1)[0]
    return label if 2 * count > len(votes) else "UNSURE"


def _reason(label: Label, verdicts: Sequence[Verdict], names: Sequence[str]) -> str:
    agreed = sum(verdict.label == label for verdict in verdicts)
    dissent = [
        f"{name} says {verdict.label}: {verdict.reason}"
        for name, verdict in zip(names, verdicts, strict=True)
        if verdict.label != label
    ]
    return "; ".join([f"{agreed} of {len(verdicts)} judges say {label}", *dissent])


@dataclass(frozen=True, slots=True)
class PerCaseJudge:
    """``checked`` for cases that have a check, ``otherwise`` for all others."""

    checked: Judge
    otherwise: Judge

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.checked.name} or {self.otherwise.name}"

    @property
    def prompt_version(self) -> str:
        """The prompt's version of the judge without checks."""
        return version_of(self.otherwise)

    def of(self, case: Case) -> Judge:
        """The judge of a case."""
        return self.otherwise if case.check is None else self.checked

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The verdict of the case's judge."""
        return self.of(case).judge(case, contexts, attempt=attempt)

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """As the case's judge."""
        return looked_at(self.of(case), case, contexts)

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """As the case's judge."""
        return expected_usage(self.of(case), case, contexts)

    def known(self, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
        """As the case's judge."""
        return is_known(self.of(case), case, contexts, attempt)

    def with_members(self, changed: Callable[[Judge], Judge]) -> "PerCaseJudge":
        """The same choice between wrapped judges."""
        return PerCaseJudge(changed(self.checked), changed(self.otherwise))


def with_checks(judge: Judge, corpus: Corpus | None = None) -> PerCaseJudge:
    """Checks decide where there are any, and ``judge`` screens them; elsewhere ``judge`` decides.

    A ``corpus`` tells which document a name that a solution imports belongs to.
    """
    return PerCaseJudge(CheckJudge(solve=PartialSolution(corpus), screen=judge), judge)


def members_in(judge: Judge) -> set[str]:
    """The names of a judge and of all that it is made of."""
    return {judge.name}.union(*map(members_in, _members(judge)))


def close_judge(judge: object) -> None:
    """Close the connections of a judge and of all that it is made of."""
    for member in _members(judge):
        close_judge(member)
    close = getattr(judge, "close", None)
    if close is not None:
        close()


def _members(judge: object) -> list[Any]:
    parts = [getattr(judge, part, None) for part in ("checked", "otherwise", "screen")]
    return [one for one in (*parts, *getattr(judge, "judges", ())) if one is not None]
