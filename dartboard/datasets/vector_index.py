"""A FAISS index over vectors on disk, for search by cosine similarity.

Up to ``EXACT_UP_TO`` vectors every one is compared: nothing is lost and it is quick. Beyond, vectors are
grouped around centroids and kept in 8 bits a number, and a search looks at the nearest groups: a quarter
of the memory, and most of the true neighbours. The file is read back only from the user's own cache:
FAISS files from strangers are not safe to open.
"""

from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.progress import Listener
from dartboard.embeddings.vectors import Vectors, unit_rows
from dartboard.errors import DatasetError, MissingExtraError
from dartboard.types import FloatArray, IntArray

EXACT_UP_TO = 20_000
_BLOCK = 8192
_TRAINING_POINTS_A_GROUP = 64
_SEARCHED_SHARE = 16


def build_index(vectors: Vectors, path: Path, listen: Listener, *, exact_up_to: int = EXACT_UP_TO) -> None:
    """Index ``(n, d)`` vectors block by block; a finished index of as many vectors is left as it is."""
    faiss = _faiss()
    if path.exists() and open_index(path).ntotal == len(vectors):
        return
    index = _empty_index(faiss, vectors, exact_up_to)
    for start in range(0, len(vectors), _BLOCK):
        index.add(unit_rows(np.array(vectors[start : start + _BLOCK])))
        listen("Indexing passages", min(start + _BLOCK, len(vectors)), len(vectors))
    part = path.with_name(f"{path.name}.part")
    faiss.write_index(index, str(part))
    part.replace(path)


def open_index(path: Path) -> Any:
    """The FAISS index that :func:`build_index` wrote."""
    if not path.exists():
        raise DatasetError(f"{path} is missing: prepare the data set with index=True")
    return _faiss().read_index(str(path))


def search_index(path: Path, queries: Vectors, k: int) -> tuple[IntArray, FloatArray]:
    """Rows of the nearest vectors and their cosine similarities, ``(n_queries, k)``; row -1 is no vector."""
    similarities, rows = open_index(path).search(unit_rows(np.array(queries)), k)
    return rows.astype(np.intp), similarities


def _empty_index(faiss: Any, vectors: Vectors, exact_up_to: int) -> Any:
    count, dim = vectors.shape
    if count <= exact_up_to:
        return faiss.IndexFlatIP(dim)
    groups = max(1, min(int(4 * np.sqrt(count)), count // _TRAINING_POINTS_A_GROUP))
    index = faiss.index_factory(dim, f"IVF{groups},SQ8", faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(0).choice(
        count, min(count, groups * _TRAINING_POINTS_A_GROUP), replace=False
    )
    index.train(unit_rows(np.array(vectors[np.sort(sample)])))
    index.nprobe = max(8, groups // _SEARCHED_SHARE)
    return index


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("faiss-cpu", "vocab", "An index over a data set") from error
    return faiss
