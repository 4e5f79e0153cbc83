"""Questions about an interface, with the answer and the document that has it.

::

    cases:
      - id: "01"
        question: "Which field of an agent …?"
        target: "package.module.Name"
        answers: ["output_key"]
"""

from collections.abc import Iterator

from dartboard.datasets.safe_yaml import Fields, read_fields
from dartboard.errors import DatasetError
from dartboard.mining.adapters.reading import CASE_KEYS, prefix_of, read_case
from dartboard.mining.cases import Case
from dartboard.mining.inside import Inside

KIND = "api_questions"


def read(entry: Fields, inside: Inside) -> Iterator[Case]:
    """The cases of the file that the entry names; each needs a target and an answer."""
    entry.only({"kind", "file", "prefix"})
    for found in case_entries(entry, inside):
        found.only(CASE_KEYS)
        case = read_case(found, inside, kind="api_question", prefix=prefix_of(entry, KIND))
        for what, given in (("target", case.targets), ("answer", case.answers or case.facets)):
            if not given:
                raise found.error(f"{what!r} is missing: an API question needs at least one")
        yield case


def case_entries(entry: Fields, inside: Inside) -> list[Fields]:
    """The mappings under ``cases`` of the file that an entry names."""
    try:
        path = inside.file(entry.string("file"))
    except DatasetError as error:
        raise entry.error(f"'file': {error}") from None
    root = read_fields(path, "'cases'")
    root.only({"cases"})
    if not (found := root.mappings("cases")):
        raise root.error("'cases' is empty")
    return found
