"""Documents into a collection: only what is new or changed is read, split, encoded and kept.

Every chunk carries the hash of its file and how many chunks the file has. A file counts as indexed when
all of them are there under its present hash, so a run that was stopped anywhere goes on by itself: files
that were finished are skipped, those begun are done again. A changed file is replaced: its new chunks are
kept first, then the old ones go, so that a search never finds nothing; where it has no text any more, they
just go. Chunks whose text is the same as before keep their vectors.

Sources are named relative to the collection's root: the folder of a store that is a file, so that both can
move together, else the folder from which the collection was made. What lies elsewhere is named by its
absolute path. Files that were handed in rather than found (an upload) are named relative to where they were
put for the moment, and their chunks say so: no later run takes them for files that are gone.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from dartboard.deadline import check
from dartboard.embeddings.texts import count_tokens
from dartboard.engine.batches import Batches, Begun
from dartboard.engine.encoding import Encoder
from dartboard.engine.engine import Engine
from dartboard.errors import ConfigError, DartboardError, IngestError
from dartboard.ingest import (
    Changes,
    ChunkingConfig,
    Found,
    Piece,
    Problem,
    ReadOptions,
    RowFields,
    chunk,
    compare,
    is_text,
    read_file,
    walk,
)
from dartboard.ingest.files import absolute
from dartboard.stores import Collection, Filter
from dartboard.stores.filters import And, Compare, Equal, Not

BATCH = 64
"""Chunks that are encoded and kept together: at most so much work is lost to an interruption."""

_HELD = 20_000
"""Chunks of one file that are held in memory before the first is kept."""


_KEPT_FOR_LATER = ("unreadable", "extra")
"""Problems that may pass: what is known of such a file stays."""


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
    """What a run did, in files and chunks. ``encoded`` are chunks that the model had to see.

    ``gone`` are files of the index that are no longer there, ``emptied`` those that lost all their text.
    ``files`` are those that were read, with the chunks of each.
    """

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0
    gone: int = 0
    emptied: int = 0
    chunks: int = 0
    encoded: int = 0
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)


def index_paths(
    engine: Engine,
    paths: str | Path | Sequence[str | Path],
    *,
    chunking: ChunkingConfig | None = None,
    reading: ReadOptions | None = None,
    excludes: Sequence[str] = (),
    includes: Sequence[str] = (),
    prune: bool = False,
    uploaded_to: Path | None = None,
    batch_size: int = BATCH,
    encoder: Encoder | None = None,
    listen: Listener = lambda progress: None,
) -> IndexReport:
    """Index files and folders into the engine's collection, which is made where there is none.

    ``prune`` removes chunks of files below ``paths`` that are no longer there or left out by ``excludes``;
    without it they are counted as ``gone``. With ``includes``, a file that is there is never pruned.
    ``uploaded_to`` is the folder above ``paths`` that files were put in for this run only: they are named
    relative to it.
    ``encoder`` makes the vectors, of several batches at a time where it can; by default the engine's model.
    """
    listed = check_paths(paths)
    started = time.perf_counter()
    collection, chunking = _collection(engine, chunking)
    names = Names(engine, uploaded_to)
    run = _Run(engine, collection, chunking, reading or ReadOptions(), names, batch_size, encoder, listen)
    run.take([absolute(path) for path in listed], excludes, includes, prune)
    collection.prepare()
    run.report.seconds = time.perf_counter() - started
    return run.report


def check_paths(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files and folders that are there, or an error: before a store is made for nothing."""
    listed = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
    if not listed:
        raise ConfigError("nothing to index: name files or folders")
    for path in listed:
        if not os.path.lexists(path):
            raise IngestError(f"there is no file or folder {path}: check the name and the present folder")
    return listed


def _collection(engine: Engine, chunking: ChunkingConfig | None) -> tuple[Collection, ChunkingConfig]:
    """The collection, new or old; an old one keeps splitting as it did, for the retriever it has."""
    if not engine.exists:
        chunking = chunking or ChunkingConfig()
        return engine.create(settings={"chunking": chunking.to_json(), "root": str(Path.cwd())}), chunking
    collection = engine.collection
    engine.check_fields()
    engine.confirm_names()
    stored = collection.manifest.settings.get("chunking")
    before = ChunkingConfig.from_json(stored) if stored else ChunkingConfig()
    if chunking is not None and stored and chunking != before:
        raise ConfigError(
            f"collection {engine.name!r} splits documents by {_spelt(before)}, not by {_spelt(chunking)}: "
            "leave the chunking options out, or index into another collection"
        )
    collection.configure(collection.manifest.settings)  # a store that another process writes to says so now
    return collection, chunking or before


def _spelt(chunking: ChunkingConfig) -> str:
    return ", ".join(f"{name} {value}" for name, value in chunking.to_json().items())


class Names:
    """What files are called in a collection."""

    def __init__(self, engine: Engine, uploaded_to: Path | None = None) -> None:
        url = engine.store.url
        file = None if "://" in url and not url.startswith("file:") else absolute(Path(url))
        self.store = file
        self.uploaded = uploaded_to is not None
        if uploaded_to is not None:
            self.root = absolute(uploaded_to)
        else:
            stored = engine.collection.manifest.settings.get("root", Path.cwd())
            self.root = file.parent if file else Path(stored)

    def of(self, place: Path) -> str:
        """The source of a file or folder."""
        return (place.relative_to(self.root) if place.is_relative_to(self.root) else place).as_posix()

    def below(self, source: str, place: Path) -> bool:
        """Whether a source is this place, or lies below it."""
        return self.path(source).is_relative_to(place)

    def path(self, source: str) -> Path:
        """Where a source lies."""
        return self.root / source

    def is_store(self, path: Path) -> bool:
        """Whether a file belongs to the store itself, which may lie among the documents."""
        if self.store is None:
            return False
        name = self.store.name
        own = {name, *(f"{name}{end}" for end in ("-wal", "-shm", "-journal", ".lock", ".derived"))}
        return any(
            part.parent == self.store.parent and (part.name in own or part.name.startswith(f"{name}.new-"))
            for part in (path, *path.parents)
        )


class _Run:
    """One run: pieces gather until a batch is full, whichever file they come from."""

    def __init__(
        self,
        engine: Engine,
        collection: Collection,
        chunking: ChunkingConfig,
        reading: ReadOptions,
        names: Names,
        batch_size: int,
        encoder: Encoder | None,
        listen: Listener,
    ) -> None:
        self.report = IndexReport()
        self._engine = engine
        self._collection = collection
        self._chunking = chunking
        self._reading = reading
        self._batch_size = batch_size
        self._listen = listen
        self._names = names
        self._read_as = _spelt_fields(reading)
        self._pending: list[tuple[Piece, float]] = []
        self._batches = Batches(engine, collection, encoder, self._kept)
        self._finished: list[tuple[str, Filter]] = []
        self._files = self._files_total = self._bytes_total = 0
        self._bytes = 0.0

    def take(
        self, places: Sequence[Path], excludes: Sequence[str], includes: Sequence[str], prune: bool
    ) -> None:
        """Index all that is new or changed below the places."""
        all_known, uploaded = known_documents(self._collection, self._read_as)
        plans = []
        for place in places:
            known = self._known_below(place, all_known)
            changes = compare(known, self._found(place, excludes, includes))
            self.report.unchanged += len(changes.unchanged)
            self.report.problems += changes.problems
            plans.append(changes)
        self._files_total = sum(len(changes.to_read) for changes in plans)
        self._bytes_total = sum(_size(entry) for changes in plans for entry in changes.to_read)
        self._tell()
        try:
            self._read(plans)
        except (KeyboardInterrupt, DartboardError):
            self._batches.rescue()
            raise
        gone = sorted({source for changes in plans for source in changes.deleted} - uploaded)
        self._remove([source for source in gone if not (includes and self._there(source))], prune)

    def _read(self, plans: Sequence[Changes]) -> None:
        done: set[str] = set()
        for changes in plans:
            replaced = {entry.source for entry in changes.changed}
            for entry in changes.to_read:
                if entry.source not in done:
                    done.add(entry.source)
                    self._file(entry, replaced=entry.source in replaced)
        self._flush()

    def _known_below(self, place: Path, all_known: dict[str, str]) -> dict[str, str]:
        """What is known of a place; an upload may be thousands of files, which are looked up by name."""
        if self._names.uploaded and place.is_file():
            source = self._names.of(place)
            return {source: all_known[source]} if source in all_known else {}
        return {name: hashed for name, hashed in all_known.items() if self._names.below(name, place)}

    def _found(
        self, place: Path, excludes: Sequence[str], includes: Sequence[str]
    ) -> Iterator[Found | Problem]:
        """The files below a place under the names that they have in the collection."""
        base = place if place.is_dir() else place.parent
        for entry in walk([place], root=base, excludes=excludes, includes=includes):
            check()
            path = entry.path if isinstance(entry, Found) else base / entry.source
            if self._names.is_store(absolute(path)):
                continue
            source = self._names.of(absolute(path))
            yield replace(entry, source=source) if is_text(source) else _no_text(source)

    def _there(self, source: str) -> bool:
        return os.path.lexists(self._names.path(source))

    def _remove(self, gone: Sequence[str], prune: bool) -> None:
        if not prune:
            self.report.gone += len(gone)
            return
        for source in gone:
            self._collection.delete(where=Equal("source", source))
        self.report.deleted += len(gone)

    def _file(self, entry: Found, *, replaced: bool) -> None:
        """Index one file. Every piece says how many there are; where they are very many, they are not held
        in memory until that is known, but counted first and made once more.
        """
        problems: list[Problem] = []
        notes: list[str] = []
        held: list[Piece] = []
        count = 0
        for piece in self._pieces(entry, problems, notes):
            count += 1
            if count <= _HELD:
                held.append(piece)
        self.report.problems += problems
        self.report.notes += notes
        self.report.files[entry.source] = count
        self.report.new += bool(count and not replaced)
        self.report.changed += bool(count and replaced)
        if replaced and held:
            self._finished.append((entry.source, _present(held[0])))
        elif replaced and not any(problem.code in _KEPT_FOR_LATER for problem in problems):
            self._batches.then(partial(self._collection.delete, where=Equal("source", entry.source)))
            self.report.emptied += 1
        share = _size(entry) / max(1, count)
        self._files += 1
        if not count:
            self._bytes += share
        for piece in held if count <= _HELD else self._pieces(entry, [], []):
            piece.metadata["pieces"] = count
            self._pending.append((piece, share))
            if len(self._pending) >= self._batch_size:
                self._begin(self._pending)
                self._pending = []
        if not self._pending:
            self._drop_replaced()

    def _pieces(self, entry: Found, problems: list[Problem], notes: list[str]) -> Iterator[Piece]:
        """The pieces of a file as they are made, no two of one id: rows of one key may say the same."""
        seen: set[int] = set()  # hashes of ids: there may be millions
        for document in read_file(entry, self._reading):
            if isinstance(document, Problem):
                problems.append(document)
                continue
            notes += [f"{document.source}: {note}" for note in document.notes]
            for piece in chunk(document, self._chunking, count_tokens=self._tokens):
                check()
                name = piece.id
                while (hashed := hash(name)) in seen:
                    name += "~"
                seen.add(hashed)
                if self._read_as and piece.metadata["kind"] == "rows":
                    piece.metadata["read_as"] = self._read_as
                if self._names.uploaded:
                    piece.metadata["uploaded"] = True
                yield piece if name == piece.id else replace(piece, id=name)

    def _flush(self) -> None:
        if self._pending:
            self._begin(self._pending)
            self._pending = []
        self._drop_replaced()
        self._batches.finish()
        self._tell()

    def _begin(self, batch: list[tuple[Piece, float]]) -> None:
        check()
        self._batches.begin(batch)

    def _kept(self, begun: Begun) -> None:
        self.report.chunks += len(begun.batch)
        self.report.encoded += len(begun.missing)
        self._bytes += sum(share for _, share in begun.batch)
        self._tell()

    def _drop_replaced(self) -> None:
        """Remove the chunks of changed files that their present text no longer has."""
        for source, present in self._finished:
            gone = And((Equal("source", source), Not(present)))
            self._batches.then(partial(self._collection.delete, where=gone))
        self._finished = []

    def _tokens(self, text: str) -> int:
        """How many tokens a text costs; where that is more than a chunk may have, the least it can be.

        A whole file is never tokenized at once: that takes a hundred bytes a token.
        """
        if not text.strip():
            return 0
        return count_tokens(self._engine.model, [text], most=self._chunking.size)[0]

    def _tell(self) -> None:
        self._listen(
            Progress(
                files=self._files,
                files_total=self._files_total,
                chunks=self.report.chunks,
                bytes=round(self._bytes),
                bytes_total=self._bytes_total,
            )
        )


def known_documents(collection: Collection, read_as: str = "") -> tuple[dict[str, str], set[str]]:
    """The hash of every source that is there whole, and read as it should be; an empty one for others.

    Beside it the sources that were uploaded: nobody can say whether they are gone.
    """
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    uploaded: set[str] = set()
    for metadata in _metadata(collection):
        source, hashed = metadata.get("source"), metadata.get("document_hash")
        if not isinstance(source, str) or not isinstance(hashed, str):
            continue
        if metadata.get("uploaded") is True:
            uploaded.add(source)
        if read_as and metadata.get("kind") == "rows" and metadata.get("read_as") != read_as:
            hashed = ""
        count, _ = seen.setdefault(source, {}).get(hashed, (0, 0))
        seen[source][hashed] = (count + 1, int(metadata.get("pieces", 0)))
    return {source: _whole(by_hash) for source, by_hash in seen.items()}, uploaded


def _spelt_fields(reading: ReadOptions) -> str:
    """How rows are read, where somebody said so; files read otherwise count as changed."""
    return "" if reading.fields == RowFields() else json.dumps(asdict(reading.fields), sort_keys=True)


def _present(piece: Piece) -> Filter:
    """What all chunks of the piece's file have in common, and older ones have not."""
    names = [name for name in ("document_hash", "read_as") if name in piece.metadata]
    return And(tuple(Equal(name, piece.metadata[name]) for name in names))


def _whole(by_hash: dict[str, tuple[int, int]]) -> str:
    if len(by_hash) > 1:
        return ""
    ((hashed, (count, total)),) = by_hash.items()
    return hashed if count == total else ""


def _metadata(collection: Collection) -> Iterator[dict[str, Any]]:
    for batch in collection.iterate(where=Compare("pieces", ">=", 1)):
        for record in batch:
            yield record.metadata


def _no_text(source: str) -> Problem:
    """A file whose name no store can keep."""
    shown = source.encode("utf-8", "backslashreplace").decode()
    return Problem(shown, "has a name that is not UTF-8: rename it, and index again", "name")


def _size(entry: Found) -> int:
    try:
        return entry.path.stat().st_size
    except OSError:
        return 0
