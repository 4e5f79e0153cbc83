"""MS MARCO passage ranking from its official files, streamed: 8.8 million passages are never in memory.

::

    collection.tsv                        passage id, text
    queries.<split>.tsv                   query id, text; also topics.<split>.txt
    qrels.<split>.tsv | .txt | .trec      query, 0, passage, grade

The file names of the TREC Deep Learning tracks work too: ``msmarco-test2019-queries.tsv`` and
``2019qrels-pass.txt`` are split ``dl19-passage``, and those of 2020 ``dl20-passage``. There, precision,
recall, MAP and MRR count grades from 2 on, as the track does.
"""

import hashlib
import heapq
from collections.abc import Iterator
from pathlib import Path

from dartboard.datasets.records import first_existing, lines
from dartboard.datasets.text_dataset import Passage, PassageStream, Qrels, TextDataset
from dartboard.datasets.trec import read_qrels
from dartboard.errors import ConfigError, DatasetError

DEFAULT_SPLIT = "dev.small"

_COLLECTIONS = ["collection.tsv", "collection.sample.tsv"]
_TRACKS = {
    "dl19-passage": ("msmarco-test2019-queries.tsv", "2019qrels-pass.txt"),
    "dl20-passage": ("msmarco-test2020-queries.tsv", "2020qrels-pass.txt"),
}


def load_msmarco(
    path: str | Path, split: str = DEFAULT_SPLIT, *, distractors: int | None = None, seed: int = 0
) -> TextDataset:
    """The judged queries of a split, and the collection (read lazily).

    Args:
        path: The folder with the official files.
        split: The split.
        distractors: Sample the corpus: all judged passages plus this many others, chosen by a hash of their
            ids, so that the order of the file does not matter.
        seed: Seed of the hash.
    """
    folder = Path(path)
    if distractors is not None and distractors < 0:
        raise ConfigError(f"distractors must be >= 0, got {distractors}")
    collection = corpus_file(folder)
    if collection is None:
        raise DatasetError(
            f"{folder / 'collection.tsv'} is missing: MS MARCO's folder holds "
            "collection.tsv, queries.<split>.tsv and qrels.<split>.tsv"
        )
    asked, judged = queries_file(folder, split), qrels_file(folder, split)
    if asked is None or judged is None:
        lacking = f"queries.{split}.tsv" if asked is None else f"qrels.{split}.tsv"
        there = ", ".join(splits_of(folder)) or "none"
        raise DatasetError(f"{folder / lacking} is missing: existing splits: {there}")
    qrels = read_qrels(judged)
    texts = _read_queries(asked)
    kept: Qrels = {query_id: row for query_id, row in qrels.items() if query_id in texts}
    if qrels and not kept:
        raise DatasetError(f"{judged} judges no query of {asked.name}: use files of the same split")
    return TextDataset(
        name=f"{folder.resolve().name}_{split}",
        passages=PassageStream(
            (lambda: read_collection(collection))
            if distractors is None
            else (lambda: _sample(collection, kept, distractors, seed))
        ),
        queries={query_id: texts[query_id] for query_id in kept},
        qrels=kept,
        metadata={"type": "real", "split": split, "distractors": distractors} | _level(split),
    )


def _level(split: str) -> dict[str, int]:
    """The tracks of TREC count a passage as relevant from grade 2 on."""
    return {"least_grade": 2} if split in _TRACKS else {}


def read_collection(path: Path) -> Iterator[Passage]:
    """Iterate over the passages of a collection."""
    for place, line in lines(path):
        passage_id, tab, text = line.partition("\t")
        if not tab or not passage_id.strip():
            raise place.error("expected a passage id, a tab and a text")
        yield Passage(passage_id.strip(), text, place=place)


def corpus_file(folder: Path) -> Path | None:
    """The collection of an MS MARCO folder; None if it is missing."""
    return first_existing(folder, _COLLECTIONS)


def splits_of(folder: Path) -> list[str]:
    """The splits with both queries and judgements, the default one first."""
    names = [path.name.removesuffix(".gz") for path in folder.glob("q*.*")]
    found = {name.removeprefix("qrels.").rpartition(".")[0] for name in names if name.startswith("qrels.")}
    whole = [one for one in found | _TRACKS.keys() if queries_file(folder, one) and qrels_file(folder, one)]
    return sorted(whole, key=lambda split: (split != DEFAULT_SPLIT, split))


def queries_file(folder: Path, split: str) -> Path | None:
    """The queries of a split; None if they are missing."""
    names = [f"queries.{split}.tsv", f"topics.{split}.txt", f"topics.{split}.tsv"]
    return first_existing(folder, [*names, *_TRACKS.get(split, ())[:1]])


def qrels_file(folder: Path, split: str) -> Path | None:
    """The judgements of a split; None if they are missing."""
    names = [f"qrels.{split}.tsv", f"qrels.{split}.txt", f"qrels.{split}.trec"]
    return first_existing(folder, [*names, *_TRACKS.get(split, ())[1:]])


def _read_queries(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for place, line in lines(path):
        query_id, _, text = line.partition("\t")
        query_id = query_id.strip()
        if not query_id or not text.strip():
            raise place.error("expected a query id, a tab and a text")
        if query_id in texts:
            raise place.error(f"query id {query_id!r} occurs twice")
        texts[query_id] = text.strip()
    return texts


def _sample(collection: Path, qrels: Qrels, distractors: int, seed: int) -> Iterator[Passage]:
    def rank(passage_id: str) -> bytes:
        return hashlib.blake2b(passage_id.encode(), digest_size=8, key=str(seed).encode()).digest()

    judged = {passage for row in qrels.values() for passage in row}
    others = (one.id for one in read_collection(collection) if one.id not in judged)
    kept = judged.union(heapq.nsmallest(distractors, others, key=rank))
    return (passage for passage in read_collection(collection) if passage.id in kept)
