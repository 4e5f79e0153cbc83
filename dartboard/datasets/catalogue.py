"""What is in a folder of data sets: found by its files, read by name, sized without being embedded.

Each entry of the folder is a data set if a format below recognises it. A folder that is none itself but
holds files that are, names them: ``rgb/en_int.json`` is ``rgb`` where it is alone and ``rgb/en_int`` where
it is not.
"""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from dartboard.datasets import beir, msmarco
from dartboard.datasets.mined import load_mined
from dartboard.datasets.question_answering import load_hotpotqa, load_musique, load_rgb
from dartboard.datasets.records import count_lines, first_existing
from dartboard.datasets.text_dataset import TextDataset
from dartboard.datasets.trec import read_qrels
from dartboard.errors import DatasetError

ROOT_VARIABLE = "DARTBOARD_DATA"

Format = Literal["beir", "msmarco", "rgb", "hotpotqa", "musique", "mined", "synthetic"]

_FILES: dict[str, tuple[Format, Any]] = {
    "hotpot_*.json": ("hotpotqa", load_hotpotqa),
    "musique_*.jsonl": ("musique", load_musique),
    "retrieval_dataset*.y*ml": ("mined", load_mined),
    "en.json": ("rgb", load_rgb),
    "en_*.json": ("rgb", load_rgb),
    "zh.json": ("rgb", load_rgb),
    "zh_*.json": ("rgb", load_rgb),
}
_SPLITS = ("test", "dev", "train")
_YAML = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetEntry:
    """A data set that is there: what it is called, where it lies and how it is written."""

    name: str
    path: Path
    format: Format

    def splits(self) -> list[str]:
        """The splits to choose from, the one taken by default first; empty where there are none."""
        if self.format == "msmarco":
            return msmarco.splits_of(self.path)
        if self.format == "beir":
            found = beir.splits_of(self.path)
            return sorted(found, key=_split_order)
        return []

    def load(self, split: str | None = None) -> TextDataset:
        """Read it; ``split`` is its first unless given. Whatever judges no query at all is an error."""
        found = self._read(split)
        if not found.queries:
            raise DatasetError(f"{self.path} judges no query: without one there is nothing to measure")
        return found

    def _read(self, split: str | None) -> TextDataset:
        if self.format not in ("beir", "msmarco"):
            if split is not None:
                raise DatasetError(f"data set {self.name!r} has no splits: leave split out")
            return _loader(self.path)(self.path)  # type: ignore[no-any-return]
        chosen = split or next(
            iter(self.splits()), "test" if self.format == "beir" else msmarco.DEFAULT_SPLIT
        )
        read = beir.load_beir if self.format == "beir" else msmarco.load_msmarco
        return read(self.path, chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """A line of the list: ``num_chunks`` passages and ``num_queries`` judged queries, before any splitting.

    ``problem`` says why a data set that is there cannot be read; its sizes are 0 then.
    """

    name: str
    num_chunks: int
    num_queries: int
    type: Literal["synthetic", "real"]
    format: Format
    splits: tuple[str, ...] = ()
    path: str | None = None
    problem: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def list_datasets(root: str | Path | None = None) -> list[DatasetInfo]:
    """The synthetic data sets, then what is in ``root``, by name."""
    return [*_synthetic(), *(_info(entry) for entry in find_datasets(root))]


def find_datasets(root: str | Path | None = None) -> list[DatasetEntry]:
    """What is in ``root``, by name; nothing where there is no such folder."""
    folder = data_root(root)
    if not folder.is_dir():
        return []
    return [entry for path in sorted(folder.iterdir()) for entry in _recognise(path)]


def entry_at(path: str | Path) -> DatasetEntry | None:
    """The data set that a file or folder is, wherever it lies; None where it is none, or is not there.

    A YAML file of any name is taken for a mined one: whoever names it means it, and reading it shows.
    """
    place = Path(path)
    if not place.exists():
        return None
    found = list(_recognise(place.resolve()))
    if not found and place.is_file() and place.suffix in _YAML:
        return DatasetEntry(name=place.stem, path=place.resolve(), format="mined")
    return found[0] if len(found) == 1 else None


def unrecognised(root: str | Path | None = None) -> list[str]:
    """The folders in ``root`` that hold no data set of a known format."""
    folder = data_root(root)
    return sorted(
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and not path.name.startswith(".") and not list(_recognise(path))
    )


def data_root(root: str | Path | None = None) -> Path:
    """The folder of data sets: as given, else what ``DARTBOARD_DATA`` names, else ``./data``."""
    return Path(root if root is not None else os.environ.get(ROOT_VARIABLE) or "data")


def _split_order(split: str) -> tuple[int, str]:
    return (_SPLITS.index(split) if split in _SPLITS else len(_SPLITS), split)


def _recognise(path: Path) -> Iterator[DatasetEntry]:
    if path.name.startswith("."):
        return
    if path.is_file():
        if matched := _format_of(path):
            yield DatasetEntry(name=_stem(path), path=path, format=matched)
        return
    if first_existing(path, ["corpus.jsonl"]) and first_existing(path, ["queries.jsonl"]):
        yield DatasetEntry(name=path.name, path=path, format="beir")
        return
    if msmarco.collection_file(path):
        yield DatasetEntry(name=path.name, path=path, format="msmarco")
        return
    inside = [
        (file, found) for file in sorted(path.iterdir()) if file.is_file() and (found := _format_of(file))
    ]
    for file, found in inside:
        name = path.name if len(inside) == 1 else f"{path.name}/{_stem(file)}"
        yield DatasetEntry(name=name, path=file, format=found)


def _format_of(path: Path) -> Format | None:
    for pattern, (found, _) in _FILES.items():
        if fnmatch(path.name.removesuffix(".gz"), pattern):
            return found
    return None


def _loader(path: Path) -> Any:
    name = path.name.removesuffix(".gz")
    return next((load for pattern, (_, load) in _FILES.items() if fnmatch(name, pattern)), load_mined)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0]


def _info(entry: DatasetEntry) -> DatasetInfo:
    chunks = queries = 0
    problem = None
    try:
        chunks, queries = _sizes(entry)
    except DatasetError as error:
        problem = str(error)
    return DatasetInfo(
        name=entry.name,
        num_chunks=chunks,
        num_queries=queries,
        type="real",
        format=entry.format,
        splits=tuple(entry.splits()),
        path=str(entry.path),
        problem=problem,
    )


def _sizes(entry: DatasetEntry) -> tuple[int, int]:
    """Passages and queries: lines are counted where a line is a passage, else the file is read."""
    if entry.format == "beir":
        corpus = first_existing(entry.path, ["corpus.jsonl"])
        qrels = first_existing(entry.path / "qrels", [f"{split}.tsv" for split in entry.splits()])
    elif entry.format == "msmarco":
        corpus = msmarco.collection_file(entry.path)
        qrels = next((msmarco.split_files(entry.path, split)[1] for split in entry.splits()), None)
    else:
        text = entry.load()
        return sum(1 for _ in text.passages), len(text)
    return count_lines(corpus) if corpus else 0, len(read_qrels(qrels)) if qrels else 0


def _synthetic() -> list[DatasetInfo]:
    from dartboard.datasets.adversarial import KINDS, read_cases
    from dartboard.datasets.synthetic import DEFAULT_QUERIES, SyntheticDatasetConfig

    config = SyntheticDatasetConfig()
    chunks = config.num_clusters * config.docs_per_cluster
    cases = read_cases()
    texts = sum(len(case["facts"]) * len(KINDS) + len(case["other"]) for case in cases)
    sizes = {
        "synthetic_adversarial": (texts, len(cases)),
        "synthetic_clustered": (chunks, DEFAULT_QUERIES),
        "synthetic_query_focused": (chunks, config.num_clusters),
    }
    return [
        DatasetInfo(name=name, num_chunks=count, num_queries=queries, type="synthetic", format="synthetic")
        for name, (count, queries) in sizes.items()
    ]
