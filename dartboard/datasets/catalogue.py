"""Data sets by name: generated, found in the data folder, or downloaded into it; and a list with sizes.

Each entry of the folder is a data set if one of the formats below recognises it. A folder that is not a data
set but contains data set files lends them its name: ``rgb/en_int.json`` is ``rgb`` if it is the only one,
otherwise ``rgb/en_int``.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from dartboard.datasets import beir, msmarco
from dartboard.datasets.adversarial import KINDS, make_adversarial, read_cases
from dartboard.datasets.download import SOURCES, download
from dartboard.datasets.mined import load_mined
from dartboard.datasets.preparation import Listener, prepare
from dartboard.datasets.records import count_lines, first_existing
from dartboard.datasets.rgb import load_rgb
from dartboard.datasets.synthetic import (
    DEFAULT_QUERIES,
    SyntheticDatasetConfig,
    make_clustered,
    make_query_focused,
)
from dartboard.datasets.text_dataset import TextDataset
from dartboard.datasets.trec import read_qrels
from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.types import Dataset

ROOT_VARIABLE = "DARTBOARD_DATA"

Format = Literal["beir", "msmarco", "rgb", "mined", "synthetic"]

_FOLDERS = {"beir": beir, "msmarco": msmarco}
"""Formats that are folders with splits."""

_FILES: dict[Format, Callable[[Path], TextDataset]] = {
    "rgb": load_rgb,
    "mined": load_mined,
}
"""Formats that are single files."""

_PATTERNS: dict[str, Format] = {
    "retrieval_dataset*.y*ml": "mined",
    "en.json": "rgb",
    "en_*.json": "rgb",
    "zh.json": "rgb",
    "zh_*.json": "rgb",
}
ALIASES = {"msmarco_dev": ("msmarco", msmarco.DEFAULT_SPLIT)}
"""The specification's names that are a split of another: the data set and its split."""

SYNTHETIC: dict[str, Callable[[EmbeddingModel | None], Dataset]] = {
    "synthetic_adversarial": make_adversarial,
    "synthetic_clustered": lambda _: make_clustered(),
    "synthetic_query_focused": lambda _: make_query_focused(),
}
_BEIR_FOLDER = "a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv)"


def load_dataset(
    name: str,
    root: str | Path | None = None,
    model: EmbeddingModel | None = None,
    *,
    split: str | None = None,
    cache_dir: str | Path | None = None,
    progress: Listener | None = None,
    fetch: bool = True,
    paths: bool = False,
) -> Dataset:
    """A data set with vectors, by name.

    ``synthetic_clustered``, ``synthetic_query_focused`` and ``synthetic_adversarial`` are generated; all
    others come from ``root`` (see :func:`dartboard.datasets.list_datasets`) or are downloaded.

    Args:
        name: The data set's name.
        root: The data folder; by default ``DARTBOARD_DATA``.
        model: The embedding model; None is the default model.
        split: The split; by default the data set's first.
        cache_dir, progress: As in :func:`prepare_on_disk`.
        fetch: Whether to download a data set that is not in the folder.
        paths: Whether ``name`` may be the path of a file or folder; only for trusted callers.

    Raises:
        DatasetError: there is no such data set; the message says which files to put where.

    Example::

        dataset = load_dataset("synthetic_clustered")
    """
    if make := SYNTHETIC.get(name):
        return make(model)
    text = load_text(name, root, split=split, progress=progress, fetch=fetch, paths=paths)
    return prepare(text, model, cache_dir=cache_dir, progress=progress)


def load_text(
    name: str,
    root: str | Path | None = None,
    *,
    split: str | None = None,
    progress: Listener | None = None,
    fetch: bool = True,
    paths: bool = False,
) -> TextDataset:
    """Like :func:`load_dataset`, without embeddings; synthetic data sets have no text form."""
    folder = data_root(root)
    there = {entry.name: entry for entry in find_datasets(folder)}
    if name not in there and name in ALIASES:
        name, split = ALIASES[name][0], split or ALIASES[name][1]
    if name not in there and fetch and name in SOURCES:
        download(name, folder, progress=progress)
        there = {entry.name: entry for entry in find_datasets(folder)}
    found = there.get(name) or (entry_at(name) if paths else None)
    if found is None:
        raise DatasetError(f"there is no data set {name!r}{_advice(name, folder, sorted(there))}")
    return found.load(split)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetEntry:
    """A data set on disk: its name, path and format."""

    name: str
    path: Path
    format: Format

    def splits(self) -> list[str]:
        """The splits, the default one first; empty if there are none."""
        module = _FOLDERS.get(self.format)
        return module.splits_of(self.path) if module else []

    def load(self, split: str | None = None) -> TextDataset:
        """Read the data set; ``split`` is by default its first. A data set without judgements is an error."""
        if self.format in _FILES:
            if split is not None:
                raise DatasetError(f"data set {self.name!r} has no splits: leave split out")
            found = _FILES[self.format](self.path)
        elif self.format == "beir":
            found = beir.load_beir(self.path, split or next(iter(self.splits()), beir.DEFAULT_SPLIT))
        else:
            found = msmarco.load_msmarco(self.path, split or next(iter(self.splits()), msmarco.DEFAULT_SPLIT))
        if not found.queries:
            raise DatasetError(f"{self.path} has no judged queries: there is nothing to measure")
        return found

    def sizes(self) -> tuple[int, int]:
        """Numbers of passages and queries, from the number of lines where possible."""
        if self.format in _FILES:
            text = self.load()
            return sum(1 for _ in text.passages), len(text)
        module = _FOLDERS[self.format]
        corpus = module.corpus_file(self.path)
        qrels = next((module.qrels_file(self.path, split) for split in self.splits()), None)
        return count_lines(corpus) if corpus else 0, len(read_qrels(qrels)) if qrels else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """An entry of the list: ``num_chunks`` passages and ``num_queries`` judged queries, before chunking.

    ``problem`` says why an existing data set cannot be read; its sizes are 0 then.
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
    """List the available data sets: the synthetic ones, then those in a folder, by name.

    Args:
        root: The folder; by default ``DARTBOARD_DATA``, otherwise ``./data``.

    Returns:
        Name, kind and size of each.

    Example:
        >>> list_datasets("/nowhere")[0].name
        'synthetic_adversarial'
    """
    config = SyntheticDatasetConfig()
    chunks = config.num_clusters * config.docs_per_cluster
    cases = read_cases()
    texts = sum(len(case["facts"]) * len(KINDS) + len(case["other"]) for case in cases)
    sizes = [(texts, len(cases)), (chunks, DEFAULT_QUERIES), (chunks, config.num_clusters)]
    listed = [
        DatasetInfo(name=name, num_chunks=count, num_queries=queries, type="synthetic", format="synthetic")
        for name, (count, queries) in zip(SYNTHETIC, sizes, strict=True)
    ]
    for entry in find_datasets(root):
        count = queries = 0
        problem = None
        try:
            count, queries = entry.sizes()
        except DatasetError as error:
            problem = str(error)
        listed.append(
            DatasetInfo(
                name=entry.name,
                num_chunks=count,
                num_queries=queries,
                type="real",
                format=entry.format,
                splits=tuple(entry.splits()),
                path=str(entry.path),
                problem=problem,
            )
        )
    return listed


def find_datasets(root: str | Path | None = None) -> list[DatasetEntry]:
    """The data sets in ``root``, by name; empty if the folder does not exist."""
    folder = data_root(root)
    return (
        [entry for path in sorted(folder.iterdir()) for entry in _recognise(path)] if folder.is_dir() else []
    )


def entry_at(path: str | Path) -> DatasetEntry | None:
    """The data set at a path; None if there is none.

    A YAML file of any name is treated as a mined data set, because the caller named it explicitly.
    """
    place = Path(path)
    if not place.exists():
        return None
    found = list(_recognise(place.resolve()))
    if not found and place.is_file() and place.suffix in (".yaml", ".yml"):
        return DatasetEntry(name=place.stem, path=place.resolve(), format="mined")
    return found[0] if len(found) == 1 else None


def unrecognised(root: str | Path | None = None) -> list[str]:
    """The folders in ``root`` without a data set of a known format."""
    folder = data_root(root)
    return sorted(
        path.name
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and not path.name.startswith(".") and not list(_recognise(path))
    )


def data_root(root: str | Path | None = None) -> Path:
    """The folder of data sets: as given, otherwise ``DARTBOARD_DATA``, otherwise ``./data``."""
    return Path(root if root is not None else os.environ.get(ROOT_VARIABLE) or "data")


def _recognise(path: Path) -> Iterator[DatasetEntry]:
    if path.name.startswith("."):
        return
    if path.is_file():
        files = [path]
    elif first_existing(path, ["corpus.jsonl"]) and first_existing(path, ["queries.jsonl"]):
        yield DatasetEntry(name=path.name, path=path, format="beir")
        return
    elif msmarco.corpus_file(path):
        yield DatasetEntry(name=path.name, path=path, format="msmarco")
        return
    else:
        files = [file for file in sorted(path.iterdir()) if file.is_file()]
    known = [(file, format_) for file in files if (format_ := _format_of(file))]
    for file, format_ in known:
        stem = file.name.removesuffix(".gz").rpartition(".")[0]
        if file != path:
            stem = path.name if len(known) == 1 else f"{path.name}/{stem}"
        yield DatasetEntry(name=stem, path=file, format=format_)


def _format_of(file: Path) -> Format | None:
    name = file.name.removesuffix(".gz")
    found = next((kind for pattern, kind in _PATTERNS.items() if fnmatch(name, pattern)), None)
    return None if found == "mined" and name != file.name else found  # a packed one cannot be read


def _advice(name: str, folder: Path, there: list[str]) -> str:
    """The end of the error for an unknown name: what the name is, or which files to put where."""
    if os.path.exists(name):  # noqa: PTH110 - a name that is too long is none, and no OSError
        if entry_at(name) is not None:
            return f" in {folder}: {name} is the path of one: pass paths=True to read it where it lies"
        if Path(name).is_dir() and (inside := [entry.name for entry in find_datasets(name)]):
            return (
                f" in {folder}: the folder {name} holds data sets: pass it as root (--data on the command "
                f"line) and name one of them: {', '.join(inside)}"
            )
        if "/" in name:
            return f" in {folder}: {name} is there, but is none in a known format: make it {_BEIR_FOLDER}"
    target = folder / (Path(name).name if Path(name).is_absolute() else name)
    advice = (
        f"put {SOURCES[name].layout} into {target}, or allow the download (fetch=True; on the command "
        "line --download)"
        if name in SOURCES
        else f"put it into {target} as {_BEIR_FOLDER}, "
        f"or give another folder (now {folder}, {ROOT_VARIABLE} sets it)"
    )
    return f": {advice}. There are: {', '.join([*there, *SYNTHETIC])}"
