"""Running a case's check: in an empty folder, for a limited time, with an end for all that it started.

This is isolation against accidents, not against malice: the code runs as this user. Run checks that you
trust, and candidates that a model wrote only where that is safe, such as in a container.
"""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import IO

from dartboard.errors import DatasetError
from dartboard.mining.cases import Check

_MOST_OUTPUT = 20_000
_LARGEST_FILE = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a check ended; ``code`` is None where it was stopped for time."""

    code: int | None
    output: str

    @property
    def passed(self) -> bool:
        """Exit code 0."""
        return self.code == 0

    @property
    def told(self) -> str:
        """The end of it in one line."""
        if self.code is None:
            return "out of time"
        lines = [line for line in self.output.strip().splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else f"exit code {self.code}"


def run_check(check: Check, candidate: str | None) -> Outcome:
    """Run the check on a candidate's code, or on its files alone."""
    files = dict(check.files) if candidate is None else {**check.files, check.candidate: candidate}
    with tempfile.TemporaryDirectory(prefix="dartboard-check-", ignore_cleanup_errors=True) as folder:
        for name, text in files.items():
            path = Path(folder, *_parts(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _run(check, Path(folder))


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise DatasetError(f"a check's files must stay in its folder, got {name!r}")
    return path.parts


def _run(check: Check, folder: Path) -> Outcome:
    if not check.command:
        raise DatasetError("a check needs a command, got an empty one")
    program = sys.executable if check.command[0] in ("python", "python3") else check.command[0]
    try:
        process = subprocess.Popen(  # noqa: S603 - the case's own command, without a shell
            [program, *check.command[1:]],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise DatasetError(f"a check cannot be started: {check.command[0]}: {error.strerror}") from error
    _limit(process.pid)
    reader = _Reader(process)
    try:
        code: int | None = process.wait(check.timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _end(process)
    return Outcome(code=code, output=reader.text())


def _environment(folder: Path) -> dict[str, str]:
    """No keys, no settings of the user's: only what Python needs to start."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    fixed = {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return kept | fixed


def _limit(process: int) -> None:
    """No large files and no core dumps, where the system can say so."""
    with suppress(ImportError, AttributeError, OSError):
        import resource

        resource.prlimit(process, resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
        resource.prlimit(process, resource.RLIMIT_CORE, (0, 0))


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the whole group: also what the check left running."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:  # pragma: no cover - Windows
            process.kill()
    process.wait()


class _Reader:
    """Takes all output, so that nothing blocks, and keeps the beginning and the end of it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None  # noqa: S101 - it was asked for as a pipe
        self._pipe: IO[bytes] = process.stdout
        self._kept = bytearray()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was written, with the middle left out of very much."""
        self._thread.join(5)
        return bytes(self._kept).decode("utf-8", "replace")

    def _read(self) -> None:
        with self._pipe:
            while part := self._pipe.read1(65536):  # type: ignore[attr-defined]
                self._kept += part
                if len(self._kept) > 2 * _MOST_OUTPUT:
                    del self._kept[_MOST_OUTPUT // 2 : len(self._kept) - _MOST_OUTPUT // 2]
