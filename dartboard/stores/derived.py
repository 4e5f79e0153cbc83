"""Arrays beside a file, so that the next process need not build them: plain ``.npy`` files, memory-mapped.

One folder for each collection, under a random name that the store's file notes. It is complete before it gets
its name, and never changed: it holds the arrays of one state. A later state is reached by reading the rows
that came since, as for arrays in memory, so nothing is saved again until a tenth of the rows has changed. A
name that the file does not note means nothing and is deleted by the next process that saves.

The folder may come from a stranger with its store. Files must be regular, and types, lengths and ranges are
checked, so that wrong arrays can give wrong answers but never a crash.
"""

import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Hashable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.lexical import InvertedIndex
from dartboard.lexical.term_table import TermTable
from dartboard.stores.array_view import ArrayView, text_index
from dartboard.stores.arrays import (
    Rows,
    SparseArray,
    TextArray,
    VectorArray,
    longest_of,
    positions_of,
    too_much_changed,
)
from dartboard.stores.files import check_regular
from dartboard.stores.manifest import Manifest

logger = logging.getLogger(__name__)

ANALYSIS_VERSION = 1
"""Increase it when the text analysis changes, so that older words are not used."""

SAVED_FROM = 1000
"""Arrays of smaller collections are built as quickly as they are read."""
_NAME = re.compile(r"[0-9a-f]{32}")
_OWN = re.compile(r"[0-9a-f]{32}(\.part)?")

Array = npt.NDArray[Any]


class _UnfitError(Exception):
    """A saved array cannot be what dartboard wrote."""


class DerivedArrays:
    """The folder ``<file>.derived`` of a store's file."""

    def __init__(self, file: Path) -> None:
        self.folder = file.with_name(f"{file.name}.derived")

    def load(self, name: str, key: Hashable, manifest: Manifest) -> Any:
        """The array of this key in the folder of this name; None if it is missing or cannot be ours."""
        folder = self.folder / name
        if not _NAME.fullmatch(name) or self.folder.is_symlink() or folder.is_symlink():
            return None
        try:
            return _loaded(_Reader(folder, _prefix(key)), key, manifest)
        except (OSError, ValueError, TypeError, OverflowError, EOFError, _UnfitError) as error:
            logger.info("%s: arrays cannot be used (%s) and are built anew", folder, error)
            return None

    def save(self, view: ArrayView) -> str | None:
        """Save all arrays of a state; returns the name to note, None if there is nothing to save.

        A failure (a full disk) is logged: without saved arrays, searches build them.
        """
        keys = _keys(view)
        if view.size() < SAVED_FROM or self._is_recent(view, keys) or self.folder.is_symlink():
            return None
        name = secrets.token_hex(16)
        part = self.folder / f"{name}.part"
        try:
            part.mkdir(parents=True)
            for key in keys:
                for array_name, array in _arrays(view, key):
                    _write(part / f"{_prefix(key)}-{array_name}.npy", array)
            part.rename(self.folder / name)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            logger.warning("%s: arrays were not saved, the next process builds them: %s", self.folder, error)
            return None
        return name

    def sweep(self, connection: sqlite3.Connection) -> None:
        """Delete what no collection notes; call it in the transaction that notes a name."""
        noted = {name for (name,) in connection.execute("SELECT derived FROM collections")}
        if self.folder.is_symlink() or not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            if _OWN.fullmatch(path.name) and path.name not in noted:
                shutil.rmtree(path, ignore_errors=True)

    def size(self, name: str) -> int:
        """Bytes in the folder of this name."""
        total = 0
        with suppress(OSError):
            for path in (self.folder / name).iterdir() if _NAME.fullmatch(name) else ():
                total += path.stat().st_size
        return total

    def _is_recent(self, view: ArrayView, keys: list[Hashable]) -> bool:
        """Whether all arrays are saved, and at most a tenth of the rows has changed since."""
        rows, current = self.load(view.derived, "rows", view.manifest), view.row_list()
        if rows is None or not all(
            (self.folder / view.derived / f"{_prefix(key)}-rows.npy").exists() for key in keys
        ):
            return False
        common = positions_of(rows, current).size
        return not too_much_changed(rows.size + current.size - 2 * common, current.size)


def _keys(view: ArrayView) -> list[Hashable]:
    fields = [("vectors", field) for field in (None, *view.manifest.vectors)]
    return ["rows", *fields, view.text_key(), *(("sparse", field) for field in view.manifest.sparse)]


def _prefix(key: Hashable) -> str:
    """Names of fields may hold anything, so a hash stands in the names of files."""
    kind = key if isinstance(key, str) else key[0]  # type: ignore[index]
    return f"{kind}-{hashlib.sha256(json.dumps([ANALYSIS_VERSION, key]).encode()).hexdigest()[:16]}"


def _arrays(view: ArrayView, key: Any) -> Iterator[tuple[str, Array]]:
    """The arrays of a state, each in one part."""
    match key:
        case "rows":
            yield "rows", view.row_list()
        case "vectors", field:
            vectors = view.vector_array(field).folded()
            yield "rows", vectors.rows
            yield "matrix", vectors.main
        case "sparse", field:
            sparse = view.sparse_array(field)
            if len(sparse.parts) > 1 or sparse.alive is not None:
                sparse = view.built_sparse_array(field)
            yield "rows", sparse.rows
            for name, array in sparse.parts[0].arrays().items():
                yield f"list-{name}", array
        case _:
            text = view.text_array().folded()
            table = text.index.tables[0]
            yield "rows", text.rows
            yield "terms", np.frombuffer("\n".join(table.terms).encode(), np.uint8)
            for name in _TABLE:
                yield f"list-{name}", getattr(table, name)


_TABLE = {"starts": "i8", "rows": "i4", "counts": "u", "lengths": "i4", "most": "u", "shortest": "i4"}
"""The arrays of a table of terms, with their types."""


class _Reader:
    """Reads arrays and checks their types and shapes."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder, self._prefix = folder, prefix

    def read(self, name: str, kind: str, *shape: int | None) -> Array:
        """An array of this type; None stands for any length."""
        path = self._folder / f"{self._prefix}-{name}.npy"
        check_regular(path)
        # As a plain array: every use of an np.memmap object costs microseconds.
        array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        right = array.dtype.kind == "u" if kind == "u" else array.dtype == np.dtype(f"<{kind}")
        if not right or array.ndim != len(shape) or not array.flags.c_contiguous:
            raise _UnfitError(f"{path.name} is of another type")
        if any(wanted not in (None, found) for wanted, found in zip(shape, array.shape, strict=True)):
            raise _UnfitError(f"{path.name} is of another length")
        return array

    def rows(self) -> Rows:
        """Rows of the store, which increase."""
        rows = self.read("rows", "i8", None)
        _check(rows.size == 0 or (rows[0] > 0 and bool((np.diff(rows) > 0).all())), "rows")
        return rows


def _loaded(reader: _Reader, key: Any, manifest: Manifest) -> Any:
    rows = reader.rows()
    match key:
        case "rows":
            return rows
        case "vectors", field:
            described = manifest.vector_field(field)
            matrix = reader.read("matrix", "f4", rows.size, described.dimension)
            longest = longest_of(matrix) if described.metric == "dot" else 1.0
            return VectorArray.of(rows, matrix, longest)
        case "sparse", _:
            terms = reader.read("list-terms", "i4", None)
            starts = reader.read("list-starts", "i8", terms.size + 1)
            lists = reader.read("list-rows", "i4", None)
            weights = reader.read("list-weights", "f4", lists.size)
            _check_lists(starts, lists, rows.size)
            return SparseArray(rows=rows, parts=(InvertedIndex(rows.size, terms, starts, lists, weights),))
        case _:
            blob = reader.read("terms", "u1", None)
            words = blob.tobytes().decode().split("\n") if blob.size else []
            arrays = {name: reader.read(f"list-{name}", kind, None) for name, kind in _TABLE.items()}
            table = TermTable(words, **arrays)
            _check_lists(table.starts, table.rows, rows.size)
            _check(table.counts.size == table.rows.size and table.lengths.size == rows.size, "lengths")
            _check(len(words) == table.most.size == table.shortest.size == table.starts.size - 1, "terms")
            return TextArray(rows=rows, index=text_index([table], manifest))


def _check_lists(starts: Array, rows: Array, size: int) -> None:
    """Lists follow each other, and their rows exist."""
    follow = starts.size and starts[0] == 0 and starts[-1] == rows.size and bool((np.diff(starts) > 0).all())
    _check(bool(follow), "starts of lists")
    _check(rows.size == 0 or (rows.min() >= 0 and rows.max() < size), "rows of lists")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise _UnfitError(f"{what} that cannot be right")


def _write(path: Path, array: Array) -> None:
    with path.open("xb") as stream:
        np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())
