"""The files of a Python package, found and parsed without importing it or anything above it.

A :class:`Module` has definitions (classes, functions, methods) and bindings: what each of its names stands
for. Blocks under ``if``, ``try``, ``with`` and ``else`` at its top count as its top. Read by ``ast`` alone:
griffe would do the same, but is one more dependency, and says nothing of the ranks of double bindings and the
tables of lazy imports that real packages have (tests/mining/test_corpora.py).
"""

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from pathlib import Path
from typing import Literal

from dartboard.errors import DatasetError


@dataclass(frozen=True, slots=True)
class Located:
    """A package's folder, or the one file that a module is; ``version`` where its distribution says it."""

    name: str
    path: Path
    version: str = ""


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A file of a package and its name as a module."""

    fqn: str
    path: Path
    is_package: bool


def locate(name: str, folder: str | Path | None = None) -> Located:
    """An installed package, or one unpacked below ``folder``."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise DatasetError(f"{name!r} is no name of a Python package: write it with dots, as in an import")
    path = _unpacked(name, Path(folder)) if folder is not None else _installed(name)
    top = path.parents[name.count(".")]
    return Located(name, path, _version(name, top, path))


def module_files(located: Located) -> Iterator[ModuleFile]:
    """The package's Python files by name; links to outside its folder are left out."""
    if located.path.is_file():
        yield ModuleFile(located.name, located.path, False)
        return
    inside = located.path.resolve()
    for path in sorted(located.path.rglob("*.py")):
        if not path.resolve().is_relative_to(inside) or not path.is_file():
            continue
        *folders, stem = path.relative_to(located.path).with_suffix("").parts
        is_package = stem == "__init__"
        parts = [located.name, *folders, *([] if is_package else [stem])]
        if all(part.isidentifier() for part in parts[1:]):
            yield ModuleFile(".".join(parts), path, is_package)


def _unpacked(name: str, folder: Path) -> Path:
    parts = name.split(".")
    for root in (folder, folder / "src"):
        package = root.joinpath(*parts)
        for found in (package, package.with_suffix(".py")):
            if found.exists():
                return found
    if folder.parts[-len(parts) :] == tuple(parts) and folder.is_dir():
        return folder
    raise DatasetError(f"there is no {'/'.join(parts)} in {folder}: name the folder that holds it")


def _installed(name: str) -> Path:
    """Finders are asked step by step; ``find_spec`` of a dotted name would import what is above it."""
    top, *rest = name.split(".")
    spec = _top_spec(top)
    so_far = top
    for part in rest:
        places: Iterable[str] = (spec.submodule_search_locations if spec else None) or ()
        so_far = f"{so_far}.{part}"
        spec = PathFinder.find_spec(so_far, list(places))
    if spec is None:
        raise DatasetError(
            f"there is no package {name!r} here: install it (without its dependencies is enough), "
            f"or name a folder that holds it: package:{name}@FOLDER"
        )
    places = list(spec.submodule_search_locations or ())
    path = Path(places[0]) if places else Path(spec.origin or "")
    if not places and path.suffix != ".py":
        raise DatasetError(f"{name!r} has no Python source to read ({spec.origin})")
    return path


def _top_spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # a module that is loaded and does not say where it comes from
        return PathFinder.find_spec(name)


def _version(name: str, top: Path, path: Path) -> str:
    """The version of the distribution beside the package whose list of files has it."""
    start = name.replace(".", "/")
    if path.is_file():
        start += ".py"
    for distribution in sorted(distributions(path=[str(top)]), key=lambda one: one.name or ""):
        if any(str(file).startswith(start) for file in distribution.files or ()):
            return distribution.version
    return ""


Function = ast.FunctionDef | ast.AsyncFunctionDef
BindingKind = Literal["constant", "instance", "alias", "import", "definition"]

_RANKS: tuple[BindingKind, ...] = ("constant", "instance", "alias", "import", "definition")
"""Where a name is bound twice (``try: from x import A`` … ``except ImportError: A = None``), the last of
the highest rank counts."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A name's meaning: ``target`` is absolute for imports, else an expression of the module's own names."""

    kind: BindingKind
    target: str = ""


@dataclass(slots=True, eq=False)
class Definition:
    """A class, function or method, under the name of the place where it is written.

    Several nodes are overloads, a property with its setter, or one definition for each of two branches.
    """

    fqn: str
    module: str
    kind: Literal["class", "function", "method"]
    nodes: list[ast.ClassDef | Function]
    bases: tuple[str, ...] = ()
    members: dict[str, "Definition | None"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last part of the name."""
        return self.fqn.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class Module:
    """A parsed file; ``exports`` is its literal ``__all__``, None where it has none."""

    fqn: str
    is_package: bool
    source: str
    tree: ast.Module
    file: str = ""
    definitions: dict[str, Definition] = field(default_factory=dict)
    bindings: dict[str, Binding] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exports: list[str] | None = None
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        # Not splitlines(): Python ends lines at "\n" alone, and a form feed is part of one.
        self.lines = self.source.split("\n")


def is_public(name: str) -> bool:
    """No part of a dotted name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def read_module(fqn: str, source: str, *, is_package: bool, file: str = "") -> Module:
    """Parse a file's text; a file that is not Python raises SyntaxError or ValueError."""
    module = Module(fqn, is_package, source, ast.parse(source), file)
    for statement in top_level(module.tree.body):
        _read_statement(module, statement)
    return module


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and those of the conditional blocks in it."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from top_level(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from top_level(handler.body)


def dotted(node: ast.expr | None) -> str:
    """``a.b.c`` for names and attributes of names, ``X`` for ``X[int]``, nothing for anything else."""
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _read_statement(module: Module, node: ast.stmt) -> None:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            _define(module, node)
        case ast.ImportFrom():
            source = _absolute(module, node)
            for alias in node.names:
                if alias.name == "*":
                    module.stars.append(source)
                else:
                    _bind(module, alias.asname or alias.name, Binding("import", f"{source}.{alias.name}"))
        case ast.Import():
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                _bind(module, alias.asname or whole, Binding("import", whole))
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            _assign(module, name, node.value)
        case ast.AugAssign(target=ast.Name(id="__all__")):
            module.exports = (module.exports or []) + _names(node.value)


def _assign(module: Module, name: str, value: ast.expr | None) -> None:
    if name == "__all__":
        module.exports = _names(value) or None
    elif target := dotted(value):
        _bind(module, name, Binding("alias", target))
    elif isinstance(value, ast.Call) and (target := dotted(value.func)):
        _bind(module, name, Binding("instance", target))
    else:
        _bind(module, name, Binding("constant"))
        for lazy, home in _lazy_names(module, value):
            _bind(module, lazy, Binding("import", home))


def _bind(module: Module, name: str, binding: Binding) -> None:
    before = module.bindings.get(name)
    if before is None or _RANKS.index(binding.kind) >= _RANKS.index(before.kind):
        module.bindings[name] = binding


def _define(module: Module, node: ast.ClassDef | Function) -> None:
    fqn = f"{module.fqn}.{node.name}"
    _bind(module, node.name, Binding("definition", fqn))
    if (known := module.definitions.get(node.name)) is not None:
        known.nodes.append(node)
    else:
        known = Definition(fqn, module.fqn, "class" if isinstance(node, ast.ClassDef) else "function", [node])
        module.definitions[node.name] = known
    if isinstance(node, ast.ClassDef):
        known.bases = (*known.bases, *filter(None, map(dotted, node.bases)))
        _read_members(known, node)


def _read_members(owner: Definition, node: ast.ClassDef) -> None:
    for statement in top_level(node.body):
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if (method := owner.members.get(name)) is not None:
                    method.nodes.append(statement)
                else:
                    owner.members[name] = Definition(
                        f"{owner.fqn}.{name}", owner.module, "method", [statement]
                    )
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                owner.members.setdefault(name, None)
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Name):
                        owner.members.setdefault(target.id, None)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """The module that ``from … import`` means, its dots resolved."""
    if not node.level:
        return node.module or ""
    parts = module.fqn.split(".")
    base = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*base, node.module] if node.module else base)


def _names(node: ast.expr | None) -> list[str]:
    if not isinstance(node, ast.List | ast.Tuple):
        return []
    return [
        item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]


def _lazy_names(module: Module, value: ast.expr | None) -> Iterator[tuple[str, str]]:
    """``{"Name": (".module", "name"), …}``: the table from which a module's ``__getattr__`` imports."""
    if not isinstance(value, ast.Dict):
        return
    for key, entry in zip(value.keys, value.values, strict=True):
        match key, entry:
            case ast.Constant(value=str(name)), ast.Tuple(
                elts=[ast.Constant(value=str(home)), ast.Constant(value=str(original))]
            ):
                level = len(home) - len(home.lstrip("."))
                source = ast.ImportFrom(module=home[level:] or None, names=[], level=level)
                yield name, f"{_absolute(module, source)}.{original}"
