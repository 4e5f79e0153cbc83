"""Encode passages with the default model, through the cache, while someone is watching."""

from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dartboard.cli.terminal import warn
from dartboard.embeddings import CachedModel, EmbeddingModel, default_model
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError

_BATCH = 8
"""Small, so that the bar moves and an interruption loses little; larger ones were measured no faster."""


def load_model(console: Console) -> EmbeddingModel:
    """The default model, remembering on disk where a disk lets it."""
    with console.status("Loading the embedding model"):
        model = default_model()
    try:
        return CachedModel(model)
    except ConfigError as error:
        warn(f"{error}; going on without a cache (set DARTBOARD_CACHE to a folder that can be written)")
        return model


def encode_passages(model: EmbeddingModel, texts: Sequence[str], console: Console) -> tuple[Vectors, int]:
    """The vectors of passages, ``(n, d)``, and how many of them the cache knew."""
    with _Meter(len(texts), console, cached=isinstance(model, CachedModel)) as meter:
        vectors = model.encode_documents(texts, batch_size=_BATCH, progress=meter.hear)
        return vectors, meter.known


class _Meter:
    """Hears how many texts are finished; shows a bar on a terminal, one line elsewhere.

    A caching model reports first what it knows already.
    """

    def __init__(self, total: int, console: Console, *, cached: bool) -> None:
        self.known = 0
        self._total = total
        self._console = console
        self._cached = cached
        self._done = 0
        self._began = False
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("Encoding passages", total=total)

    def hear(self, done: int) -> None:
        """So many texts are finished."""
        if not self._began:
            self._begin(done)
        self._done = done
        self._bar.update(self._task, completed=done)

    def _begin(self, done: int) -> None:
        self._began = True
        self.known = done if self._cached else 0
        if self.known == self._total:
            return
        if self._console.is_terminal:
            self._bar.start()
        else:
            once = ", this once" if self._cached else ""
            self._console.print(
                f"Encoding {self._total - self.known} passages: some seconds{once}", soft_wrap=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._bar.stop()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            kept = (
                "they are kept, and the same command goes on from there" if self._cached else "none is kept"
            )
            self._console.print(
                f"Stopped with {self._done} of {self._total} passages encoded: {kept}.", soft_wrap=True
            )
