"""The executable check as a judge: can the case be solved by who knows these contexts alone?

A solver writes a candidate from the contexts, and the check runs it: it passes or it does not, and no opinion
comes into it. The default solver asks nobody (:mod:`dartboard.mining.judges.partial_solution`): it takes the
known solution without what no context tells of.

Where there is another judge, it is asked first: what it says NO to is not run, and the evidence of its YES is
kept. Cases without a check are its own. A check that passes with the help of nothing that was shown cannot
tell contexts apart, so it decides nothing: the verdict is UNSURE.

Running a check runs code that came with the registry, so nobody gets this judge without asking for it. It
runs in an empty folder, for a limited time and without the user's keys: isolation against accidents, not
against malice.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from threading import Lock

from dartboard.errors import DatasetError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case, Check
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Verdict, expected_usage, version_of
from dartboard.mining.judges.partial_solution import Candidate, PartialSolution

Solver = Callable[[Case, Sequence[Document]], Candidate | None]

_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_MOST_OUTPUT = 20_000


@dataclass(frozen=True, slots=True)
class CheckJudge:
    """YES where the check passes on what the solver writes. Equal candidates are run once.

    Args:
        otherwise: judges cases without a check, and is asked first about the others.
        solve: writes a candidate from a case and contexts, or None where it cannot.
    """

    otherwise: Judge | None = None
    solve: Solver = field(default_factory=lambda: PartialSolution())
    _ran: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """``check``, with the other judge's name where there is one."""
        return f"check({self.otherwise.name})" if self.otherwise else "check"

    @property
    def prompt_version(self) -> str:
        """The other judge's."""
        return version_of(self.otherwise) if self.otherwise else ""

    def expected(self, case: Case, contexts: Sequence[Document], attempt: int = 0) -> Usage:
        """What the other judge takes."""
        return expected_usage(self.otherwise, case, contexts, attempt) if self.otherwise else Usage()

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The check's verdict; UNSURE where there is no check, no candidate, or the check is broken."""
        if case.check is None and self.otherwise is not None:
            return self.otherwise.judge(case, contexts, attempt=attempt)
        signed = Verdict(label="UNSURE", judge=self.name, prompt_version=self.prompt_version)
        if case.check is None:
            return replace(signed, reason="the case has no executable check")
        if case.solution is not None and (told := self._trouble(case, case.check, case.solution)):
            return replace(signed, reason=f"the check fails with the known solution, too: {told}")
        said = ""
        if self.otherwise is not None:
            screened = self.otherwise.judge(case, contexts, attempt=attempt)
            if screened.label == "NO":
                return replace(screened, judge=self.name, reason=f"screened out: {screened.reason}")
            said = screened.evidence if screened.label == "YES" else ""
        candidate = self.solve(case, contexts)
        if candidate is None:
            return replace(signed, reason="there is no solution to check")
        evidence = said or candidate.evidence
        if told := self._trouble(case, case.check, candidate.code):
            return replace(signed, label="NO", missing=candidate.missing, reason=f"the check fails: {told}")
        if contexts and not evidence:
            reason = "the check passes by nothing that is shown: it cannot tell contexts apart"
            return replace(signed, reason=reason)
        return replace(signed, label="YES", evidence=evidence, reason="the check passes")

    def _trouble(self, case: Case, check: Check, code: str) -> str:
        key = case.id, code
        with self._lock:
            known = self._ran.get(key)
        if known is None:
            known = run_check(check, code)
            with self._lock:
                self._ran[key] = known
        return known


def run_check(check: Check, candidate: str) -> str:
    """Run the check on a candidate's code: "" where it passes, else the last line of what went wrong."""
    program = sys.executable if check.command[0] in ("python", "python3") else check.command[0]
    with (
        tempfile.TemporaryDirectory(prefix="dartboard-check-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as output,
    ):
        for name, text in {**check.files, check.candidate: candidate}.items():
            path = PurePosixPath(name)
            if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name:
                raise DatasetError(f"a check's files must stay in its folder, got {name!r}", field="files")
            file = Path(folder, *path.parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {
            "HOME": folder,
            "TMPDIR": folder,
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            # Output goes to a file: a process that the check left behind cannot hold it open for us.
            ended = subprocess.run(  # noqa: S603 - the case's own command, without a shell
                [program, *check.command[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=check.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "out of time"
        except OSError as error:
            raise DatasetError(
                f"a check cannot be started: {check.command[0]}: {error.strerror}", field="command"
            ) from error
        if ended.returncode == 0:
            return ""
        output.seek(max(0, output.tell() - _MOST_OUTPUT))
        lines = [
            line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()
        ]
        return lines[-1][:300] if lines else f"exit code {ended.returncode}"
