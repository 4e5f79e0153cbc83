"""Does an answer hold the known answer?

Strings are compared as the offline judge of :mod:`dartboard.mining` compares them: by words, numbers and
dates, whatever their spelling. Of an answer in several parts (RGB's) each has to be there. The numbers of
citations are not looked at, a bare yes or no counts where the answer begins with it, and an answer that says
that there is none is none. (After Pickett et al., 2024, and RGB's own rule, Chen et al., 2024.)
"""

import re

from dartboard.answering.citations import without_citations
from dartboard.answering.prompts import NO_ANSWER
from dartboard.mining.cases import Case
from dartboard.mining.judges.answers import facets_of, first_match
from dartboard.types import Dataset

_BARE = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_FIRST_WORD = re.compile(r"\W*(\w+)")


def cases_of(dataset: Dataset) -> dict[str, Case]:
    """The questions whose answer is known, by query id."""
    answers = dataset.metadata.get("answers", {})
    parts = dataset.metadata.get("answer_parts", {})
    cases = {
        query_id: Case(
            id=query_id,
            question=text,
            answers=tuple(answers.get(query_id, ())),
            facets=tuple(map(tuple, parts.get(query_id, ()))),
        )
        for query_id, text in zip(dataset.query_ids, dataset.queries, strict=True)
        if text.strip()
    }
    return {query_id: case for query_id, case in cases.items() if facets_of(case)}


def holds_answer(text: str, case: Case) -> bool:
    """Whether every part of the known answer stands in the text."""
    if text.lstrip().startswith(NO_ANSWER):
        return False
    said = without_citations(text)
    return all(_says(said, facet) for facet in facets_of(case))


def _says(text: str, spellings: tuple[str, ...]) -> bool:
    bare = {_BARE.get(one.strip(" .!").lower()) for one in spellings}
    if None in bare:
        return first_match(spellings, [text]) is not None
    first = _FIRST_WORD.match(text)
    return first is not None and _BARE.get(first[1].lower()) in bare
