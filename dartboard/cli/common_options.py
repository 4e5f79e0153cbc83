"""Options that several commands share, one by one and in groups, and the engine that they open.

typer reads the options of a command from the parameters of its function. A group is a frozen dataclass whose
fields are annotated as such parameters are; a command that is :func:`spelled_out` takes it as one parameter,
and typer is shown the fields in its place. Groups without slots hand all their options on with ``vars``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dartboard.wrong_names import renamed

if TYPE_CHECKING:
    from rich.console import Console

    from dartboard.embeddings import EmbeddingModel
    from dartboard.engine import Configured, Engine
    from dartboard.search_options import SearchOptions
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
DataOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder of data sets; by default what DARTBOARD_DATA names, else ./data."
    ),
]
DownloadOption = Annotated[
    bool,
    typer.Option("--download", help="Fetch a public data set that is not in the folder; some are large."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
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


MOST = 1000
"""Candidates that a selection takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFlags:
    """How many passages, of which candidates, and who picks them; numbers that make sense together.

    A field has the name of the option of :class:`~dartboard.search_options.SearchOptions` that it sets,
    whatever its flag is called, and is None where it is not given: a new option is one more field.
    """

    k: Annotated[
        int | None, typer.Option("--k", "-k", metavar="N", help="How many passages; by default 5.")
    ] = None
    token_budget: Annotated[
        int | None,
        typer.Option(
            "--tokens", "-t", metavar="N", help="As many passages as fit into N tokens, instead of --k."
        ),
    ] = None
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="Whose tokens --tokens counts: an encoding or model of tiktoken (cl100k_base, gpt-4o), or a "
            "tokenizer.json; by default the embedding model's.",
        ),
    ] = None
    offset: Annotated[
        int | None,
        typer.Option(
            "--offset", metavar="N", help="Leave out the first N picks: --k 5 --offset 5 is page 2."
        ),
    ] = None
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also", "-a", metavar="QUESTION", help="A further question, answered together; may be repeated."
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="N,N,…", help="How much QUERY and each --also count; equal by default."
        ),
    ] = None
    seen: Annotated[
        list[str] | None,
        typer.Option(
            "--seen",
            metavar="ID",
            help="A chunk that the reader has already, by its id (--explain shows it): only what adds to it "
            "is picked; may be repeated.",
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            "--filter", "-f", metavar="FILTER", help="Only chunks whose metadata match, e.g. 'year >= 2020'."
        ),
    ] = None
    must_include: Annotated[
        list[str] | None,
        typer.Option(
            "--must-include", metavar="ID", help="A chunk that is picked first, by its id; may be repeated."
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option("--exclude", metavar="ID", help="A chunk that is left out, by its id; may be repeated."),
    ] = None
    min_similarity: Annotated[
        float | None,
        typer.Option(
            "--min-similarity", metavar="N", help="Leave out chunks less similar to QUERY (cosine)."
        ),
    ] = None
    min_gain_share: Annotated[
        float | None,
        typer.Option(
            "--min-gain-share",
            metavar="N",
            help="Stop once a passage adds less than this share of what the first added, 0 to 1.",
        ),
    ] = None
    relevance_below: Annotated[
        float | None,
        typer.Option(
            "--relevance-below",
            metavar="N",
            help="Once no passage gains this share, 0.0125 by default, go on with the most relevant ones.",
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Who picks: dartboard (the default), mmr, top_k, near_duplicate_filter.",
        ),
    ] = None
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma",
            metavar="auto|NUMBER",
            help="Spread of a question around what it means, 0.00001 to 10; auto by default.",
        ),
    ] = None
    triage_k: Annotated[
        int | None,
        typer.Option("--triage", metavar="N", help="How many candidates to pick from; by default 100."),
    ] = None
    reranker: RerankerOption = None
    max_per_source: Annotated[
        int | None,
        typer.Option("--max-per-source", metavar="N", help="At most N passages from one document."),
    ] = None
    source_field: Annotated[
        str | None,
        typer.Option(
            "--source-field",
            metavar="FIELD",
            help="The metadata field that --max-per-source counts; by default source.",
        ),
    ] = None
    max_per: Annotated[
        list[str] | None,
        typer.Option(
            "--max-per",
            metavar="FIELD=N",
            help="At most N passages that agree in a metadata field, e.g. author=2; may be repeated.",
        ),
    ] = None
    prefer: Annotated[
        str | None,
        typer.Option(
            "--prefer",
            metavar="FIELD",
            help="Of near-duplicates, show the one with the largest value of a metadata field, e.g. version.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.k is not None and self.token_budget is not None:
            raise typer.BadParameter("--k and --tokens exclude each other: give one of them")
        if self.k is not None and not 1 <= self.k <= MOST:
            raise typer.BadParameter(f"--k must be in 1 to {MOST}, got {self.k}")
        for name in ("token_budget", "max_per_source"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise typer.BadParameter(f"{_flag(name)} must be 1 or more, got {value}")
        least = max(1, self.k or 0)
        if self.triage_k is not None and not least <= self.triage_k <= MOST:
            raise typer.BadParameter(
                f"--triage must be in {least} (as many as --k) to {MOST}, got {self.triage_k}"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """What the environment and a file may say as well, by the names of settings."""
        return {name: getattr(self, name) for name in ("method", "k", "sigma", "triage_k", "reranker")}

    def options(self, found: "Configured") -> "SearchOptions":
        """What to search for, with the settings that were found."""
        from dartboard.errors import ConfigError
        from dartboard.search_options import SearchOptions

        settings = found.settings
        chosen = found.sources["triage_k"] == "flag"
        asked = {field.name: getattr(self, field.name) for field in fields(self)} | {
            "k": None if self.token_budget is not None else settings.k,
            "method": settings.method,
            "sigma": settings.sigma,
            "triage_k": settings.triage_k if chosen else max(settings.triage_k, settings.k),
            "reranker": found.reranker_type,
            "weights": _weights(self.weights),
            "max_per": _caps(self.max_per),
        }
        with naming_flags():
            try:
                return SearchOptions(**{name: value for name, value in asked.items() if value is not None})
            except ConfigError as error:  # it begins with the name of the option
                name = str(error).partition(" ")[0]
                if asked.get(name) is None or name in self.settings:
                    raise
                raise typer.BadParameter(_in_flags(str(error))) from error


def _weights(text: str | None) -> list[float] | None:
    """``2,1`` as numbers."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--weights are numbers such as 2,1, got {text!r}") from None


def _caps(given: Sequence[str] | None) -> dict[str, int] | None:
    """``["author=2"]`` as a cap by field."""
    caps = {}
    for one in given or ():
        field, equals, most = one.rpartition("=")
        if not equals or not field or not most.strip().isdecimal():
            raise typer.BadParameter(f"--max-per is a field and a number, such as author=2, got {one!r}")
        caps[field.strip()] = int(most)
    return caps or None


def _flag(name: str) -> str:
    """What a field of :class:`SearchFlags` is called on the command line."""
    option = get_type_hints(SearchFlags, include_extras=True)[name].__metadata__[0]
    # typer keeps the first flag, which stands where other calls have the default, as the default
    return option.default if isinstance(option.default, str) else f"--{name.replace('_', '-')}"


def _in_flags(message: str) -> str:
    """A message of the library, with options called by their flags."""
    return renamed(message, {field.name: _flag(field.name) for field in fields(SearchFlags)})


@contextmanager
def naming_flags() -> Iterator[None]:
    """What the library says against options of a search, with the names of their flags."""
    from dartboard.errors import ConfigError, InvalidInputError

    try:
        yield
    except (ConfigError, InvalidInputError) as error:
        if type(error) not in (ConfigError, InvalidInputError):  # others have messages of their own
            raise
        raise type(error)(_in_flags(str(error))) from error


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """The command, as typer needs it: each group among its parameters is spelled out, in its place."""
    groups: dict[str, type[Any]] = {}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind: Any = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            shown += _options(kind)
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return called


def _options(group: type[Any]) -> Iterator[Parameter]:
    """The fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


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
    from dartboard.cli.console import messages
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


def load_model(console: "Console") -> "EmbeddingModel":
    """The default model, with its vectors cached on disk where a disk lets it."""
    from dartboard.cli.console import warn
    from dartboard.embeddings import CachedModel, default_model
    from dartboard.errors import ConfigError

    with console.status("Loading the embedding model"):
        model = default_model()
    try:
        return CachedModel(model)
    except ConfigError as error:
        warn(f"{error}; going on without a cache (set DARTBOARD_CACHE to a folder that can be written)")
        return model
