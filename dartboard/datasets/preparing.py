"""From text to a data set with vectors: clean, split, embed, keep on disk.

Everything is kept in one folder under ``cache_dir``, named after the data set, its content and the model:
change one of them and another folder is used. A run that was killed goes on where it stopped; what was
embedded is not embedded again. Passages pass through one at a time, so the corpus may be larger than
memory until :meth:`PreparedDataset.dataset` is asked for all of it.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from dartboard.datasets.locking import locked
from dartboard.datasets.pieces import PieceFile, Steps, embedded_text, write_pieces
from dartboard.datasets.progress import Listener, ignore
from dartboard.datasets.text import TextDataset
from dartboard.datasets.truth import named_passages, reachable_queries, relevant_ids, truth_of
from dartboard.datasets.vector_rows import VectorRows
from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import DatasetError
from dartboard.types import Chunk, Dataset

FORMAT = 1
_BATCHES_A_BLOCK = 4
"""A kill loses one block at most; each block is one write that waits for the disk."""

Encode = Callable[..., Vectors]


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
    """A data set with vectors, ready for evaluation; see :func:`prepare_on_disk` for the parameters."""
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
    """Do every step and keep the results on disk, in memory that does not grow with the corpus.

    ``model`` is the default model unless given; ``cache_dir`` the user's cache folder. ``progress`` hears
    ``(step, done, total)``: see :func:`dartboard.datasets.progress_bar`. Passages of more than
    ``max_words`` words are split; None splits nothing, so that passage ids stay as the data set has them.
    """
    if model is None:
        from dartboard.embeddings import default_model

        model = default_model()
    listen = progress or ignore
    root = Path(cache_dir) if cache_dir is not None else default_cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    slug = _slug(text_dataset.name)
    with locked(root / f"{slug}.lock"):
        steps = Steps(clean=clean, max_words=max_words)
        written = write_pieces(
            text_dataset.passages,
            root / f"{slug}.part",
            steps=steps,
            asked=named_passages(text_dataset),
            listen=listen,
        )
        if not written.count:
            raise DatasetError(f"data set {text_dataset.name!r} has no passage with text: nothing to embed")
        pieces = _settle(written, root / f"{slug}-{_key(written.digest, model)}")
        _write_manifest(pieces, text_dataset.name, model, steps)
        return _embed(text_dataset, pieces, model, batch_size, listen)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDataset:
    """A data set on disk with its vectors mapped: nothing of the corpus is in memory yet."""

    text: TextDataset
    pieces: PieceFile
    vectors: Vectors
    query_ids: list[str]
    query_vectors: Vectors
    model_name: str
    model_fingerprint: str

    @property
    def folder(self) -> Path:
        """Where everything is kept."""
        return self.pieces.path.parent

    def chunks(self) -> Iterator[Chunk]:
        """The chunks one by one, in the order of ``vectors``."""
        for piece, vector in zip(self.pieces, self.vectors, strict=True):
            yield Chunk(piece.id, piece.text, vector, dict(piece.metadata))

    def dataset(self) -> Dataset:
        """All of it in memory, but for the vectors, which stay mapped."""
        truth = truth_of(self.text, self.query_ids, self.pieces.pieces_of)
        metadata: dict[str, Any] = {"type": "real"} | self.text.metadata | truth
        metadata["query_embeddings"] = self.query_vectors
        metadata["model"] = {"name": self.model_name, "fingerprint": self.model_fingerprint}
        metadata["prepared"] = str(self.folder)
        return Dataset(
            name=self.text.name,
            chunks=list(self.chunks()),
            queries=[self.text.queries[query_id] for query_id in self.query_ids],
            ground_truth=relevant_ids(truth["qrels"]),
            metadata=metadata,
            query_ids=self.query_ids,
        )


def default_cache_dir() -> Path:
    """``datasets`` in the folder ``DARTBOARD_CACHE`` names, else in the user's cache folder."""
    from dartboard.embeddings.cache import default_cache_path

    return default_cache_path().parent / "datasets"


def _settle(written: PieceFile, folder: Path) -> PieceFile:
    """Move the pieces into their folder, over those of an earlier run, which are the same."""
    folder.mkdir(exist_ok=True)
    path = folder / "pieces.jsonl"
    written.path.replace(path)
    return PieceFile(path=path, count=written.count, digest=written.digest, pieces_of=written.pieces_of)


def _embed(
    text: TextDataset, pieces: PieceFile, model: EmbeddingModel, batch_size: int, listen: Listener
) -> PreparedDataset:
    folder = pieces.path.parent
    query_ids = reachable_queries(text, pieces.pieces_of)
    queries = [text.queries[query_id] for query_id in query_ids]
    query_rows = VectorRows(folder / f"queries-{_digest(*queries)}.f32", model.embedding_dim)
    rows = VectorRows(folder / "passages.f32", model.embedding_dim)
    block = _BATCHES_A_BLOCK * batch_size
    _fill(
        rows,
        (embedded_text(piece.text, piece.title) for piece in pieces),
        lambda texts, heard: model.encode_documents(texts, batch_size=batch_size, progress=heard),
        block,
        lambda done: listen("Embedding passages", done, pieces.count),
    )
    _fill(
        query_rows,
        queries,
        lambda texts, heard: model.encode_queries(texts, batch_size=batch_size, progress=heard),
        block,
        lambda done: listen("Embedding queries", done, len(queries)),
    )
    return PreparedDataset(
        text=text,
        pieces=pieces,
        vectors=rows.read(),
        query_ids=query_ids,
        query_vectors=query_rows.read(),
        model_name=model.name,
        model_fingerprint=model.fingerprint,
    )


def _fill(
    rows: VectorRows, texts: Iterable[str], encode: Encode, block: int, hear: Callable[[int], None]
) -> None:
    """Embed the texts whose vectors are not there yet, block by block."""
    hear(rows.count)
    waiting = islice(iter(texts), rows.count, None)
    while some := list(islice(waiting, block)):
        done = rows.count
        rows.append(encode(some, lambda finished, done=done: hear(done + finished)))


def _write_manifest(pieces: PieceFile, name: str, model: EmbeddingModel, steps: Steps) -> None:
    manifest = {
        "format": FORMAT,
        "name": name,
        "pieces": pieces.count,
        "sha256": pieces.digest,
        "steps": asdict(steps),
        "model": {"name": model.name, "fingerprint": model.fingerprint, "dim": model.embedding_dim},
    }
    path = pieces.path.parent / "manifest.json"
    path.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _key(digest: str, model: EmbeddingModel) -> str:
    return _digest(str(FORMAT), digest, model.fingerprint, str(model.embedding_dim))


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip(".") or "unnamed"
