"""Delete duplicates: first a plan, then a file that undoes it, then the chunks, each checked once more."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from dartboard.config import check_choice
from dartboard.copies import preference
from dartboard.duplicates.corpus import DATES, Listener, digest, silent
from dartboard.duplicates.groups import exact_groups, similar_groups, text_groups
from dartboard.duplicates.report import DuplicateReport, Kind
from dartboard.errors import ConfigError, InvalidInputError, StoreFormatError
from dartboard.stores.base import Collection
from dartboard.stores.records import Record
from dartboard.stores.snapshot_file import read_snapshot_file, write_snapshot_file
from dartboard.types import IntArray

Keep = Literal["newest", "longest", "first"]

_BATCH = 100
"""Chunks that are checked and deleted at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What would be deleted.

    ``kept`` has for each id to delete the id of the chunk that is kept for it. ``digests`` are the hashes of
    the texts as they were compared, of both.
    """

    chunks: int
    kept: Mapping[str, str]
    digests: Mapping[str, bytes] = field(repr=False)

    def delete(self, collection: Collection, undo: str | Path, *, listen: Listener = silent) -> list[str]:
        """Delete the chunks whose text, and that of the one kept, did not change since they were compared.

        Args:
            collection: where they are.
            undo: the file to write first, from which :func:`undo_deletion` brings them back.
            listen: told how many are done.

        Returns:
            The ids that were deleted; the others of the plan were changed meanwhile, and stay.

        Raises:
            ConfigError: the file exists already.
        """
        if Path(undo).exists():
            raise ConfigError(
                f"{undo} exists already: name another file to keep the deleted chunks in", field="undo"
            )
        saved: dict[str, bytes] = {}
        batches = self._unchanged(collection, saved, listen)
        write_snapshot_file(undo, collection.name, collection.manifest, batches)
        deleted: list[str] = []
        ids = list(saved)
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            wanted = [*part, *sorted({self.kept[id] for id in part})]
            there = {record.id: record for record in collection.get(wanted)}
            sure = [
                id
                for id in part
                if id in there and _content(there[id]) == saved[id] and self._same(there.get(self.kept[id]))
            ]
            if sure:
                collection.delete(sure)
            deleted += sure
            listen("deleting", start + len(part), len(ids))
        return deleted

    def _same(self, record: Record | None) -> bool:
        """Whether a chunk is there and has the text that was compared."""
        return record is not None and digest(record.text) == self.digests[record.id]

    def _unchanged(
        self, collection: Collection, saved: dict[str, bytes], listen: Listener
    ) -> Iterator[list[Record]]:
        """The records to delete, complete; ``saved`` gets their content."""
        for batch in collection.iterate():
            found = [record for record in batch if record.id in self.kept and self._same(record)]
            saved |= {record.id: _content(record) for record in found}
            listen("saving", len(saved), len(self.kept))
            yield found


def _content(record: Record) -> bytes:
    return digest(json.dumps([record.text, record.metadata], sort_keys=True))


def plan_deletion(
    report: DuplicateReport, *, keep: Keep = "first", by: Kind = "text", newest_by: str | None = None
) -> Deletion:
    """The chunks are put in order of preference and grouped again, so that the preferred ones lead.

    A chunk goes only if it is a duplicate of the one that is kept for it, not of another one in the group.

    Args:
        report: from :meth:`dartboard.engine.Engine.duplicates`.
        keep: ``newest``, by a metadata field; ``longest``; or ``first``, by id. Equal ones: the first.
        by: ``exact`` copies only; ``text``, nearly the same words, too; ``vectors``, also what is nearly the
            same by vectors, which may differ in a number or a name.
        newest_by: the field for ``newest``; by default the first of modified, date and version that any chunk
            has. Texts are compared as versions and dates.

    Raises:
        ConfigError: an unknown rule; vectors were not compared; the report did not read the field.
        InvalidInputError: no chunk has a field that says which is the newest.
    """
    check_choice("keep", keep, get_args(Keep))
    check_choice("by", by, get_args(Kind))
    order = _order(report, keep, newest_by)
    if by == "exact":
        leaders = exact_groups(report.corpus, order)
    elif by == "text":
        leaders = text_groups(report.corpus, order)
    else:
        leaders = _by_vectors(report, order)
    ids, digests = report.corpus.ids, report.corpus.digests
    pairs = [(at, leader) for at, leader in enumerate(leaders.tolist()) if at != leader]
    return Deletion(
        chunks=report.chunks,
        kept={ids[at]: ids[leader] for at, leader in pairs},
        digests={ids[at]: digests[at] for pair in pairs for at in pair},
    )


def undo_deletion(collection: Collection, undo: str | Path) -> tuple[int, int]:
    """Bring back what a deletion took.

    The file is read to its end before anything is written, so a cut one changes nothing.

    Returns:
        How many chunks are back, and how many of the file were left out because their id is there.

    Raises:
        ConfigError: the file is of another collection.
        StoreFormatError: the file is damaged, or of another model.
    """
    name, manifest, batches = read_snapshot_file(undo)
    if name != collection.name:
        raise ConfigError(
            f"{undo} has chunks of collection {name!r}, not of {collection.name!r}: name that collection",
            field="undo",
        )
    if (manifest.model, manifest.dimension) != (collection.manifest.model, collection.manifest.dimension):
        raise StoreFormatError(
            f"{undo} has vectors of {manifest.model_name or manifest.model!r}, the collection those of "
            f"{collection.manifest.model_name or collection.manifest.model!r}: nothing was changed",
            field="undo",
        )
    for _ in batches:
        pass
    back = left = 0
    for batch in read_snapshot_file(undo)[2]:
        there = {record.id for record in collection.get([record.id for record in batch])}
        missing = [record for record in batch if record.id not in there]
        if missing:
            collection.upsert(missing)
        back, left = back + len(missing), left + len(there)
    return back, left


def _by_vectors(report: DuplicateReport, order: IntArray) -> IntArray:
    """Leaders by words, which then join one another by vectors and take along what is near as well."""
    vectors, similarity = report.corpus.vectors, report.similarity
    if vectors is None or similarity is None:
        raise ConfigError(
            "vectors were not compared: make the report with vectors, or delete by text", field="by"
        )
    by_text = text_groups(report.corpus, order)
    first = order[by_text[order] == order]
    joined = np.empty_like(by_text)
    joined[first] = first[similar_groups(vectors[first], similarity)]
    leaders = joined[by_text]
    cosines = np.einsum("ij,ij->i", vectors, vectors[leaders])
    near = (leaders == by_text) | (cosines >= similarity - 1e-5)
    return np.where(near, leaders, np.arange(len(leaders)))


def _order(report: DuplicateReport, keep: Keep, newest_by: str | None) -> IntArray:
    """All positions, those that should stay first."""
    corpus = report.corpus
    if keep == "first":
        return np.arange(len(corpus))
    if keep == "longest":
        return np.argsort(-np.array(corpus.lengths), kind="stable")
    known = [name for name in (DATES if newest_by is None else (newest_by,)) if name in corpus.known_fields]
    if not known:
        there = ", ".join(sorted(corpus.known_fields)) or "none"
        raise InvalidInputError(
            f"no chunk has a metadata field {newest_by or ', '.join(DATES)}, so nothing says which is "
            f"newest: name the field (there are {there}), or keep longest or first",
            field="newest_by",
        )
    if known[0] not in corpus.values:
        raise ConfigError(
            f"the report did not read {known[0]!r}: make it with fields=[{known[0]!r}]", field="newest_by"
        )
    return np.argsort(-preference(corpus.values[known[0]]), kind="stable")
