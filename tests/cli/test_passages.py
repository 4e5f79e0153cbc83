"""How a search result looks: no heading runs over its line."""

import io

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from dartboard.cli.passages import print_result
from dartboard.types import Chunk, RetrievalResult
from tests.tea import QUERY, filled


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


def printed(result, *, explain=False):
    console = Console(file=io.StringIO(), width=90, highlight=False)
    print_result(console, result, explain=explain)
    return console.file.getvalue()


def test_several_questions_and_what_was_seen():
    found = filled(retriever="dense").search(QUERY, k=3, also=["how is coffee roasted"], seen=["d"])
    for explain in (False, True):
        lines = [line.strip() for line in printed(found, explain=explain).splitlines()]
        at = lines.index("coffee is roasted dark")
        assert lines[at + 1] == "for: how is coffee roasted" and f"for: {QUERY}" in lines
        covered = [line.split(" of ")[1] for line in lines if line.startswith("covers")]
        assert covered[-2:] == [f"“{QUERY}”", "“how is coffee roasted”"]
        assert any(line.endswith("% was covered before, by what was seen") for line in lines)
    assert "for: " not in printed(filled(retriever="dense").search(QUERY, k=3))


def test_nothing_new_is_not_a_matter_of_tokens():
    nothing = filled().search(QUERY, seen=list("abcdefghij"))
    assert printed(nothing).startswith("Nothing new: nothing in the index matches and adds anything")
    assert "allow more tokens" in printed(filled().search(QUERY, token_budget=1, tokenizer=len))


def test_copies_that_differ_are_always_named_and_others_where_it_is_explained():
    found = filled(retriever="dense").search(QUERY, k=1)
    copies = [[{"id": "x", "year": 1, "differs": [["5", "6"]]}, {"id": "y", "year": 2}]]
    found = found.with_explanation(copies=copies)
    assert 'differs: "5" vs "6" in x (year 1)' in printed(found) and "copy: y" not in printed(found)
    assert "copy: y (year 2)" in printed(found, explain=True)


def test_a_sigma_that_is_too_wide_is_named_first():
    result = filled().search(QUERY, k=2, sigma=1.0)
    (warning,) = result.explanation.warnings
    assert printed(result).startswith(warning)
    assert warning in printed(result, explain=True)
    assert warning not in printed(filled().search(QUERY, k=2))
