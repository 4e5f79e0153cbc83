"""Options that several commands share, and the engine that they open."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dartboard.engine import Configured, Engine
    from dartboard.stores import Store

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
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust-model",
        help="From now on, use the model and the retriever that this index names, also where they come from "
        "elsewhere or get the questions. Needed for an index that others made.",
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
    trust_model: TrustOption = False

    @property
    def settings(self) -> dict[str, str | None]:
        """Those that are settings."""
        return {
            "store": self.store,
            "collection": self.collection,
            "model": self.model,
            "retriever": self.retriever,
        }


def configured(options: Mapping[str, str] | None = None, /, **flags: Any) -> "Configured":
    """Settings from flags, environment and file, in that order.

    ``options`` are the names of options that are not called like their setting.
    """
    from dartboard.engine import load_settings

    return load_settings(flags, options=options)


@contextmanager
def opened(
    found: "Configured", *, read_only: bool = True, create: bool = False, trust: bool = False
) -> "Iterator[Engine]":
    """The engine of the settings, closed at the end. What was not chosen comes from the collection.

    A store that is a file has to be there, unless ``create`` allows a new one. With ``trust``, what the
    collection names is confirmed from now on.
    """
    from dartboard.engine import Engine
    from dartboard.errors import StoreError
    from dartboard.stores.urls import is_there

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
        trust_model=found.trusted,
    ) as engine:
        if trust and engine.exists:
            engine.confirm_names()
            say_trusted(engine.store, [engine.name])
        yield engine


def say_trusted(store: "Store", collections: "Sequence[str]") -> None:
    """Confirm what collections name, and say what that means."""
    from dartboard.cli.terminal import messages
    from dartboard.engine.trust import trust_stored

    for line in trust_stored(store, collections):
        messages().print(line, soft_wrap=True, markup=False)


def trust_index(url: str, collection: str | None = None) -> None:
    """``--trust-model`` for what opens the index later: one collection, or all that are there now."""
    from dartboard.stores import open_store
    from dartboard.stores.urls import is_there

    if not is_there(url):
        return
    with open_store(url, read_only=True) as store:
        there = store.collections()
        say_trusted(store, [name for name in there if collection in (None, name)])
