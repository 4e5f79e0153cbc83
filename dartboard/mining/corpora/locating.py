"""Where a package's files are, without importing it or any package above it."""

import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from pathlib import Path

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
