"""Index files and folders: only what is new or changed is read, split, encoded and written.

The path of a document, from top to bottom of this file: files are found below the paths (:func:`walk`); a
file whose bytes have the hash that the collection knows is skipped; any other is read into documents
(``read_bytes``), cleaned, and split into pieces (``split``), which :class:`ChunkWriter` encodes in batches
and upserts.

Every chunk carries the hash of its file and how many chunks the file has. A file counts as indexed when all
of them are there under its present hash, so a run that was stopped anywhere goes on by itself: files that
were finished are skipped, those begun are done again. A changed file is replaced: its new chunks are written
first, then the old ones go, so that a search never finds nothing; where it has no text any more, they just
go. Chunks whose text is the same as before keep their vectors.

Sources are named relative to the collection's root: the folder of a store that is a file, so that both can
move together, else the folder from which the collection was made. What lies elsewhere is named by its
absolute path. Files that were handed in rather than found (an upload) are named relative to where they were
put for the moment, and their chunks say so: no later run takes them for files that are gone.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from dartboard.deadline import check
from dartboard.engine.chunk_writer import (
    BATCH,
    Batch,
    ChunkWriter,
    Encoder,
    known_documents,
    split,
    stored_chunking,
)
from dartboard.engine.engine import Engine
from dartboard.errors import ConfigError, DartboardError
from dartboard.ingest import (
    ChunkingConfig,
    Piece,
    Problem,
    ReadOptions,
    RowFields,
    SourceFile,
    hash_file,
    load_file,
    read_bytes,
    walk,
)
from dartboard.ingest.documents import digest
from dartboard.ingest.files import absolute, check_paths
from dartboard.stores import Collection
from dartboard.stores.filters import And, Equal, Not

_HELD = 20_000
"""Chunks of one file that are held in memory before the first is written."""

_KEPT_FOR_LATER = ("unreadable", "extra")
"""Problems that may pass: what is known of such a file stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: files looked at, and their bytes; of an unchanged file all count at once."""

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

    Args:
        engine: the collection, with the model and the retriever that belong to it.
        paths: a file, a folder, or several.
        chunking: how documents are split; None is as the collection does it, or the default for a new one.
        reading: limits, and the fields of rows.
        excludes: patterns of what to leave out, as in a ``.gitignore``.
        includes: patterns of which a file must match one.
        prune: remove the chunks of files below ``paths`` that are no longer there or are left out by
            ``excludes``; without it they are counted as ``gone``. With ``includes``, a file that is there is
            never pruned.
        uploaded_to: the folder above ``paths`` that files were put in for this run only: they are named
            relative to it, and nothing counts as gone.
        batch_size: chunks that are encoded and written together.
        encoder: makes the vectors, of several batches at a time where it can; None is the engine's model.
        listen: hears how far the run is, after every file and every batch.

    Returns:
        What became of the files, with the problems of those that could not be read.

    Raises:
        IngestError: a path is not there, or a pattern cannot be understood.
        ConfigError: no path, or another chunking than the collection's.

    Example::

        report = index_paths(engine, "docs", excludes=["drafts/"], prune=True)
        print(report.new, report.changed, report.unchanged)
    """
    places = [absolute(path) for path in check_paths(paths)]
    started = time.perf_counter()
    collection, chunking = _open_collection(engine, chunking)
    run = _IndexRun(engine, collection, chunking, reading or ReadOptions(), uploaded_to, listen)
    writer = ChunkWriter(engine, collection, encoder=encoder, batch_size=batch_size, written=run.written)
    run.index(places, writer, excludes=excludes, includes=includes, prune=prune)
    collection.prepare()
    run.report.seconds = time.perf_counter() - started
    return run.report


def _open_collection(engine: Engine, chunking: ChunkingConfig | None) -> tuple[Collection, ChunkingConfig]:
    """The collection, new or old; an old one keeps splitting as it did, for the retriever it has."""
    if not engine.exists:
        chunking = chunking or ChunkingConfig()
        return engine.create(settings={"chunking": chunking.to_json(), "root": str(Path.cwd())}), chunking
    collection = engine.collection
    engine.check_fields()
    engine.confirm_names()
    stored = stored_chunking(collection)
    if chunking is not None and stored is not None and chunking != stored:
        asked, present = (
            ", ".join(f"{name} {value}" for name, value in one.to_json().items())
            for one in (chunking, stored)
        )
        raise ConfigError(
            f"collection {engine.name!r} splits documents by {present}, not by {asked}: "
            "leave the chunking options out, or index into another collection"
        )
    collection.configure(collection.manifest.settings)  # a store that another process writes to says so now
    return collection, chunking or stored or ChunkingConfig()


class _IndexRun:
    """One run: what it reports, and how far it is."""

    def __init__(
        self,
        engine: Engine,
        collection: Collection,
        chunking: ChunkingConfig,
        reading: ReadOptions,
        uploaded_to: Path | None,
        listen: Listener,
    ) -> None:
        self.report = IndexReport()
        self._engine = engine
        self._collection = collection
        self._chunking = chunking
        self._reading = reading
        self._uploaded = uploaded_to is not None
        self._names = _Names(engine, uploaded_to)
        self._listen = listen
        # How rows are read, where somebody said so: files that were read otherwise count as changed.
        said = reading.fields != RowFields()
        self._read_as = json.dumps(asdict(reading.fields), sort_keys=True) if said else ""
        self._files = self._files_total = self._bytes_total = 0
        self._bytes = 0.0
        self._bytes_per_chunk: dict[str, float] = {}

    def index(
        self,
        places: Sequence[Path],
        writer: ChunkWriter,
        *,
        excludes: Sequence[str],
        includes: Sequence[str],
        prune: bool,
    ) -> None:
        """Write all that is new or changed below the places, then see to what is gone."""
        known, uploaded = known_documents(self._collection, self._read_as)
        files: dict[str, SourceFile] = {}
        for place in places:
            for entry in self._walk(place, excludes, includes):
                if isinstance(entry, Problem):
                    self.report.problems.append(entry)
                else:
                    files.setdefault(entry.source, entry)
        gone = [] if self._uploaded else self._gone(places, files, set(known) - uploaded)
        sizes = {source: file.size for source, file in files.items()}
        self._files_total, self._bytes_total = len(files), sum(sizes.values())
        self._tell()
        try:
            for source, file in files.items():
                self._index_file(file, sizes[source], known.get(source), writer)
                self._tell()
            writer.finish()
        except (KeyboardInterrupt, DartboardError):
            writer.rescue()
            raise
        self._tell()
        if includes:
            gone = [source for source in gone if not os.path.lexists(self._names.path(source))]
        if not prune:
            self.report.gone = len(gone)
            return
        for source in gone:
            self._collection.delete(where=Equal("source", source))
        self.report.deleted = len(gone)

    def _walk(
        self, place: Path, excludes: Sequence[str], includes: Sequence[str]
    ) -> Iterator[SourceFile | Problem]:
        """The files below a place under the names that they have in the collection."""
        base = place if place.is_dir() else place.parent
        for entry in walk([place], root=base, excludes=excludes, includes=includes):
            check()
            path = absolute(entry.path if isinstance(entry, SourceFile) else base / entry.source)
            if self._names.is_store(path):
                continue
            source = self._names.of(path)
            shown = source.encode("utf-8", "backslashreplace").decode()
            if shown == source:
                yield replace(entry, source=source)
            else:  # names of files are bytes, and no store could keep this one
                yield Problem(shown, "has a name that is not UTF-8: rename it, and index again", "name")

    def _gone(self, places: Sequence[Path], files: Mapping[str, SourceFile], known: set[str]) -> list[str]:
        """Sources below the places that are no longer there.

        A folder that cannot be read right now is not gone: what is known of anything below it stays.
        """
        problems = [problem for problem in self.report.problems if problem.code == "unreadable"]
        unsure = {self._names.path(problem.source) for problem in problems}
        gone = []
        for source in sorted(known - files.keys()):
            path = self._names.path(source)
            above = {path, *path.parents}
            if not above.isdisjoint(places) and above.isdisjoint(unsure):
                gone.append(source)
        return gone

    def _index_file(self, file: SourceFile, size: int, known: str | None, writer: ChunkWriter) -> None:
        """Index one file, which is read from disk once. ``known`` is the hash that the collection has of it.

        Every piece says how many there are; where they are very many, they are not held in memory until that
        is known, but counted first and made once more.
        """
        self._files += 1
        data = load_file(file, self._reading)
        if known and _hash(file, data) == known:
            self.report.unchanged += 1
            self._bytes += size
            return
        problems: list[Problem] = []
        held: list[Piece] = []
        count = 0
        for piece in self._pieces(file, data, problems, self.report.notes):
            count += 1
            if count <= _HELD:
                held.append(piece)
        self.report.problems += problems
        self.report.files[file.source] = count
        replaced = known is not None
        self.report.new += bool(count and not replaced)
        self.report.changed += bool(count and replaced)
        if not count:
            self._bytes += size
        self._bytes_per_chunk[file.source] = size / max(1, count)
        for piece in held if count <= _HELD else self._pieces(file, data, [], []):
            piece.metadata["pieces"] = count
            writer.add(piece)
        if replaced and held:
            first = held[0].metadata  # what all chunks of the file have in common, and older ones have not
            present = [Equal(name, first[name]) for name in ("document_hash", "read_as") if name in first]
            old = And((Equal("source", file.source), Not(And(tuple(present)))))
            writer.then(partial(self._collection.delete, where=old))
        elif replaced and not any(problem.code in _KEPT_FOR_LATER for problem in problems):
            writer.then(partial(self._collection.delete, where=Equal("source", file.source)))
            self.report.emptied += 1

    def _pieces(
        self, file: SourceFile, data: bytes | Problem, problems: list[Problem], notes: list[str]
    ) -> Iterator[Piece]:
        """The pieces of a file as they are made, no two of one id: rows of one key may say the same."""
        seen: set[int] = set()  # hashes of ids: there may be millions
        documents = [data] if isinstance(data, Problem) else read_bytes(data, file.source, self._reading)
        for document in documents:
            if isinstance(document, Problem):
                problems.append(document)
                continue
            notes += [f"{document.source}: {note}" for note in document.notes]
            for piece in split(document, self._chunking, self._engine.model):
                check()
                name = piece.id
                while (hashed := hash(name)) in seen:
                    name += "~"
                seen.add(hashed)
                if self._read_as and piece.metadata["kind"] == "rows":
                    piece.metadata["read_as"] = self._read_as
                if self._uploaded:
                    piece.metadata["uploaded"] = True
                yield piece if name == piece.id else replace(piece, id=name)

    def written(self, batch: Batch) -> None:
        """Count a batch that is in the collection now."""
        self.report.chunks += len(batch.pieces)
        self.report.encoded += len(batch.missing)
        self._bytes += sum(self._bytes_per_chunk[piece.metadata["source"]] for piece in batch.pieces)
        self._tell()

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


class _Names:
    """What files are called in a collection."""

    def __init__(self, engine: Engine, uploaded_to: Path | None) -> None:
        url = engine.store.url
        self._store = None if "://" in url and not url.startswith("file:") else absolute(Path(url))
        if uploaded_to is not None:
            self._root = absolute(uploaded_to)
        elif self._store is not None:
            self._root = self._store.parent
        else:
            self._root = Path(engine.collection.manifest.settings.get("root", Path.cwd()))

    def of(self, path: Path) -> str:
        """The source of a file or folder."""
        return (path.relative_to(self._root) if path.is_relative_to(self._root) else path).as_posix()

    def path(self, source: str) -> Path:
        """Where a source lies."""
        return self._root / source

    def is_store(self, path: Path) -> bool:
        """Whether a file belongs to the store itself, which may lie among the documents."""
        if self._store is None:
            return False
        name = self._store.name
        own = {name, *(f"{name}{end}" for end in ("-wal", "-shm", "-journal", ".lock", ".derived"))}
        return any(
            part.parent == self._store.parent and (part.name in own or part.name.startswith(f"{name}.new-"))
            for part in (path, *path.parents)
        )


def _hash(file: SourceFile, data: bytes | Problem) -> str | None:
    """The hash of a file as loaded; one that is too large to be loaded now may still be what it was."""
    if isinstance(data, bytes):
        return digest(data)
    try:
        return hash_file(file.path) if data.code == "size" else None
    except OSError:
        return None
