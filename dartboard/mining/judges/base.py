"""Judges and their verdicts: what a judge is asked and says, and what all judges have in common.

A judge needs a ``name`` and a method ``judge``. It may also have ``prompt_version`` (judges that have one ask
a model, and are asked again where it matters) and ``expected(case, contexts, attempt)``, what a verdict will
probably take. An offline judge, whole::

    @dataclass(frozen=True)
    class LongestContext:
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
from dataclasses import dataclass
from typing import Protocol

from dartboard.datasets.mined import Label
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document

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


def version_of(judge: Judge) -> str:
    """The prompt's version, or "" for a judge without one."""
    return str(getattr(judge, "prompt_version", ""))


def expected_usage(judge: Judge, case: Case, contexts: Sequence[Document], attempt: int = 0) -> Usage:
    """What a verdict will probably take; nothing, where the judge does not say."""
    expected = getattr(judge, "expected", None)
    return Usage() if expected is None else expected(case, contexts, attempt)


def reasons_of(reasons: Iterable[tuple[str, bool]]) -> dict[str, int]:
    """Reasons of UNSURE verdicts (and whether they were answered) with their numbers, the commonest first."""
    counted = Counter(_reason_kind(reason, answered) for reason, answered in reasons)
    return dict(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def _reason_kind(reason: str, answered: bool) -> str:
    """A reason without what is special to its verdict: the words that it quotes, who else said what."""
    said = " ".join(reason.split()) or "no reason was given"
    if answered:
        said = _DETAIL.split(said, maxsplit=1)[0]
    return said if len(said) <= _LONGEST_REASON else f"{said[: _LONGEST_REASON - 1]}…"
