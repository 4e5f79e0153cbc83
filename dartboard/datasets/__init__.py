"""Data sets for measuring retrieval: synthetic, public and mined.

A loader returns text (:class:`TextDataset`), :func:`prepare` embeds it and returns a
:class:`dartboard.types.Dataset`, and :func:`load_dataset` does both by name. Importing this package loads
only NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dartboard.datasets.adversarial import make_adversarial
    from dartboard.datasets.beir import load_beir, write_beir
    from dartboard.datasets.catalogue import DatasetInfo, list_datasets, load_dataset, load_text
    from dartboard.datasets.mined import load_mined
    from dartboard.datasets.msmarco import load_msmarco
    from dartboard.datasets.near_copies import with_redundancy
    from dartboard.datasets.preparation import PreparedDataset, prepare, prepare_on_disk, progress_bar
    from dartboard.datasets.rgb import load_rgb
    from dartboard.datasets.synthetic import SyntheticDatasetConfig, make_clustered, make_query_focused
    from dartboard.datasets.text_dataset import Passage, PassageStream, TextDataset, embedded_text
    from dartboard.datasets.trec import (
        read_qrels,
        read_run,
        read_subtopics,
        write_qrels,
        write_run,
        write_subtopics,
    )

_MODULES = {
    "adversarial": ("make_adversarial",),
    "beir": ("load_beir", "write_beir"),
    "catalogue": ("DatasetInfo", "list_datasets", "load_dataset", "load_text"),
    "mined": ("load_mined",),
    "msmarco": ("load_msmarco",),
    "near_copies": ("with_redundancy",),
    "preparation": ("PreparedDataset", "prepare", "prepare_on_disk", "progress_bar"),
    "rgb": ("load_rgb",),
    "synthetic": ("SyntheticDatasetConfig", "make_clustered", "make_query_focused"),
    "text_dataset": ("Passage", "PassageStream", "TextDataset", "embedded_text"),
    "trec": ("read_qrels", "read_run", "read_subtopics", "write_qrels", "write_run", "write_subtopics"),
}
"""Imported on first use: importing all at once would add 0.1 s to every command."""

__all__ = [
    "DatasetInfo",
    "Passage",
    "PassageStream",
    "PreparedDataset",
    "SyntheticDatasetConfig",
    "TextDataset",
    "embedded_text",
    "list_datasets",
    "load_beir",
    "load_dataset",
    "load_mined",
    "load_msmarco",
    "load_rgb",
    "load_text",
    "make_adversarial",
    "make_clustered",
    "make_query_focused",
    "prepare",
    "prepare_on_disk",
    "progress_bar",
    "read_qrels",
    "read_run",
    "read_subtopics",
    "with_redundancy",
    "write_beir",
    "write_qrels",
    "write_run",
    "write_subtopics",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
