"""How large a filter may be, so that none of them keeps a store from answering others.

A store may have to look at every record with every comparison: 256 comparisons on 100,000 records in one
file take some ten seconds. The values of a list cost next to nothing there, whatever their number, since they
are looked up as a set; their limit bounds what is parsed, sent to a server and remembered.
"""

from dartboard.errors import InvalidInputError

MOST_COMPARISONS = 256
MOST_VALUES = 30_000
LONGEST_TEXT = 1_000_000
"""Characters of a filter as text."""


class Size:
    """What was counted of one filter so far; more than is allowed is refused at once."""

    __slots__ = ("_comparisons", "_values")

    def __init__(self) -> None:
        self._comparisons = 0
        self._values = 0

    def add(self, values: int = 0) -> None:
        """One more comparison, with so many values in its list."""
        self._comparisons += 1
        if self._comparisons > MOST_COMPARISONS:
            raise InvalidInputError(
                f"filter: more than {MOST_COMPARISONS} comparisons, which is the most allowed: ask for "
                "several values of one field with in […], or search in parts"
            )
        self._values += values
        check_values(self._values)


def check_values(count: int) -> None:
    """No more values in lists than are allowed."""
    if count > MOST_VALUES:
        raise InvalidInputError(
            f"filter: more than {MOST_VALUES:,} values in its lists, which is the most allowed: keep what "
            "they have in common as a field of its own, or search in parts"
        )


def check_text(text: str) -> None:
    """No longer than is allowed."""
    if len(text) > LONGEST_TEXT:
        raise InvalidInputError(
            f"filter: {len(text):,} characters are more than the {LONGEST_TEXT:,} allowed: ask for several "
            "values of one field with in […], or search in parts"
        )
