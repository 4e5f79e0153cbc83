"""From text to a data set with vectors: clean, split, embed, cache on disk.

:mod:`dartboard.ingest` cleans and splits. The results are cached in one folder under ``cache_dir``, whose
name depends on the data set, its content and the model. A killed run resumes where it stopped; nothing is
embedded twice. Passages are processed one at a time, so the corpus may be larger than memory until
:meth:`PreparedDataset.dataset` loads all of it.

A short passage is one chunk with the passage's id. A longer one becomes ``id``, ``id#2``, ``id#3`` …, each
with the passage as ``base_id``, so that any of its chunks counts as the required passage.
"""

import hashlib
import json
import logging
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.records import json_lines
from dartboard.datasets.text_dataset import (
    Passage,
    TextDataset,
    embedded_text,
    named_passages,
    reachable_queries,
    relevant_ids,
    truth_in_chunks,
)
from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.cache import default_cache_path
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, DatasetError
from dartboard.file_lock import file_lock
from dartboard.ingest import ChunkingConfig, Document, chunk
from dartboard.ingest import clean as clean_text
from dartboard.types import Chunk, Dataset

FORMAT = 2

Listener = Callable[[str, int, int | None], None]
"""Called with ``(step, done, total)``; ``total`` is None while it is unknown."""

logger = logging.getLogger(__name__)

_CHUNKS = "pieces.jsonl"
_REPORT_EVERY = 1000


def prepare(
    text_dataset: TextDataset,
    model: EmbeddingModel | None = None,
    *,
    cache_dir: str | Path | None = None,
    progress: Listener | None = None,
    clean: bool = True,
    max_words: int | None = None,
    batch_size: int = 32,
) -> Dataset:
    """A data set with vectors, ready for evaluation; see :func:`prepare_on_disk` for the parameters.

    Example::

        dataset = prepare(load_beir("data/scifact"))
    """
    return prepare_on_disk(
        text_dataset,
        model,
        cache_dir=cache_dir,
        progress=progress,
        clean=clean,
        max_words=max_words,
        batch_size=batch_size,
    ).dataset()


def prepare_on_disk(
    text_dataset: TextDataset,
    model: EmbeddingModel | None = None,
    *,
    cache_dir: str | Path | None = None,
    progress: Listener | None = None,
    clean: bool = True,
    max_words: int | None = None,
    batch_size: int = 32,
) -> "PreparedDataset":
    """Run all steps and cache the results on disk; memory use does not grow with the corpus.

    Args:
        text_dataset: The data set to prepare.
        model: The embedding model; None is the default model.
        cache_dir: The folder for results; by default ``datasets`` in ``DARTBOARD_CACHE``, otherwise in the
            user's cache folder.
        progress: Called with ``(step, done, total)``: see :func:`dartboard.datasets.progress_bar`.
        clean: Whether to normalise white space and remove invisible characters.
        max_words: Longer passages are split between sentences; None splits nothing, which keeps the passage
            ids of the data set.
        batch_size: How many passages are encoded at once.

    Raises:
        DatasetError: no passage has text, or two have the same id.
    """
    if max_words is not None and max_words < 1:
        raise ConfigError(f"max_words must be >= 1, got {max_words}")
    if model is None:
        from dartboard.embeddings import default_model

        model = default_model()
    listen = progress or ignore
    root = default_cache_path().parent / "datasets" if cache_dir is None else Path(cache_dir)
    root.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", text_dataset.name).strip(".") or "unnamed"
    lock, part = root / f"{name}.lock", root / f"{name}.part"
    with file_lock(lock):
        try:
            split = partial(_split, clean=clean, max_words=max_words)
            count, digest, chunk_ids = _write_chunks(text_dataset, part, split, listen)
            if not count:
                raise DatasetError(
                    f"data set {text_dataset.name!r} has no passage with text: nothing to embed"
                )
        except DatasetError:
            part.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)
            raise
        key = _digest(str(FORMAT), digest, model.fingerprint, str(model.embedding_dim))
        folder = root / f"{name}-{key}"
        folder.mkdir(exist_ok=True)
        part.replace(folder / _CHUNKS)  # replaces the file of an earlier run, with the same content
        manifest = {
            "format": FORMAT,
            "name": text_dataset.name,
            "pieces": count,
            "sha256": digest,
            "steps": {"clean": clean, "max_words": max_words},
            "model": {"name": model.name, "fingerprint": model.fingerprint, "dim": model.embedding_dim},
        }
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        query_ids = reachable_queries(text_dataset, chunk_ids)
        queries = [text_dataset.queries[query_id] for query_id in query_ids]
        texts = (embedded_text(one.text, one.title) for one in _read_chunks(folder / _CHUNKS))
        dim = model.embedding_dim
        return PreparedDataset(
            text=text_dataset,
            folder=folder,
            chunk_ids=chunk_ids,
            vectors=_embed(
                folder / "passages.f32",
                (count, dim),
                texts,
                model.encode_documents,
                batch_size,
                lambda done: listen("Embedding passages", done, count),
            ),
            query_ids=query_ids,
            query_vectors=_embed(
                folder / f"queries-{_digest(*queries)}.f32",
                (len(queries), dim),
                queries,
                model.encode_queries,
                batch_size,
                lambda done: listen("Embedding queries", done, len(queries)),
            ),
            model_name=model.name,
            model_fingerprint=model.fingerprint,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDataset:
    """A data set on disk with memory-mapped vectors; the corpus is not in memory yet.

    ``folder`` is the cache folder, ``chunk_ids`` are the chunks of the passages in the ground truth, and
    ``vectors`` is the ``(n, d)`` matrix of :meth:`chunks` in order.
    """

    text: TextDataset
    folder: Path
    chunk_ids: dict[str, list[str]]
    vectors: Vectors
    query_ids: list[str]
    query_vectors: Vectors
    model_name: str
    model_fingerprint: str

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the chunks, in the order of ``vectors``."""
        for one, vector in zip(_read_chunks(self.folder / _CHUNKS), self.vectors, strict=True):
            yield Chunk(one.id, one.text, vector, dict(one.metadata))

    def dataset(self) -> Dataset:
        """Load all of it into memory, except for the vectors, which stay mapped."""
        truth = truth_in_chunks(self.text, self.query_ids, self.chunk_ids)
        metadata: dict[str, Any] = {"type": "real"} | self.text.metadata | truth
        metadata["query_embeddings"] = self.query_vectors
        metadata["model"] = {"name": self.model_name, "fingerprint": self.model_fingerprint}
        metadata["prepared"] = str(self.folder)
        return Dataset(
            name=self.text.name,
            chunks=list(self.chunks()),
            queries=[self.text.queries[query_id] for query_id in self.query_ids],
            ground_truth=relevant_ids(truth["qrels"], metadata.get("least_grade", 1)),
            metadata=metadata,
            query_ids=self.query_ids,
        )


def ignore(step: str, done: int, total: int | None) -> None:
    """A listener that does nothing."""


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """A listener that draws one bar per step on stderr; silent if stderr is not a terminal.

    Example::

        with progress_bar() as listen:
            dataset = load_dataset("scifact", progress=listen)
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks = {}

        def listen(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            bar.update(tasks[step], completed=done, total=total)

        yield listen


def _split(passage: Passage, *, clean: bool, max_words: int | None) -> list[Passage]:
    """The chunks of a passage; none without text. The title replaces a missing text."""
    tidy = clean_text if clean else str.strip
    title = tidy(passage.title)
    text = tidy(passage.text) or title
    if not text:
        return []
    parts = [text]
    if max_words is not None and _count_words(text) > max_words:
        document = Document(source="", text=text, kind="text", title="")
        config = ChunkingConfig(method="sentences", size=max_words, overlap=0)
        parts = [part.text for part in chunk(document, config, count_tokens=_count_words)]
    metadata = {**passage.metadata, "title": title, "base_id": passage.id}
    return [
        Passage(passage.id if number == 1 else f"{passage.id}#{number}", part, title, metadata)
        for number, part in enumerate(parts, start=1)
    ]


def _count_words(text: str) -> int:
    return len(text.split())


def _write_chunks(
    text: TextDataset, path: Path, split: Callable[[Passage], list[Passage]], listen: Listener
) -> tuple[int, str, dict[str, list[str]]]:
    """Write all chunks; returns their number, their hash, and the chunks of passages in the ground truth."""
    asked = named_passages(text)
    digest = hashlib.sha256()
    chunk_ids: dict[str, list[str]] = {}
    hashes = array("q")
    empty = 0
    with path.open("wb") as stream:
        for number, passage in enumerate(text.passages, start=1):
            chunks = split(passage)
            empty += not chunks
            for one in chunks:
                row = {"id": one.id, "text": one.text, "metadata": dict(one.metadata)}
                line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
                digest.update(line)
                stream.write(line)
                hashes.append(hash(one.id))
            if chunks and passage.id in asked:
                chunk_ids[passage.id] = [one.id for one in chunks]
            if number % _REPORT_EVERY == 0:
                listen("Cleaning passages", number, None)
    if empty:
        logger.warning("%d passages have neither text nor title and were skipped", empty)
    # Stores eight bytes per chunk instead of its id; ids are compared only if two hashes are equal.
    values, counts = np.unique(np.asarray(hashes), return_counts=True)
    if suspects := set(values[counts > 1].tolist()):
        seen: set[str] = set()
        for one in _read_chunks(path):
            if one.id in seen:
                raise _repeated_id(one.id, text.passages, split)
            if hash(one.id) in suspects:
                seen.add(one.id)
    return len(hashes), digest.hexdigest(), chunk_ids


def _read_chunks(path: Path) -> Iterator[Passage]:
    for record in json_lines(path):
        row = record.fields
        yield Passage(row["id"], row["text"], row["metadata"]["title"], row["metadata"])


def _repeated_id(
    chunk_id: str, passages: Iterable[Passage], split: Callable[[Passage], list[Passage]]
) -> DatasetError:
    """The error for a duplicate id, with both lines if the passages come from a file."""
    problem = f"passage id {chunk_id!r} occurs twice"
    having = (one for one in passages if any(part.id == chunk_id for part in split(one)))
    places = [one.place for one in islice(having, 2) if one.place is not None]
    if len(places) < 2:
        return DatasetError(f"{problem}: ids must be unique")
    return places[1].error(f"{problem}, first at {places[0].short()}: ids must be unique")


def _embed(
    path: Path,
    shape: tuple[int, int],
    texts: Iterable[str],
    encode: Callable[..., Vectors],
    batch_size: int,
    hear: Callable[[int], None],
) -> Vectors:
    """The vectors of all texts, ``shape``, memory-mapped; those of an earlier run are not encoded again.

    The file has its full size from the start, and a counter beside it says how many rows are finished: a
    killed run loses at most one batch.
    """
    counter = path.with_suffix(".count")
    if not shape[0]:
        return np.empty(shape, dtype=np.float32)
    size = shape[0] * shape[1] * 4
    known = path.exists() and path.stat().st_size == size and counter.exists()
    done = int(counter.read_text()) if known else 0
    hear(done)
    if done < shape[0]:
        rows = np.memmap(path, dtype="<f4", mode="r+" if known else "w+", shape=shape)
        waiting = islice(iter(texts), done, None)
        while some := list(islice(waiting, batch_size)):
            rows[done : done + len(some)] = encode(some, batch_size=batch_size)
            rows.flush()
            done += len(some)
            counter.with_suffix(".new").write_text(f"{done}\n")
            counter.with_suffix(".new").replace(counter)
            hear(done)
    return np.asarray(np.memmap(path, dtype="<f4", mode="r", shape=shape))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
