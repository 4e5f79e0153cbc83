"""What the search for duplicates knows of every chunk: no texts, so that 100,000 chunks fit into memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.ingest import Problem, chunk, read_path
from dartboard.ingest.files import check_paths
from dartboard.near_duplicates import VERSION, fingerprint
from dartboard.plain_text import heading_of, shortened
from dartboard.stores.base import DEFAULT_COLLECTION, Collection
from dartboard.stores.manifest import Manifest
from dartboard.stores.memory import MemoryStore
from dartboard.stores.records import FINGERPRINT, Record
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

CAUSES = ("source", "version")
"""Metadata fields by which duplicates are explained, where chunks have them."""
DATES = ("modified", "date", "version")
"""Metadata fields that say which of several copies is the newest, the first that any chunk has."""
LONGEST_TITLE = 120
"""Characters of a title; the beginning of the text where a chunk has none."""

Listener = Callable[[str, int, int], None]
"""Told the step, how much of it is done, and of how much."""


def silent(step: str, done: int, total: int) -> None:
    """Listens to nothing."""


@dataclass(slots=True)
class Corpus:
    """Chunks in the order of their ids. Lists run along the chunks.

    ``digests`` are hashes of the texts, ``lengths`` their characters. ``vectors``, ``(n, d)`` float32 of
    length 1, are None if only texts are compared. ``values`` has the metadata of the wanted fields.
    """

    fields: Sequence[str] = ()
    ids: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    fingerprints: list[bytes] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=dict)
    vectors: FloatArray | None = None
    known_fields: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, id: str, text: str, metadata: Mapping[str, Any], known: bytes | None = None) -> None:
        """Add a chunk; ``known`` is its fingerprint."""
        self.ids.append(id)
        self.titles.append(shortened(heading_of(metadata) or text, LONGEST_TITLE))
        self.digests.append(digest(text))
        self.lengths.append(len(text))
        usable = known is not None and known.startswith(VERSION)
        self.fingerprints.append(known if known is not None and usable else fingerprint(text))
        self.known_fields.update(metadata)
        for name in {*CAUSES, *DATES, *self.fields}:
            self.values.setdefault(name, []).append(metadata.get(name))

    def check(self) -> None:
        """Raise if there is nothing to compare, or no chunk has a field that was asked for."""
        if not self.ids:
            raise InvalidInputError("there are no chunks: index something first (dartboard index PATH)")
        if not any(len(one) > len(VERSION) for one in self.fingerprints):
            raise InvalidInputError(
                f"none of the {len(self):,} chunks has a word in its text, and duplicates are found by "
                "words: index the documents with their texts"
            )
        for name in self.fields:
            if name not in self.known_fields:
                there = ", ".join(sorted(self.known_fields)) or "none"
                raise InvalidInputError(
                    f"no chunk has the metadata field {name!r}: there are {there}", field="fields"
                )


def digest(text: str) -> bytes:
    """A hash of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def read_collection(
    collection: Collection, *, fields: Sequence[str] = (), vectors: bool = True, listen: Listener = silent
) -> Corpus:
    """The chunks of a collection, batch by batch.

    Raises:
        InvalidInputError: there are no chunks, no words, or a field that no chunk has.
    """
    corpus, parts = Corpus(fields), []
    with collection.read_snapshot() as view:
        total = view.count()
        for batch in view.iterate():
            check()
            for record in batch:
                corpus.add(record.id, record.text, record.metadata, record.blobs.get(FINGERPRINT))
            if vectors:
                parts.append(unit_rows(np.stack([record.embedding for record in batch])))
            listen("reading", len(corpus), total)
    corpus.check()
    corpus.vectors = np.concatenate(parts) if vectors else None
    return corpus


def collect_texts(
    store: MemoryStore, paths: str | Path | Sequence[str | Path], *, listen: Listener = silent
) -> list[Problem]:
    """Chunk files and folders into memory, with vectors that mean nothing; returns what was left out."""
    texts = store.create(DEFAULT_COLLECTION, Manifest(model="none", dimension=1))
    problems: list[Problem] = []
    for path in check_paths(paths):
        for document in read_path(path):
            check()
            if isinstance(document, Problem):
                problems.append(document)
                continue
            for piece in chunk(document):
                id = piece.id
                while texts.get([id]):
                    id += "~"
                texts.upsert([Record(id, piece.text, np.ones(1), dict(piece.metadata))])
            listen("reading", texts.count(), 0)
    return problems
