"""A data set by its name: made, read from the data folder, or downloaded into it."""

import os
from collections.abc import Callable
from pathlib import Path

from dartboard.datasets.catalogue import ROOT_VARIABLE, data_root, entry_at, find_datasets
from dartboard.datasets.download import SOURCES, download
from dartboard.datasets.preparation import Listener, prepare
from dartboard.datasets.text_dataset import TextDataset
from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.types import Dataset


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

    ``synthetic_clustered``, ``synthetic_query_focused`` and ``synthetic_adversarial`` are made; all others
    come from ``root`` (see :func:`dartboard.datasets.list_datasets`) and, where they are not there and
    ``fetch`` allows it, from their publishers. ``model`` is the default model unless given. With ``paths``
    the name of a file or folder will do, too: for callers that trust who names it.
    """
    if make := _synthetic(model).get(name):
        return make()
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
    """As :func:`load_dataset`, before it is embedded; synthetic data sets have no such form."""
    folder = data_root(root)
    there = {entry.name: entry for entry in find_datasets(folder)}
    if name not in there and fetch and name in SOURCES:
        download(name, folder, progress=progress)
        there = {entry.name: entry for entry in find_datasets(folder)}
    if name not in there:
        if paths and (placed := entry_at(name)) is not None:
            return placed.load(split)
        raise _missing(name, folder, sorted(there))
    return there[name].load(split)


def _synthetic(model: EmbeddingModel | None) -> dict[str, Callable[[], Dataset]]:
    from dartboard.datasets.adversarial import make_adversarial
    from dartboard.datasets.synthetic import make_clustered, make_query_focused

    return {
        "synthetic_adversarial": lambda: make_adversarial(model),
        "synthetic_clustered": make_clustered,
        "synthetic_query_focused": make_query_focused,
    }


def _missing(name: str, folder: Path, there: list[str]) -> DatasetError:
    if advice := _about_path(name):
        return DatasetError(f"there is no data set {name!r} in {folder}: {advice}")
    if name in SOURCES:
        advice = f"put {SOURCES[name].layout} into {folder / name}, or allow the download"
    else:
        advice = (
            f"put it into {folder / Path(name).name if Path(name).is_absolute() else folder / name} as "
            f"{_BEIR}, or give another folder (now {folder}, {ROOT_VARIABLE} sets it)"
        )
    known = ", ".join([*there, *_synthetic(None)])
    return DatasetError(f"there is no data set {name!r}: {advice}. There are: {known}")


def _about_path(name: str) -> str:
    """What to do with a name that is a path to something; nothing where it leads nowhere."""
    if not os.path.exists(name):  # noqa: PTH110 - a name that is too long is none, and no OSError
        return ""
    if entry_at(name) is not None:
        return f"{name} is the path of one: pass paths=True to read it where it lies"
    if Path(name).is_dir() and (inside := [entry.name for entry in find_datasets(name)]):
        return (
            f"the folder {name} holds data sets: pass it as root (--data on the command line) and name one "
            f"of them: {', '.join(inside)}"
        )
    return f"{name} is there, but is none in a known format: make it {_BEIR}" if "/" in name else ""


_BEIR = "a BEIR folder (corpus.jsonl, queries.jsonl, qrels/test.tsv)"
