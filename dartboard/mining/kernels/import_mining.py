"""Static import mining: what a solution imports from the corpus, and uses.

The file is read by ``ast`` and never run. Each use of an imported name, ``Agent`` or
``agents.llm_agent.LlmAgent``, is followed to the place of definition by the corpus, which knows re-exports
and aliases; the first class or function on the way is what counts, a method belongs to its class. Scopes are
respected: a parameter that is called like an import is another thing. What is imported and never used is
told apart, and so is what a star brought in.

It is quick and needs no judge, and it includes too much where an import is a convenience.
"""

import ast
from dataclasses import dataclass
from itertools import takewhile

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus
from dartboard.mining.imported_names import ImportedNames, is_module, is_within, resolve


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
