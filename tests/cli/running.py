"""Run the command line as a user does: another process, a pipe, a cache of its own."""

import os
import subprocess
import sys
from pathlib import Path

_DROPPED = ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "PYTHONIOENCODING")

PATIENCE = 300
"""Seconds that a command may take on a machine that has other things to do."""


def environment(cache: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    return kept | {"DARTBOARD_CACHE": str(cache), "COLUMNS": "80", "PYTHONUTF8": "1"} | more


def run(*arguments: str, cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dartboard", *arguments],
        env=environment(cache, **more),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )


def start(*arguments: str, cache: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dartboard", *arguments],
        env=environment(cache, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
