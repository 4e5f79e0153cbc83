"""Index files and folders: only new or changed files are read, split, encoded and written.

The steps, from top to bottom of this file: find the files below the paths (:func:`walk`); skip a file whose
hash the collection has; read any other into documents (``read_bytes``), clean them and split them into pieces
(``split``); :class:`ChunkWriter` encodes the pieces in batches and upserts them.

Every chunk carries the hash of its file, and the last one the number of the file's chunks. A file counts as
indexed when as many exist with its current hash. So an interrupted run continues by itself: finished files
are skipped, and unfinished ones are repeated. To replace a changed file, its new chunks are written before
the old ones are deleted, so that a search always finds the file; without text, its chunks are deleted.
Chunks with unchanged text keep their vectors.

Sources are relative to the collection's root: the folder of a file-based store, so that both can move
together, otherwise the folder where the collection was created. Files elsewhere have absolute paths. Uploaded
files are relative to their temporary folder, and their chunks are marked: no later run treats them as deleted
files.
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
    chunking_for,
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

_PROBE = "Can the model encode?"
_KEPT_FOR_LATER = ("unreadable", "extra")
"""Temporary problems: the chunks of such a file are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a run: processed files and bytes; an unchanged file counts at once."""

    files: int
    files_total: int
    chunks: int
    bytes: int
    bytes_total: int


Listener = Callable[[Progress], None]


@dataclass(slots=True, kw_only=True)
class IndexReport:
    """Result of a run, in files and chunks. ``encoded`` are chunks that the model encoded.

    ``gone`` are indexed files that no longer exist, and ``emptied`` those that lost all their text. ``files``
    are those that were read, with their numbers of chunks.
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
    """Index files and folders into the engine's collection, which is created if necessary.

    Args:
        engine: The collection with its model and retriever.
        paths: A file, a folder, or several.
        chunking: How documents are split; None uses the collection's settings, or the default for a new one.
        reading: Limits, and the fields of rows.
        excludes: Patterns of files to skip, as in a ``.gitignore``.
        includes: Patterns; a file must match at least one.
        prune: Delete the chunks of files below ``paths`` that no longer exist or that ``excludes`` matches;
            without it they are counted as ``gone``. With ``includes``, an existing file is never pruned.
        uploaded_to: The temporary folder above ``paths`` with uploaded files: sources are relative to it, and
            no file counts as gone.
        batch_size: Chunks that are encoded and written at once.
        encoder: Makes the vectors, possibly of several batches at a time; None is the engine's model.
        listen: Called with the progress after every file and every batch.

    Returns:
        The numbers of files, with the problems of those that could not be read.

    Raises:
        IngestError: a path does not exist, or a pattern is not valid.
        ConfigError: there is no path, or the chunking differs from the collection's.

    Example::

        report = index_paths(engine, "docs", excludes=["drafts/"], prune=True)
        print(report.new, report.changed, report.unchanged)
    """
    places = [absolute(path) for path in check_paths(paths)]
    started = time.perf_counter()
    collection, chunking = _open_collection(engine, chunking, probe=encoder is None)
    run = _IndexRun(engine, collection, chunking, reading or ReadOptions(), uploaded_to, listen)
    writer = ChunkWriter(engine, collection, encoder=encoder, batch_size=batch_size, written=run.written)
    run.index(places, writer, excludes=excludes, includes=includes, prune=prune)
    collection.prepare()
    run.report.seconds = time.perf_counter() - started
    return run.report


def _open_collection(
    engine: Engine, chunking: ChunkingConfig | None, *, probe: bool
) -> tuple[Collection, ChunkingConfig]:
    """The new or existing collection; an existing one keeps its chunking and must fit the retriever."""
    if not engine.exists:
        chunking = chunking_for(engine.model, chunking)
        if probe:  # a model that cannot be reached must not leave an empty index
            engine.model.encode_documents([_PROBE])
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
    collection.configure({})  # raises now if another process is writing
    return collection, chunking_for(engine.model, chunking or stored or ChunkingConfig())


class _IndexRun:
    """One run: its report and progress."""

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
        # The fields of rows, if given: files that were read with other fields count as changed.
        said = reading.fields != RowFields()
        self._read_as = json.dumps(asdict(reading.fields), sort_keys=True) if said else ""
        self._files = self._files_total = self._bytes = self._bytes_total = 0
        self._left: dict[str, int] = {}  # bytes of a file whose chunks are not written yet

    def index(
        self,
        places: Sequence[Path],
        writer: ChunkWriter,
        *,
        excludes: Sequence[str],
        includes: Sequence[str],
        prune: bool,
    ) -> None:
        """Write everything new or changed below the places, then handle deleted files."""
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
        """The files below a place with their sources in the collection."""
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
            else:  # file names are bytes, and no store can keep this one
                yield Problem(shown, "has a name that is not UTF-8: rename it, and index again", "name")

    def _gone(self, places: Sequence[Path], files: Mapping[str, SourceFile], known: set[str]) -> list[str]:
        """Sources below the places that no longer exist.

        A folder that cannot be read now does not count as deleted: the chunks below it are kept.
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
        """Index one file, which is read from disk once. ``known`` is its hash in the collection."""
        self._files += 1
        data = load_file(file, self._reading)
        if known and _hash(file, data) == known:
            self.report.unchanged += 1
            self._bytes += size
            return
        problems: list[Problem] = []
        replaced, count = known is not None, 0
        self._left[file.source] = size
        last: Piece | None = None
        for piece in self._pieces(file, data, problems, self.report.notes):
            if last is not None:
                writer.add(last)
            count += 1
            piece.metadata["pieces"] = 0
            last = piece
        self.report.problems += problems
        self.report.files[file.source] = count
        if last is None:
            self._bytes += size
            if replaced and not any(problem.code in _KEPT_FOR_LATER for problem in problems):
                writer.then(partial(self._collection.delete, where=Equal("source", file.source)))
                self.report.emptied += 1
            return
        last.metadata["pieces"] = count
        writer.add(last)
        self.report.new += not replaced
        self.report.changed += replaced
        if replaced:  # these are common to all chunks of the file; chunks of older versions differ
            kept = [name for name in ("document_hash", "read_as") if name in last.metadata]
            present = [Equal(name, last.metadata[name]) for name in kept]
            old = And((Equal("source", file.source), Not(And(tuple(present)))))
            writer.then(partial(self._collection.delete, where=old))

    def _pieces(
        self, file: SourceFile, data: bytes | Problem, problems: list[Problem], notes: list[str]
    ) -> Iterator[Piece]:
        """The pieces of a file with unique ids, made lazily: rows with one key may have equal texts."""
        seen: set[int] = set()  # hashes of ids, because there may be millions
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
        """Count a batch that was written."""
        self.report.chunks += len(batch.pieces)
        self.report.encoded += len(batch.missing)
        for piece in batch.pieces:
            left = self._left[piece.metadata["source"]]
            done = left if piece.metadata["pieces"] else min(left, len(piece.text))
            self._left[piece.metadata["source"]] = left - done
            self._bytes += done
        self._tell()

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


class _Names:
    """Maps files to sources of a collection."""

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
        """The path of a source."""
        return self._root / source

    def is_store(self, path: Path) -> bool:
        """Whether a file belongs to the store itself, which may be among the documents."""
        if self._store is None:
            return False
        name = self._store.name
        own = {name, *(f"{name}{end}" for end in ("-wal", "-shm", "-journal", ".lock", ".derived"))}
        return any(
            part.parent == self._store.parent and (part.name in own or part.name.startswith(f"{name}.new-"))
            for part in (path, *path.parents)
        )


def _hash(file: SourceFile, data: bytes | Problem) -> str | None:
    """The hash of a loaded file; one that is now too large is hashed from disk, as it may be unchanged."""
    if isinstance(data, bytes):
        return digest(data)
    try:
        return hash_file(file.path) if data.code == "size" else None
    except OSError:
        return None
