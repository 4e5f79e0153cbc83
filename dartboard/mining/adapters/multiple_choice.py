"""Questions with choices, of which one is right.

::

    cases:
      - id: "01"
        question: "Which service keeps sessions in memory?"
        choices: ["DatabaseSessionService", "InMemorySessionService"]
        correct: "B"                     # the letter, or the choice itself
        target: "package.module.Name"
"""

from collections.abc import Iterator
from dataclasses import replace
from string import ascii_uppercase

from dartboard.datasets.safe_yaml import Fields
from dartboard.mining.adapters.api_questions import case_entries
from dartboard.mining.adapters.reading import prefix_of, read_case
from dartboard.mining.cases import Case
from dartboard.mining.inside import Inside

KIND = "multiple_choice"


def read(entry: Fields, inside: Inside) -> Iterator[Case]:
    """The cases of the file that the entry names; the right choice is the answer."""
    entry.only({"kind", "file", "prefix"})
    for found in case_entries(entry, inside):
        found.only({"id", "question", "target", "targets", "choices", "correct"})
        case = read_case(found, inside, kind="multiple_choice", prefix=prefix_of(entry, KIND))
        choices = found.strings("choices")
        if not 2 <= len(set(choices)) == len(choices) <= len(ascii_uppercase):
            raise found.error("'choices' must be 2 to 26 different texts")
        yield replace(case, choices=tuple(choices), answers=(_correct(found, choices),))


def _correct(entry: Fields, choices: list[str]) -> str:
    said = entry.string("correct")
    if said in choices:
        return said
    letters = ascii_uppercase[: len(choices)]
    if len(said) == 1 and said.upper() in letters:
        return choices[letters.index(said.upper())]
    raise entry.error(
        f"'correct' must be one of the choices or a letter A … {letters[-1]}, got {said!r}",
        entry.entries["correct"],
    )
