"""What MkDocs calls while it builds the site: pages that are made from code, and formulas.

Nothing here asks the network.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from mkdocs.config.defaults import MkDocsConfig  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

from tools.pages import command_line, formulas, python_reference, rest, settings  # noqa: E402

PYTHON = "reference/python/"
"""Stands in the navigation for the pages of the Python reference."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the navigation of the Python reference, and have formulas drawn."""
    config.nav = _filled(config.nav)
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "math", "class": "formula", "format": formulas.block})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that no file holds."""
    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def generated() -> dict[str, str]:
    """Every page that is made from code: its path in the documentation, its Markdown."""
    makers = (python_reference, command_line, rest, settings)
    return {path: text for maker in makers for path, text in maker.pages().items()}


def _filled(entry: Any) -> Any:
    if entry == PYTHON:
        return python_reference.navigation()
    if isinstance(entry, list):
        return [_filled(one) for one in entry]
    if isinstance(entry, dict):
        return {title: _filled(value) for title, value in entry.items()}
    return entry
