"""A Python package as documents: its modules, classes, functions and methods, each by its full name.

griffe reads the package without importing it, and knows where each name is defined; every other name under
which something can be imported leads there. Private things are part of the module or class that holds them,
unless a public module exports them.

Each line of a package stands in one document. A method with something to say (a docstring, or more than a
few lines) is a document of its own, and its class shows its signature and the first line of its docstring;
the module shows its classes and functions in the same way, and its imports only where it is a package,
since there they are what it offers. Fields, ``__init__`` and private methods stay with their class. So a
question about one method finds that method, and no document answers for another by holding a copy of it.

A text that is still too long loses the bodies of its private methods, then its end, at the end of a line.
"""

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError, MissingExtraError
from dartboard.ingest import Problem
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus

if TYPE_CHECKING:
    import griffe

LONGEST = 16_000
"""Characters of a document's source, about 4,000 tokens: classes with many documented fields fit in."""

_MOST_ALIASES = 3
_FEW_LINES = 5
_LONGEST_WAY = 20
_BLANK = re.compile(r"\n\s*\n\s*\n\s*\n")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = list[ast.ClassDef | Function]
"""The nodes of one name: overloads, a property with its setter, or one definition for each branch."""
Edits = dict[int, tuple[int, list[str]]]
"""From a first line, counted from 0, to the line after the last and the lines to put there."""


class PackageCorpus(MemoryCorpus):
    """The documents of a package. ``problems`` are files that could not be read; the rest is there.

    Args:
        name: as in an import, with dots.
        folder: where the package is unpacked; an installed one is taken unless given.
        longest: the most characters of a document.
        model: makes the vectors; the default model unless given.

    Raises:
        DatasetError: there is no such package, or none of its files can be read.
    """

    def __init__(
        self,
        name: str,
        folder: str | Path | None = None,
        *,
        longest: int = LONGEST,
        model: EmbeddingModel | None = None,
    ) -> None:
        self._package = load_package(name, folder)
        self._longest = longest
        top = Path(str(self._package.filepath)).parents[name.count(".") + self._package.is_init_module]
        self.version = _version(name, top)
        self._exported = self._exports()
        documents: list[Document] = []
        read: set[Path] = set()
        inside = Path(str(self._package.filepath)).parent.resolve()
        for module in _modules(self._package):
            path = Path(str(module.filepath))
            if path.resolve().is_relative_to(inside):  # a link must not lead out of the package
                documents += self._of_module(module, path.relative_to(top).as_posix())
                read.add(path)
        files = inside.rglob("*.py") if self._package.is_init_module else ()
        self.problems = [
            Problem(path.relative_to(top.resolve()).as_posix(), "cannot be parsed", "damaged")
            for path in sorted(files)
            if path not in read and path.resolve().is_relative_to(inside)
        ]
        super().__init__(f"{name} {self.version}".strip(), documents, model=model)

    def get(self, fqn: str) -> Document | None:
        """By definition, by any name it can be imported under, or by an attribute of either."""
        if (exact := super().get(fqn)) is not None:
            return exact
        found: griffe.Object | None = self.meaning(fqn)
        while found is not None:
            if (document := super().get(found.path)) is not None:
                return document
            found = found.parent if not found.is_module else None
        return None

    def meaning(self, name: str, steps: int = _LONGEST_WAY) -> "griffe.Object | None":
        """What a name leads to, whether or not it has a document; an instance stands for its class."""
        import griffe

        package = self._package.path
        if name == package:
            return self._package
        if not name.startswith(f"{package}.") or steps == 0:
            return None
        try:
            found: Any = self._package[name.removeprefix(f"{package}.")]
            found = found.final_target if found.is_alias else found
            value = found.value if found.is_attribute else None
            path = getattr(value, "canonical_path", "")
        except (KeyError, griffe.GriffeError, RecursionError):
            return None
        meant = self.meaning(path, steps - 1) if path and path != found.path else None
        return meant if meant is not None and (meant.is_class or meant.is_function) else found

    def _exports(self) -> dict[str, list[str]]:
        """For each definition the public names that lead to it from elsewhere, shortest first.

        Packages offer what they import; other modules what they rename, or what is private elsewhere.
        """
        found: dict[str, list[str]] = {}
        for module in _modules(self._package):
            members: dict[str, Any] = dict(module.members) if is_public(module.path) else {}
            for name, member in members.items():
                full = f"{module.path}.{name}"
                if not is_public(name) or (not member.is_alias and not member.is_attribute):
                    continue
                meant = self.meaning(full)
                if meant is None or not (meant.is_class or meant.is_function) or meant.path == full:
                    continue
                if member.is_alias:
                    offered = module.is_init_module or not is_public(meant.path)
                else:  # another name for it, and no instance of it
                    offered = "Call" not in type(member.value).__name__
                if offered:
                    found.setdefault(meant.path, []).append(full)
        for names in found.values():
            names.sort(key=lambda name: (name.count("."), len(name), name))
        return found

    def _of_module(self, module: "griffe.Module", file: str) -> Iterator[Document]:
        """The module, its definitions, and methods that have something to say."""
        source = "\n".join(module.lines)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # strange escapes in strings of others
            tree = ast.parse(source)
        lines = source.split("\n")
        defined = _definitions(tree.body)
        shown = {name: nodes for name, nodes in defined.items() if self._is_shown(f"{module.path}.{name}")}
        facts = {"module": module.path, "file": file}
        if is_public(module.path):
            text = _module_text(lines, tree, shown.values(), module.is_init_module)
            if text:
                yield self._document(module.path, "module", text, facts | {"line": 1})
        for name, nodes in shown.items():
            fqn = f"{module.path}.{name}"
            members = _definitions(
                [one for node in nodes if isinstance(node, ast.ClassDef) for one in node.body]
            )
            own = {one: found for one, found in members.items() if _speaks(one, found)}
            text = _source(lines, nodes, _outlines(lines, own.values()))
            if len(text) > self._longest:
                most = [found for one, found in members.items() if one != "__init__"]
                text = _source(lines, nodes, _outlines(lines, most))
            kind = "class" if isinstance(nodes[0], ast.ClassDef) else "function"
            yield self._document(fqn, kind, text, facts, nodes)
            for one, found in own.items():
                yield self._document(f"{fqn}.{one}", "method", _source(lines, found, {}), facts, found)

    def _is_shown(self, fqn: str) -> bool:
        return is_public(fqn) or fqn in self._exported

    def _document(
        self, fqn: str, kind: str, text: str, facts: dict[str, Any], nodes: Definition | None = None
    ) -> Document:
        aliases = self._exported.get(fqn, [])[:_MOST_ALIASES]
        also = f"# also {', '.join(aliases)}\n" if aliases else ""
        more = {"line": nodes[0].lineno, "signature": signature(nodes[-1])} if nodes else {}
        metadata = {"kind": kind, **facts, **more} | ({"aliases": aliases} if aliases else {})
        return Document(fqn, f"# {kind} {fqn}\n{also}{shortened(text, self._longest)}", metadata)


def load_package(name: str, folder: str | Path | None = None) -> "griffe.Module":
    """A package, read and not imported: an installed one, or one unpacked in or below ``folder``."""
    try:
        import griffe
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("griffe", "eval", "A Python package as a corpus") from error
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise DatasetError(
            f"{name!r} is no name of a Python package: write it with dots, as in an import", field="corpus"
        )
    places: list[Path] | None = None
    if folder is not None:
        given = Path(folder)
        ends = list(given.resolve().parts[-len(parts) :]) == parts
        places = [given.resolve().parents[len(parts) - 1]] if ends else [given, given / "src"]
    loader = griffe.GriffeLoader(search_paths=places, allow_inspection=False)
    try:
        loaded = loader.load(name, try_relative_path=False)
        loader.resolve_aliases(implicit=True, external=False)
    except (ImportError, griffe.GriffeError, SyntaxError, ValueError, RecursionError) as error:
        where = "here: install it (without its dependencies is enough)" if folder is None else f"in {folder}"
        raise DatasetError(
            f"there is no Python package {name!r} that can be read {where}, or name the folder that holds "
            f"it: package:{name}@FOLDER",
            field="corpus",
        ) from error
    if not isinstance(loaded, griffe.Module) or isinstance(loaded.filepath, list):
        raise DatasetError(
            f"{name!r} is a namespace without Python code of its own: name a package in it", field="corpus"
        )
    return loaded


def is_public(name: str) -> bool:
    """No part of a dotted name begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def signature(node: ast.ClassDef | Function) -> str:
    """``class LlmAgent(BaseAgent)``, ``async def run(self, name: str) -> int``: on one line."""
    if isinstance(node, ast.ClassDef):
        parents = ", ".join(ast.unparse(base) for base in [*node.bases, *(k.value for k in node.keywords)])
        return f"class {node.name}({parents})" if parents else f"class {node.name}"
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{word} {node.name}({ast.unparse(node.args)}){returns}"


def shortened(text: str, longest: int) -> str:
    """The text, or as many whole lines of it as fit, and how many more there were."""
    if len(text) <= longest:
        return text
    lines = text.splitlines()
    kept, size = 0, 32
    while kept < len(lines) and size + len(lines[kept]) + 1 <= longest:
        size += len(lines[kept]) + 1
        kept += 1
    return "\n".join([*lines[:kept], f"# … {len(lines) - kept} more lines"])


def _modules(module: "griffe.Module") -> Iterator["griffe.Module"]:
    yield module
    for name in sorted(module.modules):
        if not module.modules[name].is_alias and not isinstance(module.modules[name].filepath, list):
            yield from _modules(module.modules[name])


def _version(name: str, top: Path) -> str:
    """The version of the distribution beside the package whose list of files has it."""
    start = name.replace(".", "/")
    for distribution in sorted(distributions(path=[str(top)]), key=lambda one: one.name or ""):
        if any(str(file).startswith((f"{start}/", f"{start}.py")) for file in distribution.files or ()):
            return distribution.version
    return ""


def _definitions(body: Sequence[ast.stmt]) -> dict[str, Definition]:
    """Classes and functions of a block, and of the conditional blocks in it, by name."""
    found: dict[str, Definition] = {}
    for node in _statements(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _speaks(name: str, nodes: Definition) -> bool:
    """A public method with a docstring or more than a few lines."""
    return is_public(name) and any(
        not isinstance(node, ast.ClassDef)
        and (ast.get_docstring(node) is not None or (node.end_lineno or 0) - node.lineno > _FEW_LINES)
        for node in nodes
    )


def _module_text(
    lines: list[str], tree: ast.Module, shown: "Iterator[Definition] | Any", is_package: bool
) -> str:
    """A module's docstring, its documented definitions as signatures, all else as it is written."""
    edits = _outlines(lines, shown)
    if not is_package:
        edits |= {
            _first_line(node): (node.end_lineno or node.lineno, [])
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    begin = _first_line(tree.body[0]) if tree.body else len(lines)
    return _BLANK.sub("\n\n\n", "\n".join(_edited(lines, begin, len(lines), edits))).strip()


def _source(lines: list[str], nodes: Definition, edits: Edits) -> str:
    parts = []
    for node in nodes:
        begin, end = _first_line(node), node.end_lineno or node.lineno
        inside = {start: edit for start, edit in edits.items() if begin < start < end}
        parts.append(textwrap.dedent("\n".join(_edited(lines, begin, end, inside))).strip())
    return "\n\n".join(parts)


def _edited(lines: list[str], begin: int, end: int, edits: Edits) -> Iterator[str]:
    at = begin
    while at < end:
        if at in edits:
            at, instead = edits[at]
            yield from instead
        else:
            yield lines[at]
            at += 1


def _outlines(lines: list[str], definitions: Any) -> Edits:
    return {
        _first_line(node): (node.end_lineno or node.lineno, _outline(lines, node))
        for nodes in definitions
        for node in nodes
    }


def _outline(lines: list[str], node: ast.ClassDef | Function) -> list[str]:
    """Decorators, signature, the first line of the docstring and three dots."""
    first, begin = node.body[0], _first_line(node)
    if first.lineno == node.lineno:  # all on one line
        return lines[begin : node.end_lineno]
    end = first.lineno - 1  # comments before the body are no part of the signature
    while end > node.lineno and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    indent = " " * first.col_offset
    said = (ast.get_docstring(node) or "").strip().partition("\n")[0]
    head = lines[begin : max(end, node.lineno)]
    return [*head, f'{indent}"""{said}"""', f"{indent}..."] if said else [*head, f"{indent}..."]


def _first_line(node: ast.stmt) -> int:
    """Counted from 0, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
