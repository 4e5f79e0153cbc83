"""Options that several commands share, and the engine that they open."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dartboard.engine import Configured, Engine

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        "-s",
        metavar="URL",
        help="Where the index lives: a file path, postgresql://… or milvus://…; by default index.dartboard.",
    ),
]
CollectionOption = Annotated[
    str | None, typer.Option("--collection", "-c", metavar="NAME", help="The collection in the store.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Embedding model: default, onnx:PATH, sentence-transformers:NAME, openai:MODEL@URL …",
    ),
]
RetrieverOption = Annotated[
    str | None,
    typer.Option(
        "--retriever",
        "-r",
        metavar="NAME",
        help="Who finds candidates: hybrid, dense, bm25, colbert, splade:PATH, rrf:dense,bm25 …; "
        "by default the one the index was made with.",
    ),
]
RerankerOption = Annotated[
    str | None,
    typer.Option(
        "--reranker",
        metavar="NAME",
        help="Who reads the question together with each candidate: late-interaction, cross-encoder:PATH, "
        "or none, which is the default.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Which index, and what reads it."""

    store: StoreOption = None
    collection: CollectionOption = None
    model: ModelOption = None
    retriever: RetrieverOption = None


def configured(options: Mapping[str, str] | None = None, /, **flags: Any) -> "Configured":
    """Settings from flags, environment and file, in that order.

    ``options`` are the names of options that are not called like their setting.
    """
    from dartboard.engine import load_settings

    return load_settings(flags, options=options)


@contextmanager
def opened(found: "Configured", *, read_only: bool = True, create: bool = False) -> "Iterator[Engine]":
    """The engine of the settings, closed at the end. What was not chosen comes from the collection.

    A store that is a file has to be there, unless ``create`` allows a new one.
    """
    from dartboard.engine import Engine
    from dartboard.errors import StoreError
    from dartboard.stores.opening import is_there

    settings = found.settings
    if not create and not is_there(settings.store):
        raise StoreError(
            f"there is no index {settings.store!r}: make one with dartboard index PATH, or name it by --store"
        )
    with Engine.open(
        settings.store,
        read_only=read_only,
        collection=settings.collection,
        model=found.chosen("model"),
        retriever=found.chosen("retriever"),
        pair_scorer=found.pair_scorer,
    ) as engine:
        yield engine
