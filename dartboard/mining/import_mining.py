"""Static import mining: what a solution imports from the corpus, and uses.

The file is read by ``ast`` and never run. Each use of an imported name, ``Agent`` or
``agents.llm_agent.LlmAgent``, is followed to the place of definition by the corpus, which knows re-exports
and aliases; the first class or function on the way is what counts, a method belongs to its class. Scopes are
respected: a parameter that is called like an import is another thing. What is imported and never used is
told apart, and so is what a star brought in.

It is quick and needs no judge, and it includes too much where an import is a convenience.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.corpora.package_source import dotted

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True)
class ImportedNames:
    """Walks a file, scope by scope, and follows names to imports.

    A name means what the innermost scope that binds it says: a parameter or a local variable hides an import
    of the same name, and a class's own names are not seen by its methods. Within one scope an import wins
    over assignments, as in ``try: from x import A`` … ``except ImportError: A = None``.

    ``used`` are dotted names from the top of a package; ``free`` are names that nothing in the file binds;
    ``stars`` are modules that were imported as a whole; ``places`` is each use with its dotted name, and
    ``loose`` each use of a free name.
    """

    used: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    places: list[tuple[ast.expr, str]] = field(default_factory=list)
    loose: list[ast.expr] = field(default_factory=list)
    _imported: dict[tuple[int, str], str] = field(default_factory=dict)
    _touched: set[tuple[int, str]] = field(default_factory=set)
    _scopes: list[tuple[Scope, dict[str, str | None]]] = field(default_factory=list)

    @property
    def unused(self) -> set[str]:
        """Targets of imports whose name is never read."""
        return {target for key, target in self._imported.items() if key not in self._touched}

    def read(self, scope: Scope) -> None:
        """One scope and what is inside it."""
        bindings = self._bindings(scope)
        self._scopes.append((scope, bindings))
        for child in _inside(scope):
            self._visit(child)
        self._scopes.pop()

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for child in _outside(node):
                self._visit(child)
            self.read(node)
        elif isinstance(node, ast.Attribute) and (name := dotted(node)):
            self._use(name, node)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._use(node.id, node)
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(child)
            for annotation in _quoted(node):
                self._visit(annotation)

    def _use(self, name: str, node: ast.expr) -> None:
        first, _, rest = name.partition(".")
        innermost = len(self._scopes) - 1
        for depth in range(innermost, -1, -1):
            scope, bindings = self._scopes[depth]
            # The names of a class's body are not seen by its methods.
            if first not in bindings or (isinstance(scope, ast.ClassDef) and depth != innermost):
                continue
            self._touched.add((id(scope), first))
            if (target := bindings[first]) is not None:
                self.used.add(used := ".".join(filter(None, [target, rest])))
                self.places.append((node, used))
            return
        if not hasattr(builtins, first):
            self.free.add(first)
            self.loose.append(node)

    def _bindings(self, scope: Scope) -> dict[str, str | None]:
        """Names that a scope binds: imports with their target, all others with None."""
        bound: dict[str, str | None] = dict.fromkeys(_parameters(scope))
        for node in _own(scope):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.setdefault(node.id, None)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                bound.setdefault(node.name, None)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node, scope, bound)
        for node in _own(scope):
            if isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    bound.pop(name, None)
        return bound

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, bound: dict[str, str | None]) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                if node.level:
                    bound[alias.asname or alias.name] = None
                    continue
                if alias.name == "*":
                    self.stars.add(node.module or "")
                    continue
                name, target = alias.asname or alias.name, f"{node.module}.{alias.name}"
                self._imported[id(scope), name] = target
            else:
                whole = alias.name.partition(".")[0]
                name, target = alias.asname or whole, alias.name if alias.asname else whole
                self._imported.setdefault((id(scope), name), alias.name)
            bound[name] = target


def _inside(scope: Scope) -> Iterator[ast.AST]:
    """What is evaluated within a scope."""
    yield from [scope.body] if isinstance(scope, ast.Lambda) else scope.body


def _outside(node: Scope) -> Iterator[ast.AST]:
    """What a definition evaluates where it stands: decorators, bases, defaults, annotations."""
    if isinstance(node, ast.ClassDef):
        yield from [*node.decorator_list, *node.bases, *node.keywords]
    elif isinstance(node, ast.Lambda):
        yield node.args
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from [*node.decorator_list, node.args]
        if node.returns is not None:
            yield ast.AnnAssign(ast.Name("_", ast.Store()), node.returns, None, 1)


def _own(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the scopes inside it, whose names they are."""
    waiting = list(_inside(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting[:0] = list(_outside(node))
        else:
            waiting[:0] = list(ast.iter_child_nodes(node))


def _parameters(scope: Scope) -> Iterator[str]:
    if isinstance(scope, _FUNCTIONS):
        arguments = scope.args
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            yield one.arg
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                yield rest.arg


def _quoted(node: ast.AST) -> Iterator[ast.AST]:
    """The expression of an annotation in quotes: ``agent: "LlmAgent"``."""
    annotation = node.annotation if isinstance(node, ast.arg | ast.AnnAssign) else None
    for part in ast.walk(annotation) if annotation is not None else ():
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            try:
                yield ast.parse(part.value, mode="eval").body
            except (SyntaxError, ValueError):
                continue


def resolve(name: str, corpus: Corpus) -> Document | None:
    """The first class or function on the way along a dotted name, else the module that it names or that
    assigns it."""
    parts = name.split(".")
    assigns = None
    for cut in range(1, len(parts) + 1):
        document = corpus.get(prefix := ".".join(parts[:cut]))
        if document is not None and not is_module(document):
            return document
        if document is not None and (document.fqn != prefix or prefix == name):
            assigns = document
    return assigns


def is_module(document: Document) -> bool:
    """Whether a document is of a whole module."""
    return document.metadata.get("kind") == "module"


def is_within(name: str, package: str) -> bool:
    """Whether a dotted name is of a package; none is of the package without a name."""
    return bool(package) and (name == package or name.startswith(f"{package}."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportKernel:
    """``contexts`` are names of documents; ``unknown`` uses of the package that the corpus has nothing for.

    ``stars`` are modules imported as a whole; what is used of them is in ``contexts`` if the corpus has it.
    """

    case: str
    contexts: tuple[str, ...]
    unused: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    stars: tuple[str, ...] = ()


def imports_kernel(case: Case, corpus: Corpus) -> ImportKernel:
    """The kernel by the case's solution.

    Args:
        case: has a solution.
        corpus: what imports are looked up in.

    Raises:
        DatasetError: the case has no solution, or it is not Python.
    """
    if case.solution is None:
        raise DatasetError(f"{case.place or 'a case'}: {case.id!r} has no solution file to read imports from")
    try:
        return imports_of(case.solution, corpus, case=case.id)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DatasetError(f"{case.place or case.id}: the solution is not Python: {error}") from error


def imports_of(source: str, corpus: Corpus, *, case: str = "") -> ImportKernel:
    """The same of any source text; one that is not Python raises SyntaxError."""
    reading = ImportedNames()
    reading.read(ast.parse(source))
    package = common_package(corpus)
    found: set[str] = set()
    unknown: set[str] = set()
    for name in sorted(reading.used):
        document = resolve(name, corpus)
        if document is not None:
            found.add(document.fqn)
        elif is_within(name, package):
            unknown.add(name)
    stars = sorted(star for star in reading.stars if is_within(star, package))
    for star in stars:
        for name in sorted(reading.free):
            if (document := corpus.get(f"{star}.{name}")) is not None and not is_module(document):
                found.add(document.fqn)
    return ImportKernel(
        case=case,
        contexts=tuple(sorted(found)),
        unused=tuple(sorted(name for name in reading.unused if is_within(name, package))),
        unknown=tuple(sorted(unknown)),
        stars=tuple(stars),
    )


def common_package(corpus: Corpus) -> str:
    """The dotted name that all documents' names begin with; "" where they share nothing."""
    names = sorted(one.fqn.split(".") for one in corpus)
    # What the first and the last of sorted names share, all between them share, too.
    ends = zip(names[0], names[-1], strict=False) if names else ()
    return ".".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
