"""Read and write BEIR folders, the usual layout of public retrieval data sets.

::

    corpus.jsonl            {"_id", "title", "text"}
    queries.jsonl           {"_id", "text", "metadata"}; metadata may hold "answers"
    qrels/<split>.tsv       query-id, corpus-id, score
    qrels/subtopics.txt     optional: query, facet, passage, grade (ndeval's format)
    pools.jsonl             optional: {"_id", "positive", "negative", …}: a query's own candidates
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.records import first_existing, json_lines, need_file
from dartboard.datasets.text_dataset import (
    Groups,
    Passage,
    PassageStream,
    TextDataset,
    flat_strings,
    single_passage_kernels,
    unique,
)
from dartboard.datasets.trec import (
    first_judgement,
    read_qrels,
    read_subtopics,
    write_qrels,
    write_subtopics,
)
from dartboard.errors import DatasetError
from dartboard.types import Dataset

DEFAULT_SPLIT = "test"

_ORDER = {DEFAULT_SPLIT: 0, "dev": 1, "train": 2}


def load_beir(path: str | Path, split: str = DEFAULT_SPLIT) -> TextDataset:
    """Read a BEIR folder: the judged queries of a split, and the corpus (read lazily).

    If ``qrels/subtopics.txt`` assigns every facet of a query to a single passage, these passages are the
    query's kernel: all of them are required.

    Args:
        path: The folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/``.
        split: The name of the file in ``qrels/``.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: a file is missing or malformed; the message names file and line.
    """
    folder = Path(path)
    corpus = need_file(folder / "corpus.jsonl", "a BEIR folder has corpus.jsonl, queries.jsonl and qrels/")
    texts, answers = _read_queries(need_file(folder / "queries.jsonl", "it holds the queries"))
    judgements = qrels_file(folder, split)
    if judgements is None:
        there = ", ".join(splits_of(folder)) or "none"
        raise DatasetError(f"{folder / 'qrels' / split}.tsv is missing: existing splits: {there}")
    qrels = read_qrels(judgements)
    unknown = next((query_id for query_id in qrels if query_id not in texts), None)
    if unknown is not None:
        raise first_judgement(judgements, unknown).error(f"query {unknown!r} is not in queries.jsonl")
    subtopics = first_existing(folder / "qrels", ["subtopics.txt"])
    facets = read_subtopics(subtopics) if subtopics else {}
    facets = {query_id: facets[query_id] for query_id in facets if query_id in qrels}
    return TextDataset(
        name=folder.resolve().name,
        passages=PassageStream(lambda: _read_corpus(corpus)),
        queries={query_id: text for query_id, text in texts.items() if query_id in qrels},
        qrels=qrels,
        facets=facets,
        kernels=single_passage_kernels(facets),
        answers={query_id: found for query_id, found in answers.items() if query_id in qrels},
        pools={query_id: ids for query_id, ids in _read_pools(folder) if query_id in qrels},
        metadata={"type": "real", "split": split},
    )


def write_beir(dataset: TextDataset, path: str | Path, split: str = DEFAULT_SPLIT) -> None:
    """Write a data set as a BEIR folder, with facets and pools if it has them.

    Args:
        dataset: The data set.
        path: The folder; it is created.
        split: The name of the file in ``qrels/``.
    """
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    _write_rows(
        folder / "corpus.jsonl",
        ({"_id": one.id, "title": one.title, "text": one.text} for one in dataset.passages),
    )
    _write_rows(
        folder / "queries.jsonl",
        (
            {
                "_id": query_id,
                "text": text,
                "metadata": {"answers": found} if (found := dataset.answers.get(query_id)) else {},
            }
            for query_id, text in dataset.queries.items()
        ),
    )
    write_qrels(dataset.qrels, folder / "qrels" / f"{split}.tsv", layout="beir")
    if dataset.facets:
        write_subtopics(dataset.facets, folder / "qrels" / "subtopics.txt")
    if dataset.pools:
        _write_rows(
            folder / "pools.jsonl", ({"_id": query, "pool": ids} for query, ids in dataset.pools.items())
        )


def as_text(dataset: Dataset) -> TextDataset:
    """The texts and the ground truth of a data set with vectors, to be written as a folder."""
    known = dataset.metadata
    return TextDataset(
        name=dataset.name,
        passages=[Passage(one.id, one.text, one.metadata.get("title", "")) for one in dataset.chunks],
        queries=dict(zip(dataset.query_ids, dataset.queries, strict=True)),
        qrels=known.get("qrels") or {q: dict.fromkeys(ids, 1) for q, ids in dataset.ground_truth.items()},
        facets=known.get("facets", {}),
        kernels=known.get("kernels", {}),
    )


def write_vectors(dataset: Dataset, path: str | Path) -> None:
    """Beside a folder's texts, their vectors in the order of the files: ``corpus.npy``, ``queries.npy``."""
    folder = Path(path)
    np.save(folder / "corpus.npy", np.stack([one.embedding for one in dataset.chunks]))
    np.save(folder / "queries.npy", np.asarray(dataset.metadata["query_embeddings"], dtype=np.float32))


def splits_of(folder: Path) -> list[str]:
    """The splits with judgements in a BEIR folder, the default one first."""
    files = (path for pattern in ("*.tsv", "*.tsv.gz") for path in (folder / "qrels").glob(pattern))
    found = {path.name.split(".tsv")[0] for path in files}
    return sorted(found, key=lambda split: (_ORDER.get(split, len(_ORDER)), split))


def corpus_file(folder: Path) -> Path | None:
    """The corpus of a BEIR folder; None if it is missing."""
    return first_existing(folder, ["corpus.jsonl"])


def qrels_file(folder: Path, split: str) -> Path | None:
    """The judgements of a split; None if they are missing."""
    return first_existing(folder / "qrels", [f"{split}.tsv"])


def _read_corpus(path: Path) -> Iterator[Passage]:
    for record in json_lines(path):
        yield Passage(
            record.identifier("_id"),
            record.text("text", default=""),
            record.text("title", default=""),
            place=record.place,
        )


def _read_queries(path: Path) -> tuple[dict[str, str], Groups]:
    """The texts of all queries, and the answers of those that have any."""
    texts: dict[str, str] = {}
    answers: Groups = {}
    for record in json_lines(path):
        query_id, text = record.identifier("_id"), record.text("text")
        if query_id in texts:
            raise record.place.error(f"query id {query_id!r} occurs twice")
        if not text.strip():
            raise record.place.error(f"query {query_id!r} has no text")
        texts[query_id] = text
        if known := record.mapping("metadata").get("answers"):
            answers[query_id] = flat_strings(known)
    return texts, answers


def _read_pools(folder: Path) -> Iterator[tuple[str, list[str]]]:
    path = first_existing(folder, ["pools.jsonl"])
    for record in json_lines(path) if path else ():
        parts = [record.list(name) for name in record.fields if name != "_id"]
        yield record.identifier("_id"), unique(flat_strings(parts))


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
