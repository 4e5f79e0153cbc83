"""What a judge says of a question and contexts."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document

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
        """One verdict; ``attempt`` > 0 asks again, independently, where the first answer is doubted."""


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
