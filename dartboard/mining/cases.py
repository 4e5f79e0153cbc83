"""A case: a question from a benchmark, and what is known of its answer before any judge is asked."""

from dataclasses import dataclass, field
from typing import Literal

from dartboard.datasets.safe_yaml import odd_character, refused_id
from dartboard.errors import DatasetError

Kind = Literal["api_question", "fix_error", "multiple_choice", "question"]

TIMEOUT = 60.0
CANDIDATE = "solution.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An executable truth: a test file that fails with the broken code and passes with the fixed one.

    ``command`` runs in an empty folder that holds ``files`` and, under the name ``candidate``, the code
    that is to be judged; exit code 0 means that the case is solved. A command's ``python`` is the Python
    that runs dartboard.
    """

    command: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    candidate: str = CANDIDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question with its targets: names of documents that are believed, not proved, to answer it.

    ``answers`` are strings any of which is a right answer. A question of several parts has ``facets``
    instead: every facet needs one of its strings. ``solution`` is code that solves the case, for finding
    what it imports; ``place`` says where the case was written, for messages.
    """

    id: str
    question: str
    targets: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    kind: Kind = "question"
    choices: tuple[str, ...] = ()
    unfixed: str | None = None
    solution: str | None = None
    check: Check | None = None
    place: str = ""

    def __post_init__(self) -> None:
        if not self.id.strip() or not self.question.strip():
            raise DatasetError(f"{self.place or 'a case'}: id and question must not be empty")
        if (odd := odd_character(self.id)) is not None:
            raise DatasetError(f"{self.place or 'a case'}: {refused_id(self.id, odd)}")
