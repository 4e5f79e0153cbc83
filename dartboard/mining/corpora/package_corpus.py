"""A Python package as documents: its modules, classes, functions and methods, each by its full name.

The name is that of the place of definition; every other name under which it can be imported leads there.
Private things are part of the module or class that holds them, unless a public module exports them.

Each line of a package stands in one document. A method with something to say (a docstring, or more than a
few lines) is a document of its own, and its class shows its signature and the first line of its docstring;
the module shows its classes and functions in the same way, and its imports only where it is a package,
since there they are what it offers. Fields, ``__init__`` and private methods stay
with their class. So a question about one method finds that method, a question about a class finds its
fields and an outline of what it can do, and no document answers for another by holding a copy of it.

A text that is still too long loses the bodies of its private methods, then its end, at the end of a line.
"""

import ast
import re
import textwrap
import tokenize
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.ingest import Problem
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from dartboard.mining.corpora.package_names import Meaning, PackageNames
from dartboard.mining.corpora.package_source import (
    Definition,
    Function,
    Located,
    Module,
    is_public,
    locate,
    module_files,
    read_module,
)

LONGEST = 16_000
"""Characters of a document's source, about 4,000 tokens: classes with many documented fields fit in."""

_MOST_ALIASES = 3
_FEW_LINES = 5
_BLANK = re.compile(r"\n\s*\n\s*\n\s*\n")

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
        located = locate(name, folder)
        self.version = located.version
        self.problems: list[Problem] = []
        modules = self._read(located)
        if not modules:
            raise DatasetError(f"{located.path} holds no Python file that can be read")
        self._names = PackageNames(modules)
        self._exported, self._longest = self._names.exported(), longest
        documents = [document for module in modules.values() for document in self._of_module(module)]
        super().__init__(f"{name} {located.version}".strip(), documents, model=model)

    def get(self, fqn: str) -> Document | None:
        """By definition, by any name it can be imported under, or by an attribute of either."""
        if (exact := super().get(fqn)) is not None:
            return exact
        meaning = self._names.meaning(fqn)
        if meaning is None:
            return None
        if (found := super().get(meaning.fqn)) is not None:
            return found
        if isinstance(meaning, Definition) and meaning.kind == "method":
            return super().get(meaning.fqn.rpartition(".")[0]) or super().get(meaning.module)
        return super().get(meaning.module) if isinstance(meaning, Definition) else None

    @property
    def modules(self) -> Mapping[str, Module]:
        """The parsed files by name."""
        return self._names.modules

    def meaning(self, name: str) -> Meaning | None:
        """The definition or module that a name leads to, whether or not it has a document."""
        return self._names.meaning(name)

    def _read(self, located: Located) -> dict[str, Module]:
        modules = {}
        for file in module_files(located):
            shown = file.path.relative_to(located.path.parent).as_posix()
            try:
                with tokenize.open(file.path) as stream:
                    source = stream.read()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # strange escapes in strings of others
                    modules[file.fqn] = read_module(file.fqn, source, is_package=file.is_package, file=shown)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.problems.append(Problem(shown, f"cannot be parsed: {error}", "damaged"))
        return modules

    def _of_module(self, module: Module) -> list[Document]:
        documents = []
        if is_public(module.fqn) and (text := module_text(module, self._shown, self._longest)):
            documents.append(self._document(module.fqn, "module", text, module, 1))
        for definition in module.definitions.values():
            if self._shown(definition):
                documents.append(self._of_definition(module, definition))
                documents.extend(
                    self._of_definition(module, member)
                    for member in definition.members.values()
                    if member is not None and has_own_document(member)
                )
        return documents

    def _shown(self, definition: Definition) -> bool:
        return is_public(definition.fqn) or definition.fqn in self._exported

    def _of_definition(self, module: Module, definition: Definition) -> Document:
        write = class_text if definition.kind == "class" else function_text
        line = definition.nodes[0].lineno
        text = write(module, definition, self._longest)
        return self._document(
            definition.fqn, definition.kind, text, module, line, signature=signature(definition)
        )

    def _document(self, fqn: str, kind: str, text: str, module: Module, line: int, **more: Any) -> Document:
        aliases = self._exported.get(fqn, [])[:_MOST_ALIASES]
        also = f"# also {', '.join(aliases)}\n" if aliases else ""
        facts = {"kind": kind, "module": module.fqn, "file": module.file, "line": line, **more}
        return Document(
            fqn, f"# {kind} {fqn}\n{also}{text}", facts | ({"aliases": aliases} if aliases else {})
        )


def has_own_document(member: Definition | None) -> bool:
    """A public method with a docstring or more than a few lines."""
    if member is None or not is_public(member.name):
        return False
    return any(
        ast.get_docstring(node) or (node.end_lineno or 0) - node.lineno > _FEW_LINES for node in member.nodes
    )


def class_text(module: Module, definition: Definition, longest: int = LONGEST) -> str:
    """A class with its documented methods as signatures."""
    members = [member for member in definition.members.values() if member is not None]
    own = [member for member in members if has_own_document(member)]
    text = _source(module, definition.nodes, _outlines(module, own))
    if len(text) > longest:
        others = [member for member in members if member.name != "__init__"]
        text = _source(module, definition.nodes, _outlines(module, others))
    return shortened(text, longest)


def function_text(module: Module, definition: Definition, longest: int = LONGEST) -> str:
    """A function or method in full; a method under the name of its class."""
    return shortened(_source(module, definition.nodes, {}), longest)


def module_text(module: Module, shown: Callable[[Definition], bool], longest: int = LONGEST) -> str:
    """A module's docstring, its documented definitions as signatures, all else as it is written."""
    edits: Edits = {}
    for definition in module.definitions.values():
        if shown(definition):
            edits |= _outlines(module, [definition])
    if not module.is_package:
        edits |= {
            _first_line(node): (node.end_lineno or node.lineno, [])
            for node in module.tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    body = module.tree.body
    begin = _first_line(body[0]) if body else len(module.lines)
    text = "\n".join(_edited(module.lines, begin, len(module.lines), edits))
    return shortened(_BLANK.sub("\n\n\n", text).strip(), longest)


def signature(definition: Definition) -> str:
    """``class LlmAgent(BaseAgent)``, ``async def run(self, name: str) -> int``: on one line."""
    try:
        return _signature(definition.nodes[-1])
    except RecursionError:  # a default of a thousand operators
        return definition.name


def _signature(node: ast.ClassDef | Function) -> str:
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


def _source(module: Module, nodes: Sequence[ast.ClassDef | Function], edits: Edits) -> str:
    parts = []
    for node in nodes:
        begin, end = _first_line(node), node.end_lineno or node.lineno
        inside = {start: edit for start, edit in edits.items() if begin < start < end}
        parts.append(textwrap.dedent("\n".join(_edited(module.lines, begin, end, inside))).strip())
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


def _outlines(module: Module, definitions: Sequence[Definition]) -> Edits:
    return {
        _first_line(node): (node.end_lineno or node.lineno, _outline(module.lines, node))
        for definition in definitions
        for node in definition.nodes
    }


def _outline(lines: list[str], node: ast.ClassDef | Function) -> list[str]:
    """Decorators, signature, the first line of the docstring and three dots."""
    first = node.body[0]
    begin = _first_line(node)
    if first.lineno == node.lineno:  # all on one line
        return lines[begin : node.end_lineno]
    head = lines[begin : max(_colon_line(lines, node, first.lineno), node.lineno)]
    indent = " " * first.col_offset
    said = (ast.get_docstring(node) or "").strip().partition("\n")[0]
    return [*head, f'{indent}"""{said}"""', f"{indent}..."] if said else [*head, f"{indent}..."]


def _colon_line(lines: list[str], node: ast.ClassDef | Function, body: int) -> int:
    """The line, counted from 1, on which the signature ends; comments before the body are no part of it."""
    end = body - 1
    while end > node.lineno and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _first_line(node: ast.stmt) -> int:
    """Counted from 0, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
