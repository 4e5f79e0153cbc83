"""What judges have in common beside the :class:`~dartboard.mining.verdicts.Judge` protocol.

A judge needs a ``name`` and a method ``judge``. It may also have:

- ``prompt_version``: part of the key of its verdicts; judges that have one are asked again where it matters;
- ``looks_at(case, contexts)``: what of the case changes its verdict, for the key in the journal;
- ``expected(case, contexts)``: what a verdict will probably cost;
- ``known(case, contexts, attempt)``: whether a verdict is at hand without asking.

The functions here ask for each, with what holds for a judge that does not say. An offline judge, whole::

    @dataclass(frozen=True)
    class LongestContext(OfflineJudge):
        name: str = "longest"

        def judge(self, case, contexts, *, attempt=0):
            label = "YES" if any(len(one.text) > 1000 for one in contexts) else "NO"
            return Verdict(label=label, judge=self.name)
"""

from collections.abc import Sequence
from typing import Any

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document
from dartboard.mining.verdicts import Judge


class OfflineJudge:
    """A judge that asks nobody: it costs nothing, and its verdict depends on what the case knows."""

    __slots__ = ()

    prompt_version = ""

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """What of the case, beside question and contexts, changes the verdict."""
        check = case.check and [list(case.check.command), sorted(case.check.files.items())]
        return [list(case.answers), [list(facet) for facet in case.facets], case.solution, check]

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What a verdict costs: nothing."""
        return Usage()


def version_of(judge: Judge) -> str:
    """The prompt's version, or "" for a judge without one."""
    return str(getattr(judge, "prompt_version", ""))


def looked_at(judge: Judge, case: Case, contexts: Sequence[Document]) -> Any:
    """What of the case a judge takes into account; everything known, where the judge does not say."""
    looks_at = getattr(judge, "looks_at", None)
    return OfflineJudge().looks_at(case, contexts) if looks_at is None else looks_at(case, contexts)


def expected_usage(judge: Judge, case: Case, contexts: Sequence[Document]) -> Usage:
    """What a verdict will probably cost; nothing, where the judge does not say."""
    expected = getattr(judge, "expected", None)
    return Usage() if expected is None else expected(case, contexts)


def is_known(judge: Judge, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
    """Whether a verdict is at hand without asking; never, where the judge does not say."""
    known = getattr(judge, "known", None)
    return known is not None and bool(known(case, contexts, attempt))
