"""How many examples of a property are tried: a sample in ``make test``, all in ``make test-deep``."""

import os

from hypothesis import settings

QUICK = "DARTBOARD_QUICK" in os.environ
DEEP = "DARTBOARD_DEEP_CASES" in os.environ
MOST = 10 if QUICK else 10_000 if DEEP else 30


def examples(number: int) -> settings:
    """At most so many examples, each of which may take as long as it takes."""
    return settings(max_examples=min(number, MOST), deadline=None)
