"""What a judge says of a question and contexts, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from dartboard.mining.cases import Case
from dartboard.mining.documents import Document

Label = Literal["YES", "NO", "UNSURE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one call, as the endpoint counted them, or as estimated where it does not.

    ``unanswered`` counts requests whose answer never arrived whole: nobody here knows whether they were
    charged, so they are in no other figure.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unanswered: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
            unanswered=self.unanswered + other.unanswered,
        )


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
    usage: Usage = Usage()
    answered: bool = True


class Judge(Protocol):
    """Can the question be answered definitively from these contexts alone? No contexts: from none."""

    @property
    def name(self) -> str:
        """Which judge: model and endpoint, or ``answers``, ``check``, ``ensemble(…)``."""

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """One verdict; ``attempt`` > 0 asks again, independently, where the first answer is doubted."""
