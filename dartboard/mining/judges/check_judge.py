"""The executable check as a judge: can the case be solved by who knows these contexts alone?

A solver writes a candidate from the contexts, and the check runs it: it passes or it does not, and no opinion
comes into it. The default solver asks nobody (:mod:`dartboard.mining.judges.partial_solution`): it takes the
known solution without what no context tells of.

A check that passes with the help of nothing that was shown cannot tell contexts apart, so it decides nothing:
the verdict is UNSURE. Without any context that is a YES, which marks the case.

Another judge can be the screen: what it says NO to is not run. Where it says YES, its evidence is kept, and
stands where the check has none.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Label, OfflineJudge, Verdict, expected_usage, version_of
from dartboard.mining.judges.check_runner import Outcome, run_check
from dartboard.mining.judges.partial_solution import Candidate, PartialSolution

Solver = Callable[[Case, Sequence[Document]], Candidate | None]


@dataclass(frozen=True, slots=True)
class CheckJudge(OfflineJudge):
    """YES where the check passes on what the solver writes. Equal candidates are run once.

    Args:
        solve: writes a candidate from a case and contexts, or None where it cannot.
        screen: a judge that is asked first; what it says NO to is not run.
    """

    solve: Solver = field(default_factory=lambda: PartialSolution())
    screen: Judge | None = None
    _ran: dict[str, Outcome] = field(default_factory=dict, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """``check``, with the screen's name where there is one."""
        return f"check({self.screen.name})" if self.screen else "check"

    @property
    def prompt_version(self) -> str:  # type: ignore[override]
        """The screen's."""
        return version_of(self.screen) if self.screen else ""

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What the screen costs."""
        return expected_usage(self.screen, case, contexts) if self.screen else Usage()

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The check's verdict; UNSURE where there is no check, no candidate, or the check is broken."""
        if case.check is None:
            return self._unsure("the case has no executable check")
        if case.solution is not None and not (known := self._outcome(case, case.solution)).passed:
            return self._unsure(f"the check fails with the known solution, too: {known.told}")
        if self.screen is not None:
            screened = self.screen.judge(case, contexts, attempt=attempt)
            if screened.label == "NO":
                return replace(screened, judge=self.name, reason=f"screened out: {screened.reason}")
            said = screened.evidence if screened.label == "YES" else ""
            return replace(self._checked(case, contexts, said), usage=screened.usage)
        return self._checked(case, contexts)

    def _checked(self, case: Case, contexts: Sequence[Document], said: str = "") -> Verdict:
        candidate = self.solve(case, contexts)
        if candidate is None:
            return self._unsure("there is no solution to check")
        outcome = self._outcome(case, candidate.code)
        evidence = said or candidate.evidence
        if outcome.passed and contexts and not evidence:
            return self._unsure("the check passes by nothing that is shown: it cannot tell contexts apart")
        if outcome.passed:
            return self._verdict("YES", evidence=evidence, reason="the check passes")
        return self._verdict("NO", missing=candidate.missing, reason=f"the check fails: {outcome.told}")

    def _unsure(self, reason: str) -> Verdict:
        return self._verdict("UNSURE", reason=reason)

    def _verdict(self, label: Label, *, evidence: str = "", missing: str = "", reason: str = "") -> Verdict:
        return Verdict(
            label=label,
            evidence=evidence,
            missing=missing,
            reason=reason,
            judge=self.name,
            prompt_version=self.prompt_version,
        )

    def _outcome(self, case: Case, code: str) -> Outcome:
        key = hashlib.sha256(repr((case.check, code)).encode()).hexdigest()
        with self._lock:
            known = self._ran.get(key)
        if known is None and case.check is not None:
            known = run_check(case.check, code)
            with self._lock:
                self._ran[key] = known
        assert known is not None  # noqa: S101 - there is a check
        return known
