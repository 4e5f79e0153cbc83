"""One encoding of the corpus for the whole room: begun, interrupted, and finished by a second run."""

import signal
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import PATIENCE, run, start
from tests.waiting import wait_until


@dataclass(frozen=True)
class History:
    cache: Path
    interrupted_code: int
    interrupted_output: str
    interrupted_errors: str
    kept: int
    resumed_code: int
    resumed_output: str
    resumed_errors: str


def kept_vectors(cache: Path) -> int:
    file = cache / "vectors-2.sqlite"
    if not file.exists():
        return 0
    with closing(sqlite3.connect(file)) as connection:
        try:
            return connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


@pytest.fixture(scope="session")
def history(tmp_path_factory) -> History:
    cache = tmp_path_factory.mktemp("cache")
    with start("demo", cache=cache) as process:
        wait_until(lambda: kept_vectors(cache) or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    kept = kept_vectors(cache)
    resumed = run("demo", cache=cache)
    return History(
        cache, process.returncode, output, errors, kept, resumed.returncode, resumed.stdout, resumed.stderr
    )


@pytest.fixture
def cache(history, monkeypatch) -> Path:
    """A folder with all vectors, for this process too."""
    monkeypatch.setenv("DARTBOARD_CACHE", str(history.cache))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return history.cache
