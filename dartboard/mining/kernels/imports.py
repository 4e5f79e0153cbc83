"""Static import mining: what a solution imports from the corpus, and uses.

The file is read by ``ast`` and never run. Each use of an imported name, ``Agent`` or
``agents.llm_agent.LlmAgent``, is followed to the place of definition by the corpus, which knows re-exports
and aliases; the first class or function on the way is what counts, a method belongs to its class. Scopes are
respected: a parameter that is called like an import is another thing. What is imported and never used is
told apart, and so is what a star brought in.

It is quick and needs no judge, and it includes too much where an import is a convenience.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus, Document
from dartboard.mining.kernels.scopes import ImportedNames


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
    """The kernel by the case's solution; a case without one is an error."""
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
        elif _within(name, package):
            unknown.add(name)
    stars = sorted(star for star in reading.stars if _within(star, package))
    for star in stars:
        for name in sorted(reading.free):
            if (document := corpus.get(f"{star}.{name}")) is not None and not _is_module(document):
                found.add(document.fqn)
    return ImportKernel(
        case=case,
        contexts=tuple(sorted(found)),
        unused=tuple(sorted(name for name in reading.unused if _within(name, package))),
        unknown=tuple(sorted(unknown)),
        stars=tuple(stars),
    )


def resolve(name: str, corpus: Corpus) -> Document | None:
    """The first class or function on the way along a dotted name, else the module that it names or that
    assigns it."""
    parts = name.split(".")
    assigns = None
    for cut in range(1, len(parts) + 1):
        document = corpus.get(prefix := ".".join(parts[:cut]))
        if document is not None and not _is_module(document):
            return document
        if document is not None and (document.fqn != prefix or prefix == name):
            assigns = document
    return assigns


def common_package(corpus: Corpus) -> str:
    """The dotted name that all documents' names begin with; "" where they share nothing."""
    common: list[str] | None = None
    for document in corpus:
        parts = document.fqn.split(".")
        if common is None:
            common = parts
        shared = sum(1 for _ in _while_equal(common, parts))
        common = common[:shared]
    return ".".join(common or [])


def _while_equal(first: list[str], second: list[str]) -> Iterator[str]:
    for a, b in zip(first, second, strict=False):
        if a != b:
            return
        yield a


def _is_module(document: Document) -> bool:
    return document.metadata.get("kind") == "module"


def _within(name: str, package: str) -> bool:
    return bool(package) and (name == package or name.startswith(f"{package}."))
