"""The share of the embeddings in a hybrid, fitted on a data set, for ``dartboard calibrate --alpha``."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from dartboard.embeddings import EmbeddingModel
    from dartboard.retrievers.alpha_fit import AlphaFit
    from dartboard.types import Dataset


def fit_alpha_on(
    dataset: "Dataset", model: "EmbeddingModel", *, seed: int, progress: Callable[[int, int], None]
) -> "AlphaFit":
    """α of dense and BM25 over the data set's own passages, held in memory."""
    from dartboard.retrievers.alpha_fit import fit_alpha
    from dartboard.retrievers.catalogue import retriever_by_name
    from dartboard.stores import Manifest, Record
    from dartboard.stores.memory import MemoryStore

    manifest = Manifest(model=model.fingerprint, model_name=model.name, dimension=model.embedding_dim)
    collection = MemoryStore().create("fitting", manifest)
    collection.upsert([Record(chunk.id, chunk.text, chunk.embedding) for chunk in dataset.chunks])
    return fit_alpha(
        [retriever_by_name(name, model=model) for name in ("dense", "bm25")],
        collection,
        dict(zip(dataset.query_ids, dataset.queries, strict=True)),
        {query: dict.fromkeys(ids, 1.0) for query, ids in dataset.ground_truth.items()},
        seed=seed,
        progress=progress,
    )


def wins(fit: "AlphaFit") -> bool:
    """Whether the fitted α beats the default on queries that it was not fitted on, by more than chance."""
    return fit.gain[0] > 0


def draw_alpha(console: "Console", fit: "AlphaFit", default: float) -> None:
    """The fit and what to use, in two lines."""
    low, high = fit.interval
    console.print(
        f"α of a hybrid of embeddings and BM25: {fit.alpha:.2f} ({low:.2f} to {high:.2f}); {fit.metric} on "
        f"held-out queries {fit.held_out:.3f}, with α = {default:.2f} {fit.default:.3f}",
        soft_wrap=True,
    )
    if wins(fit):
        console.print(f"Use [bold]--retriever hybrid:{fit.alpha:.2f}[/bold]: it wins on held-out queries.")
    else:
        console.print(f"Use [bold]α = {default:.2f}[/bold], the default: the difference may be chance.")
