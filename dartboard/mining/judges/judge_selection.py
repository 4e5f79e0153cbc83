"""Which judge for which case: where a case has an executable check, the check is the truth.

The judge is then the screen, and what it says NO to is not run. Running a check runs code that came with the
registry, so nobody gets this judge without asking for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus, Document
from dartboard.mining.judges.base import expected_usage, is_known, looked_at, version_of
from dartboard.mining.judges.checks import CheckJudge
from dartboard.mining.judges.partial_solution import PartialSolution
from dartboard.mining.verdicts import Judge, Verdict


@dataclass(frozen=True, slots=True)
class ChoosingJudge:
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

    def with_members(self, changed: Callable[[Judge], Judge]) -> "ChoosingJudge":
        """The same choice between wrapped judges."""
        return ChoosingJudge(changed(self.checked), changed(self.otherwise))


def with_checks(judge: Judge, corpus: Corpus | None = None) -> ChoosingJudge:
    """Checks decide where there are any, and ``judge`` screens them; elsewhere ``judge`` decides.

    A ``corpus`` tells which document a name that a solution imports belongs to.
    """
    return ChoosingJudge(CheckJudge(solve=PartialSolution(corpus), screen=judge), judge)


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
