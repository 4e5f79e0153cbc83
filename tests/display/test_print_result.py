"""How a search result looks: no heading runs over its line."""

import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from dartboard.display.terminal import print_result
from dartboard.types import Chunk, RetrievalResult


def shown(width, **metadata):
    console = Console(file=io.StringIO(), width=width, highlight=False)
    chunk = Chunk("id", "A passage of a few words.", np.ones(3), metadata)
    print_result(console, RetrievalResult("?", [chunk], [1.0]), explain=False)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("heading", ["Short", "A long heading " * 12, "長い見出し" * 30, "two\nlines"])
def test_a_heading_ends_with_its_line(width, heading):
    title, passage, *_ = shown(width, source="docs/keys.md", start_line=7, section=heading)
    assert title.startswith("1. docs/keys.md:7  ") and cell_len(title) <= width
    assert title.rstrip().endswith("…") == (cell_len(heading) > width - 19)
    assert passage == "   A passage of a few words."


def test_where_a_passage_stands_is_never_cut():
    source = "a/" * 34 + "file.md"
    title, passage, *_ = shown(80, source=source, title="No room for this heading")
    assert title == f"1. {source}" and passage.endswith("words.")
