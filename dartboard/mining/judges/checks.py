"""The executable check as a judge: can the case be solved by who knows these contexts alone?

A solver writes a candidate from the contexts, and the check runs it: it passes or it does not, and no opinion
comes into it. The default solver asks nobody. It takes the known solution and leaves out every import from
the corpus's package that no context tells of, and the names with them: what cannot be known cannot be used.
A needed name that is missing then fails the check, and an import that nothing needs does not, which is where
it sees more than the list of imports.

Another judge can be the screen: what it says NO to is not run.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from threading import Lock

from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus, Document
from dartboard.mining.judges.base import OfflineJudge, expected_usage, version_of
from dartboard.mining.judges.quoting import ELLIPSIS
from dartboard.mining.judges.running import Outcome, run_check
from dartboard.mining.verdicts import Judge, Label, Usage, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Code to check, the evidence that it rests on, and what could not be known for it."""

    code: str
    evidence: str = ""
    missing: str = ""


Solver = Callable[[Case, Sequence[Document]], Candidate | None]


@dataclass(frozen=True, slots=True)
class CheckJudge(OfflineJudge):
    """YES where the check passes on what the solver writes. Equal candidates are run once."""

    solve: Solver = field(default_factory=lambda: KnownParts())
    screen: Judge | None = None
    _ran: dict[str, Outcome] = field(default_factory=dict, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """``check``, with the screen's name where there is one."""
        return f"check({self.screen.name})" if self.screen else "check"

    @property
    def prompt_version(self) -> str:  # type: ignore[override]
        """The screen's."""
        return version_of(self.screen) if self.screen else ""

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What the screen costs."""
        return expected_usage(self.screen, case, contexts) if self.screen else Usage()

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The check's verdict; UNSURE where there is no check, no candidate, or the check is broken."""
        if case.check is None:
            return self._unsure("the case has no executable check")
        if case.solution is not None and not (known := self._outcome(case, case.solution)).passed:
            return self._unsure(f"the check fails with the known solution, too: {known.told}")
        if self.screen is not None:
            screened = self.screen.judge(case, contexts, attempt=attempt)
            if screened.label == "NO":
                return replace(screened, judge=self.name, reason=f"screened out: {screened.reason}")
            return replace(self._checked(case, contexts), usage=screened.usage)
        return self._checked(case, contexts)

    def _checked(self, case: Case, contexts: Sequence[Document]) -> Verdict:
        candidate = self.solve(case, contexts)
        if candidate is None:
            return self._unsure("there is no solution to check")
        outcome = self._outcome(case, candidate.code)
        if outcome.passed:
            return self._verdict("YES", evidence=candidate.evidence, reason="the check passes")
        return self._verdict("NO", missing=candidate.missing, reason=f"the check fails: {outcome.told}")

    def _unsure(self, reason: str) -> Verdict:
        return self._verdict("UNSURE", reason=reason)

    def _verdict(self, label: Label, *, evidence: str = "", missing: str = "", reason: str = "") -> Verdict:
        return Verdict(
            label=label,
            evidence=evidence,
            missing=missing,
            reason=reason,
            judge=self.name,
            prompt_version=self.prompt_version,
        )

    def _outcome(self, case: Case, code: str) -> Outcome:
        key = hashlib.sha256(repr((case.check, code)).encode()).hexdigest()
        with self._lock:
            known = self._ran.get(key)
        if known is None and case.check is not None:
            known = run_check(case.check, code)
            with self._lock:
                self._ran[key] = known
        assert known is not None  # noqa: S101 - there is a check
        return known


@dataclass(frozen=True, slots=True)
class KnownParts:
    """The known solution without the imports that no context tells of.

    A ``corpus`` tells which document a re-exported name or an alias belongs to; without one, documents are
    found by the last part of their name.
    """

    corpus: Corpus | None = None

    def __call__(self, case: Case, contexts: Sequence[Document]) -> Candidate | None:
        """The candidate; None for a case without a solution."""
        if case.solution is None:
            return None
        try:
            tree = ast.parse(case.solution)
        except SyntaxError as error:
            raise DatasetError(f"{case.place or case.id}: the solution is not Python: {error}") from error
        packages = {package_of(name) for name in (*case.targets, *(one.fqn for one in contexts))}
        cut = _Cut(packages, contexts, self._document)
        code = ast.unparse(ast.fix_missing_locations(_Forget(cut.forgotten).visit(cut.visit(tree))))
        told = [_first_line(context.text) for context in contexts if context.fqn in cut.used]
        evidence, missing = ELLIPSIS.join(dict.fromkeys(told)), ", ".join(dict.fromkeys(cut.missing))
        return Candidate(code=code, evidence=evidence, missing=missing)

    def _document(self, name: str) -> str | None:
        found = self.corpus.get(name) if self.corpus is not None else None
        return found.fqn if found is not None else None


def package_of(name: str) -> str:
    """The package that a qualified name belongs to; ``google.adk`` and not ``google``, which many share."""
    parts = name.split(".")
    spec = PathFinder.find_spec(parts[0])
    namespace = spec is not None and spec.origin is None
    return ".".join(parts[:2] if namespace else parts[:1])


class _Cut(ast.NodeTransformer):
    """Takes imports out of a tree that no known document tells of."""

    def __init__(
        self, packages: set[str], known: Sequence[Document], document: Callable[[str], str | None]
    ) -> None:
        self._packages, self._known, self._document = packages, known, document
        self.used: set[str] = set()
        self.missing: list[str] = []
        self.forgotten: set[str] = set()

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        """``import package.module``: known with any document of it."""
        return self._cut(node, {id(alias): self._keeps(alias.name, None) for alias in node.names})

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        """``from package import name``: known with a document of that name, or of the whole module."""
        if node.level:
            return node
        module = node.module or ""
        return self._cut(node, {id(alias): self._keeps(module, alias.name) for alias in node.names})

    def _cut(self, node: ast.Import | ast.ImportFrom, kept: dict[int, bool]) -> ast.stmt:
        """The statement with the names that are kept; the names that others were used by are forgotten."""
        for alias in node.names:
            if not kept[id(alias)]:
                self.forgotten.add(alias.asname or alias.name.partition(".")[0])
        node.names = [alias for alias in node.names if kept[id(alias)]]
        return node if node.names else ast.Pass()

    def _keeps(self, module: str, name: str | None) -> bool:
        package = next((one for one in self._packages if _within(module, one)), None)
        if package is None:
            return True
        tells = [one.fqn for one in self._known if self._tells(one, module, name, package)]
        self.used.update(tells)
        if not tells:
            self.missing.append(module if name is None else f"{module}.{name}")
        return bool(tells)

    def _tells(self, one: Document, module: str, name: str | None, package: str) -> bool:
        """Whether a document tells of a module, or of a name in it."""
        if name is None:
            return _within(one.fqn, module)
        document = self._document(f"{module}.{name}")
        if document is not None:
            return one.fqn == document
        if one.fqn == module:
            return re.search(rf"\b{re.escape(name)}\b", one.text) is not None
        return _within(one.fqn, package) and one.fqn.rpartition(".")[2] == name


class _Forget(ast.NodeTransformer):
    """Puts a name that nobody knows in the place of those that cannot be known."""

    def __init__(self, forgotten: set[str]) -> None:
        self._forgotten = forgotten

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """A use of a name."""
        return ast.Name("unknown_name", node.ctx) if node.id in self._forgotten else node


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
