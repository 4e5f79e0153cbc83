"""The known solution without what no context tells of: what cannot be known cannot be used.

Every use of an imported name is followed to its document, as static import mining does it: ``Boiler`` after
``from kettle import Boiler``, and ``kettle.Boiler`` after ``import kettle`` alike. A use whose document is
not among the contexts becomes a name that nobody knows, and imports that nothing known needs go. A needed
name that is missing then fails the check, and an import that nothing needs does not, which is where a check
sees more than the list of imports.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.import_mining import is_within, resolve, uses
from dartboard.mining.judges.words import ELLIPSIS

UNKNOWN = "unknown_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Code to check, the evidence that it rests on, and what could not be known for it."""

    code: str
    evidence: str = ""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PartialSolution:
    """The known solution without what no context tells of.

    A ``corpus`` tells which document a name belongs to; without one, documents are found by the last part of
    their name.
    """

    corpus: Corpus | None = None

    def __call__(self, case: Case, contexts: Sequence[Document]) -> Candidate | None:
        """The candidate; None for a case without a solution."""
        if case.solution is None:
            return None
        try:
            tree = ast.parse(case.solution)
        except (SyntaxError, ValueError) as error:
            raise DatasetError(
                f"{case.place or case.id}: the solution is not Python: {error}", field="solution"
            ) from error
        packages = {package_of(name) for name in (*case.targets, *(one.fqn for one in contexts))}
        cut = _Cut(packages, contexts, self.corpus)
        code = cut.without_unknown(tree)
        told = [_first_line(context.text) for context in contexts if context.fqn in cut.used]
        evidence, missing = ELLIPSIS.join(dict.fromkeys(told)), ", ".join(dict.fromkeys(cut.missing))
        return Candidate(code=code, evidence=evidence, missing=missing)


def package_of(name: str) -> str:
    """The package that a qualified name belongs to; ``google.adk`` and not ``google``, which many share."""
    parts = name.split(".")
    spec = PathFinder.find_spec(parts[0])
    namespace = spec is not None and spec.origin is None
    return ".".join(parts[:2] if namespace else parts[:1])


class _Cut(ast.NodeTransformer):
    """Takes out of a tree what no known document tells of."""

    def __init__(self, packages: set[str], known: Sequence[Document], corpus: Corpus | None) -> None:
        self._packages, self._known, self._corpus = packages, known, corpus
        self._unknown: set[int] = set()
        self._uses: dict[str, bool] = {}
        self.used: set[str] = set()
        self.missing: list[str] = []

    def without_unknown(self, tree: ast.Module) -> str:
        """The code that is left."""
        for use in uses(tree, self._corpus):
            if not self._knows(use.name):
                self._unknown.add(id(use.node))
        return ast.unparse(ast.fix_missing_locations(self.visit(tree)))

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        """``import package.module`` stays where something known is used through it, or it is not used."""
        return _of(node, [alias for alias in node.names if self._keeps_module(alias)])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        """``from package import name`` stays with a document of that name, or of what is used through it."""
        if node.level:
            return node
        kept = [a for a in node.names if a.name == "*" or self._keeps_name(f"{node.module}.{a.name}")]
        return _of(node, kept)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A use through a module or a class."""
        if id(node) not in self._unknown:
            return self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            return ast.Name(UNKNOWN, ast.Load())
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name):
            root.id = UNKNOWN
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """A use of a name."""
        return ast.Name(UNKNOWN, node.ctx) if id(node) in self._unknown else node

    def _keeps_module(self, alias: ast.alias) -> bool:
        if self._package(alias.name) is None:
            return True
        bound = alias.name if alias.asname else alias.name.partition(".")[0]
        through = [known for name, known in self._uses.items() if is_within(name, bound)]
        return any(through) if through else any(is_within(one.fqn, alias.name) for one in self._known)

    def _keeps_name(self, name: str) -> bool:
        through = [known for used, known in self._uses.items() if is_within(used, name)]
        return any(through) if through else self._knows(name)

    def _knows(self, name: str) -> bool:
        """Whether a document tells of a name; what is not of the corpus's package is always known."""
        package = self._package(name)
        if package is None:
            return True
        if name not in self._uses:
            tells = self._tellers(name, package)
            self.used.update(tells)
            self._uses[name] = bool(tells)
            if not tells:
                self.missing.append(self._needed(name))
        return self._uses[name]

    def _tellers(self, name: str, package: str) -> list[str]:
        document = self._document(name)
        if document is not None:
            return [one.fqn for one in self._known if one.fqn == document]
        return [one.fqn for one in self._known if _guessed(one, name, package)]

    def _needed(self, name: str) -> str:
        """The shortest beginning of a dotted name that leads to the same document."""
        document, parts = self._document(name), name.split(".")
        if document is None:
            return name
        prefixes = (".".join(parts[:cut]) for cut in range(1, len(parts)))
        return next((prefix for prefix in prefixes if self._document(prefix) == document), name)

    def _document(self, name: str) -> str | None:
        found = resolve(name, self._corpus) if self._corpus is not None else None
        return found.fqn if found is not None else None

    def _package(self, name: str) -> str | None:
        return next((one for one in self._packages if is_within(name, one)), None)


def _of(node: ast.Import | ast.ImportFrom, kept: list[ast.alias]) -> ast.stmt:
    node.names = kept
    return node if kept else ast.Pass()


def _guessed(one: Document, name: str, package: str) -> bool:
    """Whether a document seems to tell of a name that no corpus knows: by its last part, or by its text."""
    if one.fqn == name:
        return True
    for module, part in _parts(name, package):
        if one.fqn == module and re.search(rf"\b{re.escape(part)}\b", one.text):
            return True
        if is_within(one.fqn, package) and one.fqn.rpartition(".")[2] == part:
            return True
    return False


def _parts(name: str, package: str) -> Iterator[tuple[str, str]]:
    """Modules on the way along a name, and what is taken of each; up to the first class, by its capital."""
    module = package
    for part in name.removeprefix(package).split(".")[1:]:
        yield module, part
        if part[:1].isupper():
            return
        module = f"{module}.{part}"


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
