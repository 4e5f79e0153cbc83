"""What texts are compared by: words, numbers and days, each with its place."""

from decimal import Decimal
from typing import NamedTuple

from dartboard.mining.judges.dates import Readings


class Item(NamedTuple):
    """A word, a number, or the days that something can mean, with its place in the folded text.

    ``joint`` stands between it and the next: a space, a hyphen that ties, a comma, or ``|`` for a break.
    """

    value: str | Decimal | Readings
    start: int
    end: int
    joint: str = " "

    @property
    def glued(self) -> bool:
        """Whether a hyphen ties it to the next."""
        return self.joint == "-"


def as_one(first: Item, second: Item | None = None) -> str | None:
    """``e-mail`` as one word; None where one of the two is missing or no word."""
    if second is not None and isinstance(first.value, str) and isinstance(second.value, str):
        return first.value + second.value
    return None
