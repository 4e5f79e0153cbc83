"""Days in their usual spellings: March 5, 2021 = 5th of March 2021 = 2021-03-05, and the days of a range.

In a row of tokens a month, the days and the year beside it become one token, or two for a range. Not by
dateparser, which gives one date for a text and guesses what was not said: ``March 5`` gets a year.
"""

import re
from decimal import Decimal
from typing import NamedTuple

_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS = {name: number for number, name in enumerate(_NAMES, start=1)} | {
    name[:3]: number for number, name in enumerate(_NAMES, start=1)
}
MONTHS["sept"] = 9


class Day(NamedTuple):
    """A day, or a month of a year, or a day of any year: what was not said is None."""

    year: int | None
    month: int
    day: int | None

    def says(self, wanted: "Day") -> bool:
        """Whether this names everything that ``wanted`` names."""
        return (
            self.month == wanted.month and wanted.day in (None, self.day) and wanted.year in (None, self.year)
        )


Readings = tuple[Day, ...]


def numeric(first: str, second: str, third: str) -> Readings:
    """The days that ``2021-03-05`` or ``03/05/2021`` can mean; none where it is no date."""
    if len(first) == 4:
        return _valid((int(first), int(second), int(third)))
    year = int(third)
    both = _valid((year, int(first), int(second))) + _valid((year, int(second), int(first)))
    return tuple(dict.fromkeys(both))


def is_day(value: int) -> bool:
    """Whether a number can be a day of a month."""
    return 1 <= value <= 31


def is_year(value: int) -> bool:
    """Whether a number beside a month is taken for a year."""
    return 1000 <= value <= 2999


def _valid(parts: tuple[int, int, int]) -> Readings:
    year, month, day = parts
    return (Day(year, month, day),) if 1 <= month <= 12 and is_day(day) else ()


class Token(NamedTuple):
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


def as_one(first: Token, second: Token | None = None) -> str | None:
    """``e-mail`` as one word; None where one of the two is missing or no word."""
    if second is not None and isinstance(first.value, str) and isinstance(second.value, str):
        return first.value + second.value
    return None


_CONNECTORS = frozenset({"and", "to", "through", "until", "or"})
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def with_days(found: list[Token]) -> list[Token]:
    """Months with the days and years beside them; "and" or "to" between two days goes."""
    joined: list[Token] = []
    place = 0
    while place < len(found):
        value = found[place].value
        if isinstance(value, str) and value not in MONTHS and not value[0].isdigit():
            joined.append(found[place])
            place += 1
            continue
        written = _month_first if _month(found, place) else _day_first
        days, taken = written(found, place)
        joined += days or [found[place]]
        place += taken
    return [
        token
        for at, token in enumerate(joined)
        if not (token.value in _CONNECTORS and _is_days(joined, at - 1) and _is_days(joined, at + 1))
    ]


def _is_days(joined: list[Token], at: int) -> bool:
    return 0 <= at < len(joined) and isinstance(joined[at].value, tuple)


def _month_first(found: list[Token], place: int) -> tuple[list[Token], int]:
    """``March 5, 2021``, ``March 5-7``, ``March 2021``."""
    month = _month(found, place)
    days, after = _day_list(found, place + 1)
    if not days:
        year = _year(found, place + 1)
        return ([_day_item(found, place, place + 2, (year, month, None))], 2) if year else ([], 1)
    year = None if found[after - 1].joint == "|" else _year(found, after)
    end = after + 1 if year else after
    return [_day_item(found, place, end, (year, month, day)) for day in days], end - place


def _day_first(found: list[Token], place: int) -> tuple[list[Token], int]:
    """``5 March 2021``, ``5th of March``, ``4-20 March``, ``2021 March 5``."""
    days, after = _day_list(found, place)
    if days and after < len(found) and found[after].value in ("of", "the"):
        after += 1
    month = _month(found, after) if days and found[after - 1].joint in " -" else 0
    if not month:
        return [], 1
    year = _year(found, after + 1)
    end = after + 2 if year else after + 1
    return [_day_item(found, place, end, (year, month, day)) for day in days], end - place


def _day_item(found: list[Token], first: int, end: int, parts: tuple[int | None, int, int | None]) -> Token:
    return found[end - 1]._replace(value=(Day(*parts),), start=found[first].start)


def _day_list(found: list[Token], place: int) -> tuple[list[int], int]:
    """One day, or the two ends of a range, and the place after them."""
    first = _day(found, place)
    if not first:
        return [], place
    after = place + 1
    if after < len(found) and found[after].value in ("and", "to", "through"):
        after += 1
    elif not found[place].glued:
        return [first], after
    second = _day(found, after)
    after_month = _month(found, place - 1)
    if second > first and not (after_month and _month(found, after + 1) and found[after].joint in " -"):
        return [first, second], after + 1
    return [first], place + 1


def _day(found: list[Token], place: int) -> int:
    value = found[place].value if 0 <= place < len(found) else None
    if isinstance(value, Decimal) and value == int(value) and is_day(int(value)):
        return int(value)
    if isinstance(value, str) and (match := _ORDINAL.fullmatch(value)) and is_day(int(match[1])):
        return int(match[1])
    return 0


def _year(found: list[Token], place: int) -> int | None:
    value = found[place].value if place < len(found) else None
    return int(value) if isinstance(value, Decimal) and value % 1 == 0 and is_year(int(value)) else None


def _month(found: list[Token], place: int) -> int:
    value = found[place].value if 0 <= place < len(found) else None
    return MONTHS.get(value, 0) if isinstance(value, str) else 0
