"""Every block of the page on integrations runs, in order, and what it says of extras is so."""

import os
import re
import tomllib
from pathlib import Path

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from dartboard.integrations import notes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text()


def test_the_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 12
    for block in blocks:
        exec(compile(block, "docs/integrations.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "model:all-MiniLM-L6-v2" in printed
    filtered = [line for line in printed.splitlines() if line.startswith("['notes/")]
    assert len(filtered) == 2 and not any("notes/cups.txt" in line for line in filtered)


def test_the_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r'pip install -e "\.\[(.*?)\]"', PAGE)
    assert len(named) == 3 and set(named) <= set(extras)


def test_every_key_of_a_note_is_explained():
    for text in (PAGE, notes.__doc__):
        for key in re.findall(r'^            "(\w+)":', Path(notes.__file__).read_text(), flags=re.MULTILINE):
            assert re.search(rf"\b{key}\b", text), key
