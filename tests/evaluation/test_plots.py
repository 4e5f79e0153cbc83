"""Systems under several conditions, as a picture that works inside a page and alone."""

import re

import pytest

from dartboard.errors import InvalidInputError
from dartboard.evaluation.plot_style import standalone
from dartboard.evaluation.plots import condition_lines


def interval(mean):
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.05}


SYSTEMS = {
    "cosine": [interval(1.0), interval(0.5), None],
    "dartboard": [interval(0.95), interval(0.9), interval(0.92)],
    "mmr-0.7": [None, None, None],
}


def drawn(**more):
    return condition_lines(
        ["clean", "copies", "edits"], SYSTEMS, reference="dartboard", quantity="share", title="Shares", **more
    )


def test_a_line_for_every_system_that_has_values():
    picture = drawn(level=(1.0, "what it was"))
    assert picture.startswith("<svg") and 'aria-label="Shares"' in picture
    written = re.findall(r">([^<>]+)</text>", picture)
    assert {"clean", "copies", "edits", "cosine", "dartboard", "share"} <= set(written)
    assert "mmr-0.7" not in written and any("what it was" in text for text in written)
    assert "what it was" not in drawn()


def test_the_same_values_give_the_same_bytes():
    assert drawn() == drawn()


def test_alone_it_brings_its_own_colours_and_paper():
    picture = standalone(drawn())
    assert "currentColor" not in picture and "var(" not in picture and "inherit" not in picture
    assert re.match(r"<svg [^>]*><rect [^>]*fill=\"#ffffff\"/>", picture)


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="'a' has 1 values for 2 conditions"):
        condition_lines(["x", "y"], {"a": [interval(1.0)]}, reference="a", quantity="q", title="t")


def test_one_system_alone():
    only = {"dartboard": SYSTEMS["dartboard"]}
    picture = condition_lines(["a", "b", "c"], only, reference="dartboard", quantity="q", title="t")
    assert ">dartboard</text>" in picture
