"""docs/api.md: every example runs against a real server, in order; its table of settings is the code's."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from dartboard.api.app import create_app
from dartboard.api.settings import ServiceSettings

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
HERE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """``dartboard serve`` as a user starts it; its address, its folder and what Python examples share."""
    folder = tmp_path_factory.mktemp("docs")
    log = (folder / "log.txt").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "dartboard", "serve", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "DARTBOARD_DATA": str(folder / "data")},
    )
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, (line, (folder / "log.txt").read_text())
    shared: dict = {}
    yield found.group(), folder, shared
    shared["api"].close()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    log.close()
    assert process.returncode == 0


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda number: f"{number}-{BLOCKS[number][0]}")
def test_examples_run(server, number):
    address, folder, shared = server
    kind, code = BLOCKS[number]
    code = code.replace(HERE, address)
    if kind == "python":
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), shared)
        return
    strict = 'set -euo pipefail; curl() { command curl --fail-with-body "$@"; }\n'
    done = subprocess.run(
        ["bash", "-c", strict + code], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_operation_is_told_of():
    for path in create_app(ServiceSettings()).openapi()["paths"]:
        for part in path.split("/"):
            assert "{" in part or part in TEXT, path


def test_the_table_of_settings_is_the_codes():
    assert settings_table() in TEXT, "write the table anew: python -m tests.api.test_docs"


def settings_table() -> str:
    rows = [f"| `{field.name}` | {_shown(field.name, field.default)} |" for field in fields(ServiceSettings)]
    return "\n".join(["| setting | default |", "|---|---|", *rows])


def _shown(name, default) -> str:
    if name == "workers":
        return "twice the processors, 2 to 8"
    if default is None or default == () or default is MISSING:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


if __name__ == "__main__":
    page = re.sub(
        r"(?<=<!-- settings -->\n).*?(?=\n<!-- end -->)", lambda _: settings_table(), TEXT, flags=re.DOTALL
    )
    PAGE.write_text(page, encoding="utf-8")
