"""Judges and their verdicts: what a judge is asked and says, and what all judges have in common.

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
            for one in contexts:
                if len(one.text) > 1000:  # what YES rests on stands in a context word for word
                    return Verdict(label="YES", evidence=one.text[:200], judge=self.name)
            return Verdict(label="NO", missing="a long context", judge=self.name)
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document

Label = Literal["YES", "NO", "UNSURE"]

_LONGEST_REASON = 160
_DETAIL = re.compile(r": ['\"]|; |: (?=\S+ says )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """YES: the contexts alone answer the question, and ``evidence`` stands in one of them word for word.

    ``missing`` says in a few words what is not there; ``votes`` are the labels of an ensemble's members.
    Not ``answered``: the call was refused, or its answer could not be read, and the label is UNSURE for want
    of a better one.
    """

    label: Label
    evidence: str = ""
    missing: str = ""
    reason: str = ""
    judge: str = ""
    prompt_version: str = ""
    votes: tuple[Label, ...] = ()
    usage: Usage = field(default_factory=Usage)
    answered: bool = True


class Judge(Protocol):
    """Can the question be answered definitively from these contexts alone? No contexts: from none."""

    @property
    def name(self) -> str:
        """Which judge: model and endpoint, or ``answers``, ``check``, ``ensemble(…)``."""

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """One verdict.

        Args:
            case: the question, and what is known of its answer.
            contexts: all that may be used for the answer.
            attempt: above 0, ask again, independently, where the first answer is doubted.
        """


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


def reasons_of(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """The reasons of the UNSURE ones with their numbers, the commonest first, equal ones by name."""
    counted = Counter(_reason_kind(verdict) for verdict in verdicts if verdict.label == "UNSURE")
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _reason_kind(verdict: Verdict) -> str:
    """A reason without what is special to its verdict: the words that it quotes, who else said what."""
    said = " ".join(verdict.reason.split()) or "no reason was given"
    if verdict.answered:
        said = _DETAIL.split(said, maxsplit=1)[0]
    return said if len(said) <= _LONGEST_REASON else f"{said[: _LONGEST_REASON - 1]}…"
