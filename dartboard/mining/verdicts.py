"""What a judge says of a question and contexts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document

Label = Literal["YES", "NO", "UNSURE"]


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
