"""Static import mining: what a solution imports from the corpus, and uses.

The file is read by ``ast`` and never run. Each use of an imported name, ``Agent`` or
``agents.llm_agent.LlmAgent``, is followed to the place of definition by the corpus, which knows re-exports
and aliases; the first class or function on the way is what counts, a method belongs to its class. A name that
is imported anywhere in the file means the import everywhere in it.

It is quick and needs no judge, and it includes too much where an import is a convenience.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Corpus, Document


@dataclass(frozen=True, slots=True)
class Use:
    """An expression that uses an import, and the dotted name that it means."""

    node: ast.expr
    name: str


def imports_kernel(case: Case, corpus: Corpus) -> tuple[str, ...]:
    """The names of the documents that a case's solution imports and uses.

    Raises:
        DatasetError: the case has no solution, or it is not Python.
    """
    if case.solution is None:
        raise DatasetError(
            f"{case.place or 'a case'}: {case.id!r} has no solution file to read imports from",
            field="solution",
        )
    try:
        return imports_of(case.solution, corpus)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DatasetError(
            f"{case.place or case.id}: the solution is not Python: {error}", field="solution"
        ) from error


def imports_of(source: str, corpus: Corpus) -> tuple[str, ...]:
    """The same of any source text; one that is not Python raises SyntaxError."""
    found = (resolve(use.name, corpus) for use in uses(ast.parse(source), corpus))
    return tuple(sorted({one.fqn for one in found if one is not None}))


def uses(tree: ast.Module, corpus: Corpus | None = None) -> list[Use]:
    """Every use of an imported name; what a star brought in counts where the corpus has it."""
    bound, stars = _imports(tree)
    found = []
    inner: set[int] = set()
    # Outer attributes come first: ``a.b.c`` is one use of ``a``.
    for node in _expressions(tree):
        name = dotted(node)
        if not name or id(node) in inner:
            continue
        inner.update(id(part) for part in ast.walk(node))
        first, _, rest = name.partition(".")
        if first in bound:
            found.append(Use(node, f"{bound[first]}.{rest}" if rest else bound[first]))
        elif corpus is not None and not hasattr(builtins, first):
            known = (f"{star}.{name}" for star in stars)
            starred = next((one for one in known if resolve(one, corpus) is not None), None)
            found += [Use(node, starred)] if starred else []
    return found


def resolve(name: str, corpus: Corpus) -> Document | None:
    """The first class or function on the way along a dotted name, else the module that it names or that
    assigns it."""
    parts = name.split(".")
    assigns = None
    for cut in range(1, len(parts) + 1):
        document = corpus.get(prefix := ".".join(parts[:cut]))
        if document is not None and document.metadata.get("kind") != "module":
            return document
        if document is not None and (document.fqn != prefix or prefix == name):
            assigns = document
    return assigns


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is of a package; none is of the package without a name."""
    return bool(package) and (name == package or name.startswith(f"{package}."))


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` for names and attributes of names, nothing for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _imports(tree: ast.Module) -> tuple[dict[str, str], list[str]]:
    """What each imported name means, and modules that were imported as a whole."""
    bound: dict[str, str] = {}
    stars = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                bound[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                if alias.name == "*":
                    stars.append(node.module or "")
                else:
                    bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return bound, stars


def _expressions(tree: ast.Module) -> Iterator[ast.expr]:
    """Names that are read and attributes, outer ones first; annotations in quotes are read, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            yield node
        quoted = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if isinstance(quoted, ast.expr):
            for part in ast.walk(quoted):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    try:
                        yield from _expressions(ast.parse(part.value))
                    except (SyntaxError, ValueError):
                        continue
