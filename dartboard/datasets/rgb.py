"""RGB (Chen et al., AAAI 2024) in its original JSON lines: pooled passages, facets, wrong facts apart.

A row is ``{"id", "query", "answer", "positive", "negative", "positive_wrong"}``. Where ``positive`` is a
list of lists, each inner list answers one part of the question: a facet. ``positive_wrong`` are positives
with their fact replaced by a false one: near to the truth, and not relevant.
"""

from pathlib import Path
from typing import Any

from dartboard.datasets.rows import Record, json_array, need_file
from dartboard.datasets.text import (
    Facets,
    Groups,
    PassagePool,
    Qrels,
    TextDataset,
    flat_strings,
    single_passage_kernels,
    unique,
)


def load_rgb(path: str | Path) -> TextDataset:
    """All questions of a file over one pool of all their passages; the same text is one passage.

    ``pools`` keep each question's own passages; ``metadata["positive_wrong"]`` lists the false ones,
    ``metadata["answer_parts"]`` the parts that an answer needs, each with its spellings.
    """
    file = need_file(Path(path), "expected a file of RGB, such as en_int.json")
    name = f"rgb_{file.name.split('.')[0].removeprefix('rgb_')}"
    pool = PassagePool("d")
    queries: dict[str, str] = {}
    qrels: Qrels = {}
    facets: Facets = {}
    answers: Groups = {}
    parts: dict[str, list[list[str]]] = {}
    pools: Groups = {}
    wrong: Groups = {}
    for record in json_array(file):
        query_id = record.identifier("id")
        if query_id in queries:
            raise record.place.error(f"id {query_id!r} occurs twice")
        queries[query_id] = record.text("query")
        if not queries[query_id].strip():
            raise record.place.error("'query' is empty: every row needs a question")
        facets[query_id] = _facets(record, pool)
        positive = [one for ids in facets[query_id].values() for one in ids]
        negative = [pool.add(text) for text in _texts(record, "negative", record.list("negative"))]
        false = [
            pool.add(text)
            for text in _texts(record, "positive_wrong", record.list("positive_wrong", required=False))
        ]
        qrels[query_id] = dict.fromkeys([*negative, *false], 0) | dict.fromkeys(positive, 1)
        pools[query_id] = unique([*positive, *negative, *false])
        answers[query_id] = flat_strings(record.fields.get("answer"))
        parts[query_id] = _answer_parts(record.fields.get("answer"))
        if false:
            wrong[query_id] = [one for one in unique(false) if one not in positive]
    return TextDataset(
        name=name,
        passages=pool.passages,
        queries=queries,
        qrels=qrels,
        facets=facets,
        kernels=single_passage_kernels(facets),
        answers=answers,
        pools=pools,
        metadata={"type": "real", "positive_wrong": wrong, "answer_parts": parts},
    )


def _facets(record: Record, pool: PassagePool) -> dict[str, list[str]]:
    """Passages by facet; a flat list of positives is one facet."""
    positive = record.list("positive")
    groups = positive if any(isinstance(part, list) for part in positive) else [positive]
    if not all(isinstance(group, list) for group in groups):
        raise record.place.error("'positive' mixes strings and lists: give strings, or one list a facet")
    by_facet = {
        str(number): unique([pool.add(text) for text in _texts(record, "positive", group)])
        for number, group in enumerate(groups, start=1)
    }
    return {facet: ids for facet, ids in by_facet.items() if ids}


def _answer_parts(answer: Any) -> list[list[str]]:
    """All parts are needed, of each any spelling: a part is a list, or a string by itself."""
    parts = answer if isinstance(answer, list) else [answer]
    return [spelled for part in parts if (spelled := flat_strings(part))]


def _texts(record: Record, name: str, values: list[Any]) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise record.place.error(f"{name!r} must hold strings, got {type(value).__name__}")
    return [value for value in values if value.strip()]
