"""Shares are mappings, put together on demand."""

import pytest

from dartboard.retrievers import Share
from dartboard.retrievers.shares import MemberShares, OwnShares
from dartboard.types import Hit

WORDS = OwnShares("words", [Hit("a", 3.0), Hit("b", 1.0)], {})
BOTH = MemberShares(
    {
        "words": WORDS,
        "deep": OwnShares("deep", [Hit("c", 0.5), Hit("a", 0.4)], {"a": {"words": Share(7, 0.1)}}),
    }
)


def test_a_retrievers_own():
    assert dict(WORDS) == {"a": {"words": Share(1, 3.0)}, "b": {"words": Share(2, 1.0)}}
    assert len(WORDS) == 2 and "c" not in WORDS


def test_members_and_theirs_even_of_the_same_name():
    assert dict(BOTH) == {
        "a": {"words": Share(1, 3.0), "deep": Share(2, 0.4), "deep/words": Share(7, 0.1)},
        "b": {"words": Share(2, 1.0)},
        "c": {"deep": Share(1, 0.5)},
    }
    assert len(BOTH) == 3
    with pytest.raises(KeyError):
        BOTH["d"]
