"""Delete duplicates: first a plan, then a file that undoes it, then the chunks, each checked once more."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from dartboard.config import check_choice
from dartboard.copies import preference
from dartboard.duplicates.corpus import DATES, Listener, digest, silent
from dartboard.duplicates.groups import most_informative
from dartboard.duplicates.report import DuplicateReport, Kind, members
from dartboard.errors import ConfigError, InvalidInputError, StoreFormatError
from dartboard.near_duplicates import group_fingerprints
from dartboard.stores.base import Collection
from dartboard.stores.records import Record
from dartboard.stores.snapshot_file import read_snapshot_file, write_snapshot_file
from dartboard.types import FloatArray

Keep = Literal["newest", "longest", "first"]

_BATCH = 100
"""Chunks that are checked and deleted at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What would be deleted.

    ``kept`` has for each id to delete the id of the chunk that is kept for it; "" where it is not kept for a
    duplicate. ``digests`` are the hashes of the texts as they were compared, of both.
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
            raise ConfigError(f"{undo} exists already: name another file to keep the deleted chunks in")
        saved: dict[str, bytes] = {}
        write_snapshot_file(
            undo, collection.name, collection.manifest, self._unchanged(collection, saved, listen)
        )
        deleted: list[str] = []
        ids = list(saved)
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            there = {
                record.id: record
                for record in collection.get([*part, *sorted({self.kept[id] for id in part} - {""})])
            }
            sure = [
                id
                for id in part
                if id in there and _content(there[id]) == saved[id] and self._same(there, self.kept[id])
            ]
            if sure:
                collection.delete(sure)
            deleted += sure
            listen("deleting", start + len(part), len(ids))
        return deleted

    def _same(self, there: Mapping[str, Record], kept: str) -> bool:
        return not kept or (kept in there and digest(there[kept].text) == self.digests[kept])

    def _unchanged(
        self, collection: Collection, saved: dict[str, bytes], listen: Listener
    ) -> Iterator[list[Record]]:
        """The records to delete, complete; ``saved`` gets their content."""
        for batch in collection.iterate():
            found = [
                record
                for record in batch
                if record.id in self.kept and digest(record.text) == self.digests[record.id]
            ]
            saved |= {record.id: _content(record) for record in found}
            listen("saving", len(saved), len(self.kept))
            yield found


def _content(record: Record) -> bytes:
    return digest(json.dumps([record.text, record.metadata], sort_keys=True))


def plan_deletion(
    report: DuplicateReport, *, keep: Keep = "first", by: Kind = "text", newest_by: str | None = None
) -> Deletion:
    """One chunk of each group stays.

    A chunk goes only if it is a duplicate of the one that stays, not of another one in the group.

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
    if by == "vectors" and report.similarity is None:
        raise ConfigError("vectors were not compared: make the report with vectors, or delete by text")
    corpus, kept = report.corpus, dict[str, str]()
    rank = _rank(report, keep, newest_by)
    best, others = [], []
    for part in members(report.vector_groups if by == "vectors" else report.text_groups):
        stays = part[np.argmax(rank[part])]
        best += [stays] * (len(part) - 1)
        others += [at for at in part if at != stays]
    pairs = np.array([best, others], dtype=np.int64).T.reshape(-1, 2)
    for (stays, goes), sure in zip(pairs.tolist(), _duplicates(report, pairs, by), strict=True):
        if sure:
            kept[corpus.ids[goes]] = corpus.ids[stays]
    return _deletion(report, kept)


def plan_size(report: DuplicateReport, size: int, *, listen: Listener = silent) -> Deletion:
    """Only the ``size`` most informative chunks stay: Dartboard without a query.

    Near-duplicates by text go first. If that is enough, nothing else does.

    Raises:
        ConfigError: vectors were not compared, or there are not so many chunks.
    """
    corpus = report.corpus
    if corpus.vectors is None or report.sigma is None:
        raise ConfigError("the most informative chunks are found by vectors: make the report with vectors")
    if not isinstance(size, int) or isinstance(size, bool):
        raise ConfigError(f"the number of chunks to keep must be a whole number, got {size!r}")
    if not 1 <= size <= len(corpus):
        raise ConfigError(f"the number of chunks to keep must be in 1 to {len(corpus):,}, got {size:,}")
    first = np.unique(report.text_groups)
    if size < len(first):
        stay = first[most_informative(corpus.vectors[first], report.sigma, size, listen=listen)]
    else:
        repeats = np.setdiff1d(np.arange(len(corpus)), first)
        stay = np.append(first, repeats[: size - len(first)])
    staying = set(stay.tolist())
    kept = {}
    for at, id in enumerate(corpus.ids):
        if at not in staying:
            leader = int(report.text_groups[at])
            kept[id] = corpus.ids[leader] if leader in staying else ""
    return _deletion(report, kept)


def undo_deletion(collection: Collection, undo: str | Path) -> tuple[int, int]:
    """Bring back what a deletion took.

    Returns:
        How many chunks are back, and how many of the file were left out because their id is there.

    Raises:
        ConfigError: the file is of another collection.
        StoreFormatError: the file is damaged, or of another model.
    """
    name, manifest, batches = read_snapshot_file(undo)
    if name != collection.name:
        raise ConfigError(f"{undo} has chunks of collection {name!r}, not of {collection.name!r}")
    if (manifest.model, manifest.dimension) != (collection.manifest.model, collection.manifest.dimension):
        raise StoreFormatError(
            f"{undo} has vectors of {manifest.model_name or manifest.model!r}, the collection those of "
            f"{collection.manifest.model_name or collection.manifest.model!r}: nothing was changed"
        )
    back = left = 0
    for batch in batches:
        there = {record.id for record in collection.get([record.id for record in batch])}
        missing = [record for record in batch if record.id not in there]
        if missing:
            collection.upsert(missing)
        back, left = back + len(missing), left + len(there)
    return back, left


def _deletion(report: DuplicateReport, kept: dict[str, str]) -> Deletion:
    known = dict(zip(report.corpus.ids, report.corpus.digests, strict=True))
    used = {*kept, *kept.values()} - {""}
    return Deletion(
        chunks=report.chunks,
        kept=dict(sorted(kept.items())),
        digests={id: known[id] for id in used},
    )


def _rank(report: DuplicateReport, keep: Keep, newest_by: str | None) -> FloatArray:
    """``(n,)``: of a group, the first one with the largest number stays."""
    corpus = report.corpus
    if keep == "longest":
        return np.array(corpus.lengths, dtype=np.float64)
    if keep == "first":
        return np.zeros(len(corpus))
    known = [name for name in (DATES if newest_by is None else (newest_by,)) if name in corpus.known_fields]
    if not known:
        there = ", ".join(sorted(corpus.known_fields)) or "none"
        raise InvalidInputError(
            f"no chunk has a metadata field {newest_by or ', '.join(DATES)}, so nothing says which is "
            f"newest: name the field (newest_by, --newest-by; there are {there}), or keep longest or first"
        )
    if known[0] not in corpus.values:
        raise ConfigError(f"the report did not read {known[0]!r}: make it with fields=[{known[0]!r}]")
    values: list[Any] = corpus.values[known[0]]
    return preference(values)


def _duplicates(report: DuplicateReport, pairs: Any, by: Kind) -> list[bool]:
    """For each pair of what stays and what goes, whether they are duplicates of each other."""
    corpus = report.corpus
    if by == "exact":
        return [corpus.digests[one] == corpus.digests[other] for one, other in pairs.tolist()]
    # Of each pair the chunk that stays has to lead, so each is compared as texts of their own.
    used = np.unique(pairs[:, 0])
    order = np.concatenate([used, np.setdiff1d(np.arange(len(corpus)), used)])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    groups = group_fingerprints([corpus.fingerprints[at] for at in order], pairs=place[pairs])
    same = groups[place[pairs[:, 0]]] == groups[place[pairs[:, 1]]]
    if by == "vectors" and corpus.vectors is not None and report.similarity is not None:
        cosines = np.einsum("ij,ij->i", corpus.vectors[pairs[:, 0]], corpus.vectors[pairs[:, 1]])
        same |= cosines >= report.similarity - 1e-5
    found: list[bool] = same.tolist()
    return found
