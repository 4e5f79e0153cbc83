"""Documents into a collection: only what is new or changed is read, split, encoded and kept.

Every chunk carries the hash of its file and how many chunks the file has. A file counts as indexed when
all of them are there under its present hash, so a run that was stopped anywhere goes on by itself: files
that were finished are skipped, those begun are done again. A changed file is replaced: its new chunks are
kept first, then the old ones go, so that a search never finds nothing. Chunks whose text is the same as
before keep their vectors.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.engine.engine import Engine
from dartboard.errors import ConfigError
from dartboard.ingest import (
    Changes,
    ChunkingConfig,
    Found,
    Piece,
    Problem,
    ReadOptions,
    chunk,
    compare,
    estimate_tokens,
    read_file,
    walk,
)
from dartboard.stores import Collection, Record
from dartboard.stores.filters import And, Compare, Equal, Not
from dartboard.types import FloatArray

BATCH = 256
"""Chunks that are encoded and kept together: at most so much work is lost to a crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: files, and the bytes of those that have to be read."""

    files: int
    files_total: int
    chunks: int
    bytes: int
    bytes_total: int


Listener = Callable[[Progress], None]


@dataclass(slots=True, kw_only=True)
class IndexReport:
    """What a run did, in files and chunks. ``encoded`` are chunks that the model had to see."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    gone: int = 0
    chunks: int = 0
    encoded: int = 0
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def index_paths(
    engine: Engine,
    paths: Sequence[str | Path],
    *,
    chunking: ChunkingConfig | None = None,
    reading: ReadOptions | None = None,
    excludes: Sequence[str] = (),
    includes: Sequence[str] = (),
    prune: bool = False,
    batch_size: int = BATCH,
    listen: Listener = lambda progress: None,
) -> IndexReport:
    """Index files and folders into the engine's collection, which is made where there is none.

    ``prune`` removes chunks of files below ``paths`` that are no longer there; without it they are counted
    as ``gone``. Sources are named relative to the present folder, or, for a path outside it, to the
    folder that it lies in.
    """
    if not paths:
        raise ConfigError("nothing to index: name files or folders")
    started = time.perf_counter()
    collection, chunking = _collection(engine, chunking)
    run = _Run(engine, collection, chunking, reading or ReadOptions(), batch_size, listen)
    for path in paths:
        run.take(Path(path), [*_own_files(engine), *excludes], includes, prune)
    collection.prepare()
    run.report.seconds = time.perf_counter() - started
    return run.report


def _collection(engine: Engine, chunking: ChunkingConfig | None) -> tuple[Collection, ChunkingConfig]:
    """The collection, new or old; an old one keeps splitting as it did."""
    if not engine.exists:
        chunking = chunking or ChunkingConfig()
        return engine.create(settings={"chunking": chunking.to_json()}), chunking
    collection = engine.collection
    stored = collection.manifest.settings.get("chunking")
    before = ChunkingConfig.from_json(stored) if stored else ChunkingConfig()
    if chunking is not None and stored and chunking != before:
        raise ConfigError(
            f"collection {engine.name!r} splits documents by {_spelt(before)}, not by {_spelt(chunking)}: "
            "leave the chunking options out, or index into another collection"
        )
    return collection, chunking or before


def _spelt(chunking: ChunkingConfig) -> str:
    return ", ".join(f"{name} {value}" for name, value in chunking.to_json().items())


def _own_files(engine: Engine) -> list[str]:
    """A store that is a file may lie among the documents: it and its companions are none."""
    url = engine.store.url
    return [] if "://" in url and not url.startswith("file:") else [f"{Path(url).name}*"]


def root_of(path: Path) -> Path:
    """The folder that sources are relative to."""
    here, there = Path.cwd(), absolute(path)
    return here if there.is_relative_to(here) else there.parent


def absolute(path: Path) -> Path:
    """The path from the root, without ``..``; links stay as they are named."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


class _Run:
    """One run: pieces gather until a batch is full, whichever file they come from."""

    def __init__(
        self,
        engine: Engine,
        collection: Collection,
        chunking: ChunkingConfig,
        reading: ReadOptions,
        batch_size: int,
        listen: Listener,
    ) -> None:
        self.report = IndexReport()
        self._engine = engine
        self._collection = collection
        self._chunking = chunking
        self._reading = reading
        self._batch_size = batch_size
        self._listen = listen
        self._pending: list[Piece] = []
        self._finished: list[tuple[str, str]] = []
        self._files = self._files_total = self._bytes = self._bytes_total = 0

    def take(self, path: Path, excludes: Sequence[str], includes: Sequence[str], prune: bool) -> None:
        """Index all that is new or changed below a path."""
        place = absolute(path)
        root = root_of(place)
        prefix = place.relative_to(root).as_posix()
        found = walk([place], root=root, excludes=excludes, includes=includes)
        known = {
            source: hashed
            for source, hashed in known_documents(self._collection).items()
            if prefix == "." or source == prefix or source.startswith(f"{prefix}/")
        }
        changes = compare(known, found)
        self._count(changes)
        replaced = {entry.source for entry in changes.changed}
        for entry in changes.to_read:
            self._file(entry, replaced=entry.source in replaced)
        self._flush()
        if prune:
            for source in changes.deleted:
                self._collection.delete(where=Equal("source", source))
            self.report.deleted += len(changes.deleted)
        else:
            self.report.gone += len(changes.deleted)

    def _count(self, changes: Changes) -> None:
        self.report.unchanged += len(changes.unchanged)
        self.report.problems += changes.problems
        self._files_total += len(changes.to_read)
        self._bytes_total += sum(_size(entry) for entry in changes.to_read)
        self._tell()

    def _file(self, entry: Found, *, replaced: bool) -> None:
        pieces: list[Piece] = []
        for document in read_file(entry, self._reading):
            if isinstance(document, Problem):
                self.report.problems.append(document)
                continue
            self.report.notes += [f"{document.source}: {note}" for note in document.notes]
            pieces += chunk(document, self._chunking, count_tokens=self._tokens)
        for piece in pieces:
            piece.metadata["pieces"] = len(pieces)
        self._pending += pieces
        if pieces:
            self.report.new += not replaced
            self.report.changed += replaced
        if pieces and replaced:
            self._finished.append((entry.source, pieces[0].metadata["document_hash"]))
        self._files += 1
        self._bytes += _size(entry)
        while len(self._pending) >= self._batch_size:
            self._keep(self._pending[: self._batch_size])
            del self._pending[: self._batch_size]
        if not self._pending:
            self._drop_replaced()

    def _flush(self) -> None:
        if self._pending:
            self._keep(self._pending)
            self._pending = []
        self._drop_replaced()
        self._tell()

    def _keep(self, pieces: list[Piece]) -> None:
        vectors = self._vectors(pieces)
        records = [Record(piece.id, piece.text, vectors[piece.id], piece.metadata) for piece in pieces]
        self._collection.upsert(self._engine.retriever.index(records))
        self.report.chunks += len(records)
        self._tell()

    def _vectors(self, pieces: list[Piece]) -> dict[str, FloatArray]:
        """By id: an id holds the hash of its text, so what is known under it has the same vector."""
        known = {record.id: record.embedding for record in self._collection.get([p.id for p in pieces])}
        missing = {piece.id: piece.text for piece in pieces if piece.id not in known}
        if missing:
            encoded = self._engine.model.encode_documents(list(missing.values()))
            known |= dict(zip(missing, encoded, strict=True))
        self.report.encoded += len(missing)
        return known

    def _drop_replaced(self) -> None:
        """Remove the chunks of changed files that their present text no longer has."""
        for source, present in self._finished:
            stale = And((Equal("source", source), Not(Equal("document_hash", present))))
            self._collection.delete(where=stale)
        self._finished = []

    def _tokens(self, text: str) -> int:
        count: Any = getattr(self._engine.model, "count_tokens", None)
        return int(count([text])[0]) if count is not None and text.strip() else estimate_tokens(text)

    def _tell(self) -> None:
        self._listen(
            Progress(
                files=self._files,
                files_total=self._files_total,
                chunks=self.report.chunks,
                bytes=self._bytes,
                bytes_total=self._bytes_total,
            )
        )


def known_documents(collection: Collection) -> dict[str, str]:
    """The hash of every source that is there whole; one that is there in part has an empty hash."""
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    for metadata in _metadata(collection):
        source, hashed = metadata.get("source"), metadata.get("document_hash")
        if isinstance(source, str) and isinstance(hashed, str):
            count, _ = seen.setdefault(source, {}).get(hashed, (0, 0))
            seen[source][hashed] = (count + 1, int(metadata.get("pieces", 0)))
    return {source: _whole(by_hash) for source, by_hash in seen.items()}


def _whole(by_hash: dict[str, tuple[int, int]]) -> str:
    if len(by_hash) > 1:
        return ""
    ((hashed, (count, total)),) = by_hash.items()
    return hashed if count == total else ""


def _metadata(collection: Collection) -> Iterator[dict[str, Any]]:
    for batch in collection.iterate(where=Compare("pieces", ">=", 1)):
        for record in batch:
            yield record.metadata


def _size(entry: Found) -> int:
    try:
        return entry.path.stat().st_size
    except OSError:
        return 0
