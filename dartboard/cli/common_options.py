"""Options that several commands share, one by one and in groups, and the engine that they open.

typer reads the options of a command from the parameters of its function. A group is a dataclass whose fields
are annotated as such parameters are, or :class:`SearchFlags`, whose options are those that
:class:`~dartboard.search_options.SearchOptions` declares. A command that is :func:`spelled_out` takes a group
as one parameter, and typer is shown its options in its place.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperCommand

from dartboard.search_options import MOST_EACH, TRIAGE, Option, SearchOptions, declared_options

if TYPE_CHECKING:
    from rich.console import Console

    from dartboard.embeddings import EmbeddingModel
    from dartboard.engine import Configured, Engine
    from dartboard.stores import Store

in_index = partial(typer.Option, rich_help_panel="Index")
in_output = partial(typer.Option, rich_help_panel="Output")

StoreOption = Annotated[
    str | None,
    in_index(
        "--store",
        "-s",
        metavar="URL",
        help="Where the index lives: a file path, postgresql://… or milvus://…; by default index.dartboard.",
    ),
]
CollectionOption = Annotated[
    str | None,
    in_index(
        "--collection", "-c", metavar="NAME", help="The collection in the store, where it holds several."
    ),
]
ModelOption = Annotated[
    str | None,
    in_index(
        "--model",
        metavar="NAME",
        help="Embedding model: default, onnx:PATH, sentence-transformers:NAME, openai:MODEL@URL …",
    ),
]
RetrieverOption = Annotated[
    str | None,
    in_index(
        "--retriever",
        "-r",
        metavar="NAME",
        help="Who finds candidates: hybrid, dense, bm25, colbert, splade:PATH, rrf:dense,bm25 …; by default"
        " the one the index was made with.",
    ),
]
PairScorerOption = Annotated[
    str | None,
    in_index(
        "--pair-scorer",
        metavar="NAME",
        help="Who reads the question together with each candidate, for better answers in more time: late-"
        "interaction, cross-encoder:PATH, or none, which is the default.",
    ),
]
TrustOption = Annotated[
    bool,
    in_index(
        "--trust-model",
        help="From now on, use the model and the retriever that this index names, also where they come from"
        " elsewhere or get the questions. Needed for an index that others made.",
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
JsonOption = Annotated[bool, in_output("--json", help="Print JSON for programs.")]


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
        return {name: value for name, value in vars(self).items() if name != "trust_model"}


@dataclass(frozen=True, kw_only=True)
class QueryOptions(IndexOptions):
    """The same for a command that asks the index."""

    pair_scorer: PairScorerOption = None


_METAVARS = {
    "also": "QUESTION",
    "weights": "N,N,…",
    "method": "NAME",
    "sigma": "auto|NUMBER",
    "reranker": "NAME",
    "where": "FILTER",
    "source_field": "FIELD",
    "max_per": "FIELD=N",
    "prefer": "FIELD",
    "tokenizer": "NAME",
    "must_include": "ID",
    "exclude": "ID",
    "seen": "ID",
}


class SearchFlags:
    """The options of a search as they were given on the command line; what was not given is left out."""

    without: ClassVar[frozenset[str]] = frozenset({"sigma_min"})
    """Options that the command line has not."""

    def __init__(self, **given: Any) -> None:
        self.given = {name: _parsed(name, text) for name, text in given.items() if text}

    @classmethod
    def parameters(cls) -> Iterator[Parameter]:
        """What typer is shown: each option under its own name, with its further flags."""
        for name, option in declared_options().items():
            if name not in cls.without:
                many = name in ("also", "seen", "must_include", "exclude", "max_per")
                kind: Any = list[str] | None if many else str | None
                yield Parameter(
                    name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, _flag(option)]
                )

    def options(self, found: "Configured", **defaults: Any) -> SearchOptions:
        """What to search for: flags, then ``defaults``, then the settings that were chosen."""
        if "k" in self.given and "token_budget" in self.given:
            raise typer.BadParameter("--k and --token-budget exclude each other: give one of them")
        asked = {**defaults, **self.given}
        if "tokenizer" in asked and "token_budget" not in asked:
            raise typer.BadParameter("--tokenizer counts the tokens of --token-budget: give both")
        for name in ("k", "method", "sigma", "triage_k"):
            if (value := found.chosen(name)) is not None and not (name == "k" and "token_budget" in asked):
                asked.setdefault(name, value)
        if isinstance(asked.get("k"), int):
            asked.setdefault("triage_k", min(MOST_EACH, max(TRIAGE, asked["k"])))
        asked.setdefault("reranker", found.reranker_type)
        return SearchOptions(**asked)


class ContextFlags(SearchFlags):
    """The same for a context, whose length is a number of tokens."""

    without = SearchFlags.without | {"k", "offset"}


def _flag(option: Option) -> Any:
    own = f"--{option.name.replace('_', '-')}"
    limits = ""
    if option.low is not None:
        limits = f" From {option.low:g}" + (f" to {option.high:g}." if option.high is not None else ".")
    return typer.Option(
        own,
        *(flag for flag in option.names.flags if flag != own),
        metavar=_METAVARS.get(option.name, "N"),
        help=option.help + limits,
        rich_help_panel=option.names.panel,
    )


def _parsed(name: str, text: Any) -> Any:
    """A number where it is one; what it is otherwise, the options of a search judge."""
    if name == "weights":
        return _weights(text)
    if name == "max_per":
        return _caps(text)
    if declared_options()[name].low is None:
        return text
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _weights(text: str) -> list[float]:
    """``2,1`` as numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--weights are numbers such as 2,1, got {text!r}") from None


def _caps(given: Sequence[str]) -> dict[str, int]:
    """``["author=2"]`` as a cap by field."""
    caps = {}
    for one in given:
        field, equals, most = one.rpartition("=")
        if not equals or not field or not most.strip().isdecimal():
            raise typer.BadParameter(f"--max-per is a field and a number, such as author=2, got {one!r}")
        caps[field.strip()] = int(most)
    return caps


class Panels(TyperCommand):
    """A command whose help lists options in panels, in the order in which these first occur."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write each panel as a section."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)


def spelled_out(command: Callable[..., None]) -> Callable[..., None]:
    """The command, as typer needs it: each group among its parameters is spelled out, in its place."""
    groups: dict[str, tuple[Any, list[Parameter]]] = {}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind: Any = parameter.annotation
        if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, SearchFlags)):
            options = list(_options(kind) if is_dataclass(kind) else kind.parameters())
            groups[parameter.name] = (kind, options)
            shown += options
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(**{option.name: given.pop(option.name) for option in options})
            for name, (group, options) in groups.items()
        }
        command(**given, **made)

    called.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    return called


def _options(group: Any) -> Iterator[Parameter]:
    """The fields of a dataclass as parameters; one without a default is required."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])


def configured(options: dict[str, str] | None = None, /, **flags: Any) -> "Configured":
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
    from dartboard.stores.urls import is_there, missing_index

    settings = found.settings
    if not create and not is_there(settings.store):
        raise StoreError(f"{missing_index(settings.store)}, or name it by --store", field="store")
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
    from dartboard.cli.console import say
    from dartboard.engine.trust import trust_stored

    for line in trust_stored(store, collections):
        say(line)


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
