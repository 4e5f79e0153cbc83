"""What is written beside each document that was picked: why it is there, in plain JSON.

::

    rank               place in the order of picking, from 1
    score              relevance, for cut-offs: the similarity; frameworks that have scores show it as theirs
    similarity         cosine of query and document
    gain               what it adds to those before it, a share of what all candidates would cover
    coverage           what is covered up to here
    stands_for         the candidates that it covers best, itself among them, by id (or position)
    stands_for_count   how many
    bound              no choice within the same limits covers more than the last coverage / bound
    sigma              σ as it was used, and
    sigma_source       where it came from: given, candidates, model, calibration or fallback
    method             who picked
    candidates         how many there were to pick from
    relevance          whether any of these is relevant (dartboard.relevance.Relevance): verdict
                       "nothing_relevant" where the best similarity is below the model's threshold
    vector_source      store:NAME, model:NAME, function:NAME, field:NAME or index:COLLECTION
    query_model        who embedded the query

and, where these were asked for::

    questions          with ``also``: text, weight and coverage of the query and of each further question
    serves             the position among these of the one that the document serves most
    covered_before     with ``seen``: what was covered before the first pick
    copies             with ``prefer``: the other copies, by id, with the field and in what they differ

Documents from an index say, too, which ``retriever`` found them and its ``retriever_score``; documents that
had a score or a note before keep them as ``score_before`` and ``before``. Where a model that counts tokens
embedded the documents, ``tokens`` is the length of one and ``tokens_read`` what its vector was made of.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dartboard.explain.records import pick_records
from dartboard.types import RetrievalResult

KEY = "dartboard"
"""The key of metadata that notes stand under unless told otherwise."""

Note = dict[str, Any]


def notes_of(
    result: RetrievalResult,
    *,
    vector_sources: Sequence[str],
    query_model: str,
    name: Callable[[str], str | int] = lambda id: id,
) -> list[Note]:
    """One note a pick, with its vector source; ``name`` says what a candidate's id means to the caller."""
    facts = result.metadata
    return [
        {
            "rank": record["rank"],
            "score": record["similarity"],
            "similarity": record["similarity"],
            "gain": record["gain"],
            "coverage": record["coverage"],
            "stands_for": [name(id) for id in record["stands_for"]],
            "stands_for_count": len(record["stands_for"]),
            "bound": facts["bound"],
            "sigma": facts["sigma"] if math.isfinite(facts["sigma"]) else None,
            "sigma_source": facts["sigma_source"],
            "method": facts["method"],
            "candidates": facts["candidates"],
            "relevance": facts["relevance"],
            "vector_source": source,
            "query_model": query_model,
            **_asked_for(facts, record, name),
        }
        for record, source in zip(pick_records(result), vector_sources, strict=True)
    ]


def _asked_for(facts: Mapping[str, Any], record: Note, name: Callable[[str], str | int]) -> Note:
    """What a note says only where it was asked for."""
    found = {key: facts[key] for key in ("questions", "covered_before") if key in facts}
    if "serves" in record:
        found["serves"] = record["serves"]
    if "copies" in record:
        found["copies"] = [{**copy, "id": name(copy["id"])} for copy in record["copies"]]
    return found


def with_note(metadata: Mapping[str, Any] | None, key: str, note: Note) -> dict[str, Any]:
    """The metadata and the note: a new dictionary, in which what stood under the key is ``before``."""
    kept = dict(metadata or {})
    if key in kept:
        note = {**note, "before": kept[key]}
    return {**kept, key: note}
