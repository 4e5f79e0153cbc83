"""Clean and split passages into the pieces that are embedded, in one file, one pass and little memory.

A passage that is short enough is one piece under its own id. A longer one becomes ``id``, ``id#2``,
``id#3`` …, each with ``base_id`` naming the passage, so that a required passage counts as found whichever
piece of it is found.
"""

import hashlib
import json
import logging
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.progress import Listener
from dartboard.datasets.rows import json_lines
from dartboard.datasets.splitting import split
from dartboard.datasets.text import Passage
from dartboard.errors import DatasetError
from dartboard.ingest import clean as clean_text

logger = logging.getLogger(__name__)

_TOLD_EVERY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What is done to a passage before it is embedded."""

    clean: bool = True
    max_words: int | None = None

    def pieces(self, passage: Passage) -> list[Passage]:
        """The passage in pieces, none where it has no text; its title stands in for a missing text."""
        tidy = clean_text if self.clean else str.strip
        title = tidy(passage.title)
        text = tidy(passage.text) or title
        if not text:
            return []
        parts = split(text, self.max_words) if self.max_words is not None else [text]
        return [
            Passage(
                passage.id if number == 1 else f"{passage.id}#{number}",
                part,
                title,
                {**passage.metadata, "title": title, "base_id": passage.id},
            )
            for number, part in enumerate(parts, start=1)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceFile:
    """A file of pieces: how many, a hash of all of them, and the pieces of the passages asked about."""

    path: Path
    count: int
    digest: str
    pieces_of: dict[str, list[str]]

    def __iter__(self) -> Iterator[Passage]:
        for record in json_lines(self.path):
            row = record.fields
            yield Passage(row["id"], row["text"], row["metadata"]["title"], row["metadata"])


def write_pieces(
    passages: Iterable[Passage], path: Path, *, steps: Steps, asked: set[str], listen: Listener
) -> PieceFile:
    """Write the pieces of all passages to ``path``; ``asked`` are the passages that ground truth names."""
    digest = hashlib.sha256()
    pieces_of: dict[str, list[str]] = {}
    ids = array("q")
    empty = 0
    with path.open("wb") as stream:
        for number, passage in enumerate(passages, start=1):
            pieces = steps.pieces(passage)
            empty += not pieces
            for piece in pieces:
                line = _as_line(piece)
                digest.update(line)
                stream.write(line)
                ids.append(hash(piece.id))
            if pieces and passage.id in asked:
                pieces_of[passage.id] = [piece.id for piece in pieces]
            if number % _TOLD_EVERY == 0:
                listen("Cleaning passages", number, None)
    if empty:
        logger.warning("%d passages have neither text nor title and were left out", empty)
    file = PieceFile(path=path, count=len(ids), digest=digest.hexdigest(), pieces_of=pieces_of)
    hashes = np.frombuffer(ids, dtype=np.int64) if ids else np.empty(0, np.int64)
    if (repeated := _repeated(file, hashes)) is not None:
        raise _occurs_twice(repeated, passages, steps)
    return file


def embedded_text(text: str, title: str = "") -> str:
    """What a retriever reads of a chunk: its title, where it has one, and its text, as BEIR does it."""
    return text if title in ("", text) else f"{title} {text}"


def _as_line(piece: Passage) -> bytes:
    row: dict[str, Any] = {"id": piece.id, "text": piece.text, "metadata": dict(piece.metadata)}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _repeated(file: PieceFile, hashes: np.ndarray[Any, np.dtype[np.int64]]) -> str | None:
    """The first id that occurs a second time; equal hashes, eight bytes a passage, say where to look."""
    values, counts = np.unique(hashes, return_counts=True)
    suspects = set(values[counts > 1].tolist())
    seen: set[str] = set()
    for piece in file if suspects else ():
        if hash(piece.id) in suspects:
            if piece.id in seen:
                return piece.id
            seen.add(piece.id)
    return None


def _occurs_twice(piece_id: str, passages: Iterable[Passage], steps: Steps) -> DatasetError:
    """The complaint, with both lines where the passages were read from a file."""
    said = f"passage id {piece_id!r} occurs twice"
    having = (one for one in passages if any(piece.id == piece_id for piece in steps.pieces(one)))
    places = [one.place for one in islice(having, 2) if one.place is not None]
    if len(places) < 2:
        return DatasetError(f"{said}: ids must be distinct")
    return places[1].error(f"{said}, first at {places[0].short()}: ids must be distinct")
