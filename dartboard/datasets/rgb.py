"""RGB (Chen et al., AAAI 2024): questions whose rows contain their passages.

All passages of a file form one corpus, in which equal texts are one passage. A question's own passages are
its pool. Positive passages are relevant and form facets; if every facet has a single passage, these passages
are the question's kernel: all of them are needed for an answer.
"""

from pathlib import Path
from typing import Any

from dartboard.datasets.records import Place, Record, json_array, need_file
from dartboard.datasets.text_dataset import (
    Facets,
    Groups,
    Passage,
    TextDataset,
    flat_strings,
    single_passage_kernels,
    unique,
)


def load_rgb(path: str | Path) -> TextDataset:
    """A file of RGB; rows have ``id``, ``query``, ``answer``, ``positive``, ``negative``.

    If ``positive`` is a list of lists, each inner list answers one part of the question: a facet. The
    optional ``positive_wrong`` are positives with a false fact: similar to the truth, but not relevant.
    ``metadata["positive_wrong"]`` lists them; ``metadata["answer_parts"]`` lists the parts that an answer
    needs, each with its spellings.

    Args:
        path: The file.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing or a row is malformed.
    """
    file = need_file(Path(path), "expected a file of RGB, such as en_int.json")
    ids: dict[str, str] = {}
    places: dict[str, Place] = {}
    queries: dict[str, str] = {}
    facets: Facets = {}
    pools: Groups = {}
    answers: Groups = {}
    wrong: Groups = {}
    parts: dict[str, list[list[str]]] = {}
    for record in json_array(file):
        query_id, text = record.identifier("id"), record.text("query")
        if not text.strip():
            raise record.place.error("'query' is empty: every row needs a question")
        if query_id in places:
            first = places[query_id].short()
            raise record.place.error(f"question id {query_id!r} occurs twice, first at {first}")
        places[query_id], queries[query_id] = record.place, text
        facets[query_id] = _facets(record, ids)
        positive = [one for members in facets[query_id].values() for one in members]
        negative = _passages(record, "negative", record.list("negative"), ids)
        false = _passages(record, "positive_wrong", record.list("positive_wrong", required=False), ids)
        pools[query_id] = unique([*positive, *negative, *false])
        answer = record.fields.get("answer")
        answers[query_id] = flat_strings(answer)
        # An answer needs all parts, each in any spelling; a part is a list of spellings, or one string.
        listed = answer if isinstance(answer, list) else [answer]
        parts[query_id] = [spelled for part in listed if (spelled := flat_strings(part))]
        if false:
            wrong[query_id] = [one for one in unique(false) if one not in positive]
    return TextDataset(
        name=f"rgb_{file.name.split('.')[0].removeprefix('rgb_')}",
        passages=[Passage(passage_id, text) for text, passage_id in ids.items()],
        queries=queries,
        qrels={
            query_id: dict.fromkeys(pools[query_id], 0) | {one: 1 for ids in found.values() for one in ids}
            for query_id, found in facets.items()
        },
        facets=facets,
        kernels=single_passage_kernels(facets),
        answers=answers,
        pools=pools,
        metadata={"type": "real", "positive_wrong": wrong, "answer_parts": parts},
    )


def _facets(record: Record, ids: dict[str, str]) -> dict[str, list[str]]:
    """Passages by facet; a flat list of positives is one facet."""
    positive = record.list("positive")
    groups = positive if any(isinstance(part, list) for part in positive) else [positive]
    if not all(isinstance(group, list) for group in groups):
        raise record.place.error("'positive' mixes strings and lists: give strings, or one list per facet")
    by_facet = {
        str(number): unique(_passages(record, "positive", group, ids))
        for number, group in enumerate(groups, start=1)
    }
    return {facet: members for facet, members in by_facet.items() if members}


def _passages(record: Record, name: str, texts: list[Any], ids: dict[str, str]) -> list[str]:
    """The ids of passages; a new text gets the next one."""
    for text in texts:
        if not isinstance(text, str):
            raise record.place.error(f"{name!r} must hold strings, got {type(text).__name__}")
    return [ids.setdefault(text, f"d{len(ids):05d}") for text in texts if text.strip()]
