"""Ground truth in terms of the chunks that exist.

A data set may judge passages that its corpus lacks (a sample of a collection, an empty text). These are
left out and listed as ``unreachable``; a query all of whose relevant passages are lacking is left out too,
for no retriever could answer it. Both are said in a warning: measures rise by what is left out.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from dartboard.datasets.text import Groups, Qrels, TextDataset, unique

logger = logging.getLogger(__name__)


def named_passages(text: TextDataset) -> set[str]:
    """Every passage that ground truth or a pool names."""
    named = {passage for judged in text.qrels.values() for passage in judged}
    named |= {one for by_facet in text.facets.values() for ids in by_facet.values() for one in ids}
    for groups in (text.kernels, text.pools):
        named |= {one for ids in groups.values() for one in ids}
    named |= {one for sets in text.alternatives.values() for ids in sets for one in ids}
    return named


def reachable_queries(text: TextDataset, pieces_of: Mapping[str, list[str]]) -> list[str]:
    """The ids of queries that have a relevant passage in the corpus, or never had one anywhere."""
    kept = []
    for query_id in text.queries:
        relevant = _relevant(text.qrels.get(query_id, {}))
        if not relevant or any(passage in pieces_of for passage in relevant):
            kept.append(query_id)
    if lost := len(text.queries) - len(kept):
        logger.warning(
            "%s: %d of %d queries have no relevant passage in the corpus and were left out",
            text.name,
            lost,
            len(text.queries),
        )
    if lacking := _unreachable(text, set(kept), pieces_of):
        query_id, ids = next(iter(lacking.items()))
        logger.warning(
            "%s: the corpus lacks relevant passages, or their text: %d of %d, in %d of %d queries (the first "
            "is %r of query %r). They were left out: measures are those without them",
            text.name,
            sum(map(len, lacking.values())),
            sum(len(_relevant(text.qrels.get(query_id, {}))) for query_id in kept),
            len(lacking),
            len(kept),
            ids[0],
            query_id,
        )
    return kept


def truth_of(
    text: TextDataset, query_ids: Iterable[str], pieces_of: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Grades, facets, kernels, alternatives, answers, pools and what is unreachable, in chunk ids.

    All pieces of a passage have its grade. A kernel and its alternatives name passages (the id of their
    first piece), and are left out where one of them is lacking.
    """
    wanted = set(query_ids)

    def expand(passages: Iterable[str]) -> list[str]:
        return unique([piece for passage in passages for piece in pieces_of.get(passage, ())])

    facets = {
        query_id: {facet: pieces for facet, ids in by_facet.items() if (pieces := expand(ids))}
        for query_id, by_facet in text.facets.items()
        if query_id in wanted
    }

    def whole(passages: Iterable[str]) -> bool:
        return all(passage in pieces_of for passage in passages)

    return {
        "qrels": _expand_qrels(text.qrels, wanted, pieces_of),
        "facets": facets,
        "kernels": {
            query_id: list(ids) for query_id, ids in text.kernels.items() if query_id in wanted and whole(ids)
        },
        "alternatives": {
            query_id: [list(ids) for ids in sets if whole(ids)]
            for query_id, sets in text.alternatives.items()
            if query_id in wanted and whole(text.kernels.get(query_id, ()))
        },
        "answers": {query_id: answers for query_id, answers in text.answers.items() if query_id in wanted},
        "pools": {query_id: expand(ids) for query_id, ids in text.pools.items() if query_id in wanted},
        "unreachable": _unreachable(text, wanted, pieces_of),
    }


def relevant_ids(qrels: Qrels) -> Groups:
    """The ``ground_truth`` of a data set: what has a grade above 0."""
    return {query_id: _relevant(judged) for query_id, judged in qrels.items()}


def _expand_qrels(qrels: Qrels, wanted: set[str], pieces_of: Mapping[str, list[str]]) -> Qrels:
    return {
        query_id: {piece: grade for passage, grade in judged.items() for piece in pieces_of.get(passage, ())}
        for query_id, judged in qrels.items()
        if query_id in wanted
    }


def _unreachable(text: TextDataset, wanted: set[str], pieces_of: Mapping[str, list[str]]) -> Groups:
    missing = {
        query_id: [one for one in _relevant(judged) if one not in pieces_of]
        for query_id, judged in text.qrels.items()
        if query_id in wanted
    }
    return {query_id: ids for query_id, ids in missing.items() if ids}


def _relevant(judged: Mapping[str, int]) -> list[str]:
    return [passage for passage, grade in judged.items() if grade > 0]
