"""Which names of the package are public, read from its sources without importing them.

A room's names are its ``__all__``; of a module without one, the classes, functions and documented constants
that do not begin with an underscore.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dartboard"

TITLES = {
    "selection": "Selection",
    "core": "Retriever",
    "search_options": "Search options",
    "relevance": "Relevance",
    "near_duplicates": "Near-duplicates",
    "engine": "Engine",
    "types": "Data",
    "embeddings": "Embeddings",
    "retrievers": "Retrievers",
    "stores": "Stores",
    "ingest": "Ingest",
    "lexical": "Lexical",
    "datasets": "Data sets",
    "calibration": "Calibration",
    "evaluation": "Evaluation",
    "explain": "Explanation",
    "answering": "Answering",
    "mining": "Mining",
    "llm": "Language models",
    "integrations": "Integrations",
    "cluster": "Cluster",
    "plugins": "Plug-ins",
    "api": "Service",
    "testing": "Testing",
    "vocab": "Vocabularies",
    "utils": "Numerics",
    "deadline": "Deadlines",
    "errors": "Errors",
}
"""The rooms that have a page, in its order; those that do not exist are left out."""

WITHOUT_PAGE = frozenset(
    {
        "blas",
        "cli",
        "config",
        "data",
        "file_lock",
        "http_client",
        "lazy",
        "pair_scores",
        "plain_text",
        "version",
        "web",
    }
)
"""Rooms that users do not import from: ``config`` is read through ``core``."""

_PARTS = {
    "integrations": ("langchain", "llama_index", "haystack"),
    "mining": (
        "cases",
        "registry",
        "corpora",
        "extractor",
        "pipeline",
        "dataset_writer",
        "validation",
        "judges",
        "verdicts",
        "journal",
        "verdict_journal",
        "controls",
        "kernels",
    ),
}
"""Rooms whose names live in their parts; parts that do not exist are left out."""

_FIRST = {
    "selection": ("select", "select_many", "Selection", "Limits", "Dartboard"),
    "core": ("DartboardRetriever",),
    "engine": ("Engine", "index_paths"),
    "types": ("Chunk", "RetrievalResult", "Dataset"),
    "embeddings": ("default_model", "EmbeddingModel"),
    "retrievers": ("retriever_by_name", "Retriever"),
    "stores": ("open_store", "Store", "Collection", "Record", "Manifest"),
    "ingest": ("walk", "read_file", "chunk"),
    "datasets": ("load_dataset", "list_datasets", "prepare"),
    "calibration": ("calibrate", "Calibration"),
    "evaluation": ("evaluate_dataset", "evaluate", "EvaluationConfig", "write_report"),
    "explain": ("explore", "Exploration"),
}
"""Names that a reader looks for first; the others follow in the order of ``__all__``."""


@dataclass(frozen=True, slots=True)
class Room:
    """A module of the package that people import from."""

    name: str
    title: str
    names: tuple[str, ...]
    """Dotted, without ``dartboard.``, in the order of the page."""

    @property
    def page(self) -> str:
        """Its page, relative to the documentation's folder."""
        return f"reference/python/{self.name}.md"


@cache
def rooms() -> tuple[Room, ...]:
    """Every room that has a page."""
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or _is_package(path)}
    there -= {"__init__", "__main__"}
    order = [name for name in TITLES if name in there]
    order += sorted(there - set(order) - WITHOUT_PAGE)
    return tuple(Room(name, TITLES.get(name, name.capitalize()), tuple(_names(name))) for name in order)


def exported() -> list[str]:
    """What ``from dartboard import …`` offers."""
    return public_names("")


@cache
def homes() -> dict[str, str]:
    """Names that mean one thing only, and their places: ``select`` → ``dartboard.selection.select``.

    What ``dartboard`` itself exports means that, whoever else uses the name.
    """
    found: dict[str, list[str]] = {}
    for room in rooms():
        for name in room.names:
            found.setdefault(name.rpartition(".")[2], []).append(f"dartboard.{name}")
    first = set(exported())
    return {name: places[0] for name, places in found.items() if len(places) == 1 or name in first}


def summary(module: str) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(_tree(module)) or ""
    return " ".join(text.partition("\n\n")[0].split())


def public_names(module: str) -> list[str]:
    """The names that a module, dotted from within the package, offers."""
    tree = _tree(module)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and _targets(statement) == ["__all__"]:
            return list(ast.literal_eval(statement.value))
    found = [name for name in _defined(tree) if not name.startswith("_")]
    return sorted(found, key=lambda name: not name[0].isupper())


def _names(room: str) -> Iterator[str]:
    for part in _PARTS.get(room, ("",)):
        module = f"{room}.{part}" if part else room
        if _source(module) is not None:
            first = _FIRST.get(room, ())
            names = sorted(public_names(module), key=lambda name: _place(first, name))
            yield from (f"{module}.{name}" for name in names)


def _place(first: tuple[str, ...], name: str) -> int:
    return first.index(name) if name in first else len(first)


def _defined(tree: ast.Module) -> Iterator[str]:
    """Classes and functions, and assignments that a docstring follows."""
    seen: set[str] = set()
    for statement, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        names: list[str] = []
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            names = [statement.name]
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and _is_docstring(after):
            names = _targets(statement)
        yield from (name for name in names if name not in seen)
        seen.update(names)


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_docstring(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def _source(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    places = (base / "__init__.py", base.with_suffix(".py"))
    return next((place for place in places if place.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    source = _source(module)
    if source is None:
        raise FileNotFoundError(f"dartboard has no module {module!r}")
    return ast.parse(source.read_text(encoding="utf-8"))
