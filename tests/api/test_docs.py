"""docs/api.md: every example runs against a real server, in order; the settings are listed on the site.

And ``/docs``, the page that shows the API in a browser (``tests/web/test_docs_page.py`` uses it in one).
"""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import httpx
import pytest

from dartboard.api.app import create_app
from dartboard.api.middleware import CONTENT_SECURITY_POLICY
from dartboard.api.settings import ServiceSettings
from tests.llm.chat_server import ModelServer
from tools.pages import settings

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
SHOWN = dict(re.findall(r"^```bash\n([^`]*?)^```\n\n```json\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE))
VARIES = ("execution_time_ms", "request_id")
HERE = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """``dartboard serve`` as a user starts it; its address, its folder and what Python examples share."""
    folder = tmp_path_factory.mktemp("docs")
    log = (folder / "log.txt").open("w")
    model = ModelServer()
    process = subprocess.Popen(
        [sys.executable, "-m", "dartboard", "serve", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "DARTBOARD_DATA": str(folder / "data")}
        | {"DARTBOARD_ANSWER_MODEL": f"openai:llama3.1@{model.url}/v1"},
    )
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, (line, (folder / "log.txt").read_text())
    shared: dict = {}
    yield found.group(), folder, shared
    if "api" in shared:
        shared["api"].close()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    log.close()
    model.__exit__()
    assert process.returncode == 0


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=lambda number: f"{number}-{BLOCKS[number][0]}")
def test_examples_run(server, number):
    address, folder, shared = server
    kind, code = BLOCKS[number]
    shown = SHOWN.get(code)
    code = code.replace(HERE, address)
    if kind == "python":
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), shared)
        return
    strict = 'set -euo pipefail; curl() { command curl --fail-with-body "$@"; }\n'
    done = subprocess.run(
        ["bash", "-c", strict + code], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if shown:
        _compare(json.loads(shown), _last_value(done.stdout), "")


def test_the_api_page_is_made_of_our_own_files_under_the_policy_of_all_pages(server):
    address = server[0]
    page = httpx.get(f"{address}/docs")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert re.findall(r"<style|<script(?![^>]* src=)|https?:|\son\w+=", page.text) == []
    files = re.findall(r'(?:src|href)="(static/[^"]+)"', page.text)
    assert len(files) >= 5
    for file in files:
        found = httpx.get(f"{address}/{file}")
        assert found.status_code == 200, file
        assert found.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert httpx.head(f"{address}/docs").status_code == 200


def test_the_error_that_is_shown_is_the_services(server):
    error = json.loads(re.findall(r"^```json\n(\{\"title\".*?)^```", TEXT, re.DOTALL | re.MULTILINE)[0])
    real = httpx.post(f"{server[0]}/api/dartboard/retrieve", json={"query": "a", "top_k": 101})
    _compare(error, real.json(), "")
    assert set(error) == set(real.json())


def test_most_answers_that_are_shown_are_compared():
    assert len(SHOWN) == len(re.findall(r"^```json$", TEXT, re.MULTILINE)) - 1 >= 3


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"score": 0.91}, {"score": 0.6103}),
        ({"a": 1}, {}),
        ([1, 2], [1]),
        ("wiki/…", "faq/a"),
        ({"a": [{"b": "c"}]}, {"a": [{"b": "d"}]}),
        (1, "1"),
    ],
)
def test_a_wrong_example_would_be_noticed(shown, real):
    with pytest.raises(AssertionError):
        _compare(shown, real, "")


def _last_value(text: str):
    """The last of several JSON values that follow one another."""
    value, at = None, 0
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
    return value


def _compare(shown, real, where: str) -> None:
    """What is shown is there: numbers as far as written, lists and texts up to where they end."""
    if isinstance(shown, dict):
        assert isinstance(real, dict) and set(shown) <= set(real), where
        for name, value in shown.items():
            if name not in VARIES:
                _compare(value, real[name], f"{where}.{name}")
    elif isinstance(shown, list):
        assert isinstance(real, list) and len(shown) <= len(real), where
        for number, value in enumerate(shown):
            _compare(value, real[number], f"{where}.{number}")
    elif isinstance(shown, float):
        digits = len(str(shown).partition(".")[2])
        assert isinstance(real, float) and abs(shown - real) <= 10.0**-digits, (where, shown, real)
    elif isinstance(shown, str) and shown.endswith("…"):
        assert isinstance(real, str) and real.startswith(shown[:-1]), (where, shown, real)
    else:
        assert type(shown) is type(real) and shown == real, (where, shown, real)


def test_every_operation_is_told_of():
    paths = create_app(ServiceSettings()).openapi()["paths"]
    assert [path for path in paths if not _is_told(path)] == [], "docs/api.md does not write these"
    assert not _is_told("/nowhere")


def _is_told(path: str) -> bool:
    """Whether the page writes the whole path, with names or with examples in the place of its names."""
    parts = re.split(r"\{[^}]*\}", path.removeprefix("/api/dartboard"))
    written = r"[^\s`/?]+".join(re.escape(part) for part in parts)
    return (
        re.search(rf"(?<![\w}}]){written}(?![\w/{{-])|/api/dartboard{written}(?![\w/{{-])", TEXT) is not None
    )


def test_the_table_of_settings_is_the_codes():
    page = settings.pages()[settings.PATH]
    for field in fields(ServiceSettings):
        variable = f"DARTBOARD_SERVE_{field.name.upper()}"
        assert f"| `{field.name}` | `{variable}` | {_shown(field.name, field.default)} | " in page
    assert "dartboard/api/settings.py" in TEXT


def _shown(name, default) -> str:
    if name == "workers":
        return "four times the processors, 4 to 32"
    if default in (None, (), "") or default is MISSING:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"
