"""A case: a question from a benchmark, and what is known of its answer before any judge is asked."""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from dartboard.datasets.mined import STRICT
from dartboard.datasets.safe_yaml import Identifier, Text, Words
from dartboard.errors import DatasetError

Kind = Literal["api_question", "fix_error", "multiple_choice", "question"]

TIMEOUT = 60.0
CANDIDATE = "solution.py"
Seconds = Annotated[float, Field(gt=0, le=3600)]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Check:
    """An executable truth: a test file that fails with the broken code and passes with the fixed one.

    ``command`` runs in an empty folder that holds ``files`` and, under the name ``candidate``, the code
    that is to be judged; exit code 0 means that the case is solved. A command's ``python`` is the Python
    that runs dartboard.
    """

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    files: dict[str, str] = field(default_factory=dict)
    timeout: Seconds = TIMEOUT
    candidate: Text = CANDIDATE


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Case:
    """One question with its targets: names of documents that are believed, not proved, to answer it.

    ``answers`` are strings any of which is a right answer. A question of several parts has ``facets``
    instead: every facet needs one of its strings. ``solution`` is code that solves the case, for finding
    what it imports; ``place`` says where the case was written, for messages.
    """

    id: Identifier
    question: Text
    targets: tuple[Text, ...] = ()
    answers: tuple[Text, ...] = ()
    facets: tuple[Annotated[tuple[Text, ...], Field(min_length=1)], ...] = ()
    kind: Kind = "question"
    choices: tuple[Text, ...] = ()
    unfixed: Words | None = None
    solution: Words | None = None
    check: Check | None = None
    place: str = ""


def labelled_case(**values: Any) -> Case:
    """A case made of a data set of other people.

    Raises:
        DatasetError: an id, a question or an answer that no case can have.
    """
    try:
        return Case(**values)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        what = wrong["msg"].removeprefix("Value error, ")
        place = values.get("place") or "the data set"
        raise DatasetError(f"{place}: {name} of a query: {what}", field=name) from error
